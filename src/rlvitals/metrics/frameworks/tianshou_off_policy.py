"""Tianshou's algorithms with a replay buffer: 0.5, 1.x and 2.x, as 2.0.1 computes them."""

from rlvitals.metrics.catalogue import exploration, optimiser, policy, value
from rlvitals.metrics.frameworks.key import Family, Name, Table
from rlvitals.metrics.frameworks.tianshou import (
    BY_UPDATE,
    TIANSHOU_FAMILIES,
    TIANSHOU_KEYS,
    TIANSHOU_SETTINGS,
    UNTIL_0_5,
)

ONE_GRADIENT_STEP = f"one gradient step; {UNTIL_0_5}"
SQUARED = "squared error weighted by priority"

NAMES = Table(
    "tianshou-off-policy",
    "Tianshou, off-policy algorithms",
    keys={
        **TIANSHOU_KEYS,
        **{
            key: name
            for keys, name in (
                (("actor_loss", "loss/actor"), Name(policy.ACTOR_LOSS, ONE_GRADIENT_STEP)),
                (
                    ("critic_loss", "loss/critic"),
                    Name(value.LOSS, f"DDPG: {SQUARED}, {ONE_GRADIENT_STEP}"),
                ),
                (
                    ("critic1_loss", "loss/critic1"),
                    Name(value.LOSS, f"{SQUARED}, first critic, {ONE_GRADIENT_STEP}"),
                ),
                (("alpha",), Name(exploration.ENTROPY_COEF, f"SAC's alpha, {ONE_GRADIENT_STEP}")),
                (
                    ("alpha_loss", "loss/alpha"),
                    Name(exploration.ENTROPY_COEF_LOSS, ONE_GRADIENT_STEP),
                ),
                (
                    ("loss",),
                    Name(
                        optimiser.LOSS,
                        "DQN: squared or Huber error; C51, QR-DQN, IQN: of distributions;"
                        f" imitation: of actions; {ONE_GRADIENT_STEP}",
                    ),
                ),
            )
            for key in (f"update/{own}" for own in keys)
        },
    },
    families=(
        *TIANSHOU_FAMILIES,
        Family(
            r"update/(?:loss/)?(critic2)(?:_loss)?",
            Name(value.CRITIC_LOSS, f"{SQUARED}, {ONE_GRADIENT_STEP}"),
        ),
    ),
    settings=TIANSHOU_SETTINGS,
    step_unit="environment steps",
    off_axis=BY_UPDATE,
    read_from="thu-ml/tianshou 2.0.1 (f2402056): tianshou/algorithm/modelfree/dqn.py, c51.py,"
    " ddpg.py, td3.py, sac.py (_update_with_batch); 0.5.0: tianshou/policy/modelfree/*.py (learn)",
)
