"""Reward for naming the chart's type."""

from rlvitals.trainers.language.rewards import parts, values
from rlvitals.trainers.language.rewards.reward import Measure, Sample


def score(sample: Sample) -> float | None:
    """Pay 1 for the chart's type; None where the data does not say it."""
    expected = _bare(sample.text("chart_type"))
    if not expected:
        return None
    return float(_bare(parts.inner(sample.completion, "type") or "") == expected)


def _bare(text: str) -> str:
    name = values.plain(text.replace("_", " "))
    # A "bar chart" is a "bar".
    return next(
        (name.removesuffix(noun) for noun in (" chart", " graph", " plot") if name.endswith(noun)),
        name,
    )


MEASURE = Measure(
    name="chart_type_reward",
    meaning="the chart's type is right",
    low=0,
    high=1,
    title="Graph Type Rewards",
    score=score,
    needs=(("chart_type",),),
)
