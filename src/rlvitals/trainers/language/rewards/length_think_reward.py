"""Reward for thinking of the right length, in numbered steps."""

import re

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample

MAX_STEPS_REWARD = 1.5


def score(sample: Sample) -> float:
    """Pay 1 for 71 to 250 characters, and 0.25 a step up to 1.5; nothing above 500 characters.

    The characters are all that stand between the tags, the table too. Steps count while they are
    numbered 1, 2, 3 and each says something.
    """
    thought = parts.inner(sample.completion, "think")
    if thought is None or len(thought) > 500:
        return 0.0
    steps = 0
    for number, text in re.findall(r"<step-([0-9]{1,3})>:?([^<]*)", thought):
        if int(number) == steps + 1 and text.strip():
            steps += 1
    # 71 to 250 characters of thinking.
    return float(len(thought) in range(71, 251)) + min(0.25 * steps, MAX_STEPS_REWARD)


MEASURE = Measure(
    name="length_think_reward",
    meaning="71 to 250 characters of thinking, in numbered steps",
    low=0,
    high=1 + MAX_STEPS_REWARD,
    title="Length Rewards",
    score=score,
)
