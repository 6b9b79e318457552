"""Reward for a right answer."""

import json
import re

from rlvitals.trainers.language.rewards import parts, values
from rlvitals.trainers.language.rewards.reward import Measure, Sample


def score(sample: Sample) -> float:
    """Pay 1 for a right answer.

    A chart's `label` may be missed by 5 % where it is a value; a name of the chart's, as a year is,
    must be met. The `answer` of a plain text must be met exactly, and needs no tags.
    """
    label = sample.text("label")
    plain = not label
    answer = parts.extract_answer(sample.completion, plain=plain)
    if answer is None:
        return 0.0
    tolerance = (
        values.EXACT_TOLERANCE if plain or _is_name(label, sample) else values.CHART_TOLERANCE
    )
    return float(values.is_same(answer, label or sample.text("answer"), tolerance))


def _is_name(label: str, sample: Sample) -> bool:
    """Return True if a label is a name, such as a year, for which no tolerance applies."""
    if re.fullmatch(r"\s*(1[5-9]|20|21)[0-9]{2}\s*", label) and re.search(
        r"\b(years?|when)\b", sample.text("query"), re.IGNORECASE
    ):
        return True
    try:
        rows = json.loads(sample.text("table") or "{}").get("rows", [])
        return label.strip() in {str(row[0]) for row in rows}
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError):
        return False  # no table of the known form


MEASURE = Measure(
    name="accuracy_reward",
    meaning="the answer is right",
    low=0,
    high=1,
    title="Rewards Accuracy",
    score=score,
    needs=(("label", "answer"),),
)
