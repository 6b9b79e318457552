"""skrl's agents with a replay buffer (DQN, DDQN, DDPG, TD3, SAC), as 2.0.0 writes them.

The step is the trainer's timestep, as in `skrl.py`.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.skrl import (
    SINCE_LAST_WRITE,
    SKRL_FAMILIES,
    SKRL_KEYS,
    SKRL_READ_FROM,
    SKRL_SETTINGS,
    SKRL_SETTINGS_UNDER,
)

OVER_STEPS_SINCE = f"mean over the gradient steps {SINCE_LAST_WRITE}"

NAMES = Table(
    "skrl-off-policy",
    "skrl, off-policy agents",
    keys={
        **SKRL_KEYS,
        "Loss / Policy loss": Name(policy.ACTOR_LOSS, OVER_STEPS_SINCE),
        "Loss / Critic loss": Name(
            value.LOSS,
            f"squared error summed over the critics (SAC: their mean), {OVER_STEPS_SINCE}",
        ),
        "Loss / Q-network loss": Name(value.LOSS, f"squared error, {OVER_STEPS_SINCE}"),
        "Loss / Entropy loss": Name(exploration.ENTROPY_COEF_LOSS, OVER_STEPS_SINCE),
        "Coefficient / Entropy coefficient": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "Exploration / Exploration epsilon": Name(exploration.EPSILON),
        "Q-network / Q1 (mean)": Name(
            value.Q_MEAN, f"of the batch's actions (SAC: of the policy's), {OVER_STEPS_SINCE}"
        ),
        "Q-network / Q1 (min)": Name(value.Q_MIN, f"lowest {SINCE_LAST_WRITE}"),
        "Q-network / Q1 (max)": Name(value.Q_MAX, f"highest {SINCE_LAST_WRITE}"),
        "Target / Target (mean)": Name(value.RETURN_MEAN, "r + gamma Q', the critics' target"),
        "Learning / Policy learning rate": Name(optimiser.LEARNING_RATE),
    },
    families=(
        *SKRL_FAMILIES,
        Family(r"Q-network / (Q2) \(mean\)", Name(value.CRITIC_Q, OVER_STEPS_SINCE)),
    ),
    settings=SKRL_SETTINGS,
    settings_under=SKRL_SETTINGS_UNDER,
    step_unit="steps of each environment",
    read_from=f"{SKRL_READ_FROM}, skrl/agents/torch/dqn/dqn.py, ddqn/ddqn.py, ddpg/ddpg.py,"
    " td3/td3.py, sac/sac.py (update)",
)
