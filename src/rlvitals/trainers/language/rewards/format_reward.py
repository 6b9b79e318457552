"""Whether a completion has the form that it was asked for."""

from rlvitals.trainers.language.rewards import parts
from rlvitals.trainers.language.rewards.reward import Measure, Sample

FULL = 2.0


def score(sample: Sample) -> float:
    """Pay for the whole form, with something in each of its tags, and nothing around it."""
    text = sample.completion.strip()
    lines = ("<think>\n<type>", "</type>\n<table>", "</think>\n<answer>")
    if not parts.in_order(text) or not all(line in text for line in lines):
        return 0.0
    if not text.startswith("<think>") or not text.endswith("</answer>"):
        return 0.0
    return FULL if all(parts.inner(text, tag) for tag in ("type", "table", "answer")) else 0.0


REWARD = Measure(
    name="format_reward",
    meaning="the whole form: thinking with the chart's type and table, then the answer",
    low=0,
    high=FULL,
    title="Format rewards",
    score=score,
)
