"""Unity ML-Agents with SAC, as 0.28.0 writes it. Steps and summaries are as in `mlagents.py`."""

from rlvitals.metrics.catalogue import exploration, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.mlagents import (
    INTRINSIC,
    SETTINGS,
    SHARED,
    SHARED_FAMILIES,
    STEP,
    SUMMARY,
    UNDER,
)

MEAN = f"mean over the updates {SUMMARY}"

NAMES = Table(
    "mlagents-sac",
    "Unity ML-Agents, SAC",
    keys={
        **SHARED,
        **INTRINSIC,
        "Losses/Policy Loss": Name(policy.ACTOR_LOSS, MEAN),
        "Losses/Value Loss": Name(value.LOSS, f"half the squared error of V, {MEAN}"),
        "Policy/Continuous Entropy Coeff": Name(exploration.ENTROPY_COEF, "SAC's alpha"),
        "Policy/Extrinsic Value": Name(value.MEAN, f"mean over the trajectories {SUMMARY}"),
    },
    families=(
        *SHARED_FAMILIES,
        Family(r"Losses/(Q[12]) Loss", Name(value.CRITIC_LOSS, f"half the squared error, {MEAN}")),
    ),
    settings={
        **SETTINGS,
        "hyperparameters/buffer_size": "buffer_size",
        "hyperparameters/buffer_init_steps": "learning_starts",
        "hyperparameters/tau": "tau",
    },
    settings_under=UNDER,
    step_unit=STEP,
    read_from="Unity-Technologies/ml-agents, mlagents 0.28.0: mlagents/trainers/sac/trainer.py,"
    " sac/optimizer_torch.py (sac_q_loss, sac_value_loss, update)",
)
