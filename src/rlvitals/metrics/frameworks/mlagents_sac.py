"""Unity ML-Agents with SAC, as 0.28.0 writes it. Steps and summaries are as in `mlagents.py`."""

from rlvitals.metrics.catalogue import exploration, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.mlagents import (
    INTRINSIC_REWARDS,
    ML_AGENTS_FAMILIES,
    ML_AGENTS_KEYS,
    ML_AGENTS_SETTINGS,
    ML_AGENTS_SETTINGS_UNDER,
    SINCE_LAST_SUMMARY,
)

OVER_UPDATES = f"mean over the updates {SINCE_LAST_SUMMARY}"

NAMES = Table(
    "mlagents-sac",
    "Unity ML-Agents, SAC",
    keys={
        **ML_AGENTS_KEYS,
        **INTRINSIC_REWARDS,
        "Losses/Policy Loss": Name(policy.ACTOR_LOSS, OVER_UPDATES),
        "Losses/Value Loss": Name(value.LOSS, f"half the squared error of V, {OVER_UPDATES}"),
        "Policy/Continuous Entropy Coeff": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "Policy/Extrinsic Value": Name(
            value.MEAN, f"mean over the trajectories {SINCE_LAST_SUMMARY}"
        ),
    },
    families=(
        *ML_AGENTS_FAMILIES,
        Family(
            r"Losses/(Q[12]) Loss",
            Name(value.CRITIC_LOSS, f"half the squared error, {OVER_UPDATES}"),
        ),
    ),
    settings={
        **ML_AGENTS_SETTINGS,
        "hyperparameters/buffer_size": "buffer_size",
        "hyperparameters/buffer_init_steps": "learning_starts",
        "hyperparameters/tau": "tau",
    },
    settings_under=ML_AGENTS_SETTINGS_UNDER,
    step_unit="agent steps",
    read_from="Unity-Technologies/ml-agents, mlagents 0.28.0: mlagents/trainers/sac/trainer.py,"
    " sac/optimizer_torch.py (sac_q_loss, sac_value_loss, update)",
)
