"""skrl's agents with a replay buffer (DQN, DDQN, DDPG, TD3, SAC), as 2.0.0 writes them.

The step is the trainer's timestep, as in `skrl.py`.
"""

from rlvitals.metrics.catalogue import exploration, optimiser, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.skrl import (
    READ_FROM,
    SETTINGS,
    SHARED,
    SHARED_FAMILIES,
    SINCE,
    STEP,
    UNDER,
)

MEAN = f"mean over the gradient steps {SINCE}"

NAMES = Table(
    "skrl-off-policy",
    "skrl, off-policy agents",
    keys={
        **SHARED,
        "Loss / Policy loss": Name(policy.ACTOR_LOSS, MEAN),
        "Loss / Critic loss": Name(
            value.LOSS, f"squared error summed over the critics (SAC: their mean), {MEAN}"
        ),
        "Loss / Q-network loss": Name(value.LOSS, f"squared error, {MEAN}"),
        "Loss / Entropy loss": Name(exploration.ENTROPY_COEF_LOSS, MEAN),
        "Coefficient / Entropy coefficient": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "Exploration / Exploration epsilon": Name(exploration.EPSILON),
        "Q-network / Q1 (mean)": Name(
            value.Q_MEAN, f"of the batch's actions (SAC: of the policy's), {MEAN}"
        ),
        "Q-network / Q1 (min)": Name(value.Q_MIN, f"lowest {SINCE}"),
        "Q-network / Q1 (max)": Name(value.Q_MAX, f"highest {SINCE}"),
        "Target / Target (mean)": Name(value.RETURN_MEAN, "r + gamma Q', the critics' target"),
        "Learning / Policy learning rate": Name(optimiser.LEARNING_RATE),
    },
    families=(
        *SHARED_FAMILIES,
        Family(r"Q-network / (Q2) \(mean\)", Name(value.CRITIC_Q, MEAN)),
    ),
    settings=SETTINGS,
    settings_under=UNDER,
    step_unit=STEP,
    read_from=f"{READ_FROM}, skrl/agents/torch/dqn/dqn.py, ddqn/ddqn.py, ddpg/ddpg.py,"
    " td3/td3.py, sac/sac.py (update)",
)
