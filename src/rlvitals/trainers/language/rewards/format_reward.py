"""Reward for a completion in the required form."""

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample

FULL_FORMAT_REWARD = 2.0


def score(sample: Sample) -> float:
    """Reward the complete form, with content in each tag and nothing around it."""
    text = sample.completion.strip()
    lines = ("<think>\n<type>", "</type>\n<table>", "</think>\n<answer>")
    if not parts.in_order(text) or not all(line in text for line in lines):
        return 0.0
    if not text.startswith("<think>") or not text.endswith("</answer>"):
        return 0.0
    return (
        FULL_FORMAT_REWARD
        if all(parts.inner(text, tag) for tag in ("type", "table", "answer"))
        else 0.0
    )


MEASURE = Measure(
    name="format_reward",
    meaning="the whole form: thinking with the chart's type and table, then the answer",
    low=0,
    high=FULL_FORMAT_REWARD,
    title="Format rewards",
    score=score,
)
