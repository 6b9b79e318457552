"""Faults of the reward: what is paid is not what was meant."""

from rlvitals.faults.fault import Fault, Onset
from rlvitals.faults.inject import in_world

SCALE_RULES = (
    "value-loss-explosion",
    "updates-hardly-move",
    "q-divergence",
    "gradient-always-clipped",
)

REWARD_FAULTS = (
    Fault(
        "reward-zero",
        "the reward function always answers 0",
        in_world(lambda w: w.ZeroReward),
        expects=("constant-reward", "environment-changed"),
        visible_in=("outcome/return",),
        tampers=True,
    ),
    Fault(
        "reward-flipped",
        "the sign of the reward is wrong",
        in_world(lambda w: w.FlippedReward),
        expects=("environment-changed", "return-collapse", "impossible-value"),
        visible_in=("outcome/return",),
        tampers=True,
        hidden_from_start=True,
    ),
    Fault(
        "reward-noise",
        "each reward carries Gaussian noise of standard deviation 50",
        in_world(lambda w: w.NoisyReward),
        expects=("critic-explains-nothing", "value-loss-explosion", "impossible-value",
                 "reward-spread-grows"),
        visible_in=("value/explained_variance", "value/loss", "optimiser/loss"),
        tampers=True,
    ),
    Fault(
        "reward-x1000",
        "the reward is in the wrong unit: 1,000 times too large",
        in_world(lambda w: w.HugeReward),
        expects=(*SCALE_RULES, "impossible-value"),
        visible_in=("value/loss", "optimiser/loss", "outcome/return"),
        tampers=True,
    ),
    Fault(
        "reward-outliers",
        "one step in 500 pays 10,000",
        in_world(lambda w: w.OutlierReward),
        expects=(*SCALE_RULES, "reward-spread-grows", "impossible-value",
                 "gradient-explosion"),
        visible_in=("value/loss", "optimiser/loss", "outcome/return"),
        tampers=True,
        onsets=(Onset.START, Onset.MIDDLE),
    ),
)  # fmt: skip
