"""Reward for each tag of the form exactly once, wherever lines end."""

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample

FULL_TOKEN_REWARD = 2.0


def score(sample: Sample) -> float:
    """Pay for all eight tags, each exactly once and in order: the form without its line ends."""
    return FULL_TOKEN_REWARD if parts.in_order(sample.completion) else 0.0


MEASURE = Measure(
    name="num_token_reward",
    meaning="each of the form's eight tags exactly once, in order",
    low=0,
    high=FULL_TOKEN_REWARD,
    title="Count rewards",
    score=score,
)
