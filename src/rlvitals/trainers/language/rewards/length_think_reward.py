"""Whether the thinking is neither too short nor too long, and goes in steps."""

import re

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample

SHORT, LONG = 71, 250  # characters of good thinking, both included
TOO_LONG = 500  # characters from which steps are paid no more
STEP, STEPS = 0.25, 1.5  # of a step, and of all steps
NAMED = re.compile(r"<step-([0-9]{1,3})>:?([^<]*)")


def score(sample: Sample) -> float:
    """Pay 1 for 71 to 250 characters, and 0.25 a step up to 1.5; nothing above 500 characters.

    The characters are all that stand between the tags, the table too. Steps count while they are
    numbered 1, 2, 3 and each says something.
    """
    thought = parts.inner(sample.completion, "think")
    if thought is None or len(thought) > TOO_LONG:
        return 0.0
    steps = 0
    for number, text in NAMED.findall(thought):
        if int(number) == steps + 1 and text.strip():
            steps += 1
    return float(SHORT <= len(thought) <= LONG) + min(STEP * steps, STEPS)


REWARD = Measure(
    name="length_think_reward",
    meaning="71 to 250 characters of thinking, in numbered steps",
    low=0,
    high=1 + STEPS,
    title="Length Rewards",
    score=score,
)
