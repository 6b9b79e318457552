"""Responses shrink to less than half of what they were.

## What it sees
Mean response length below half of its own start in at least half of 20 successive updates (10
where fewer than 40 are logged), while what is learned neither improves nor holds its best. A
note: short answers are sometimes right. A warning where what is learned falls, or responses are
below a tenth of their start and it does not improve.

## Why it matters
A few tokens that earn a format bonus, an empty answer that avoids a penalty, or an end token at
once are cheap local optima, and a policy that stopped writing cannot find its way back.

## What to do
Read some. Check what an empty or one-word answer earns, and whether a length penalty or a limit on
responses taught brevity.

## When it is wrong
Answers that were padded at the start get shorter as they get better: where right answers improve,
nothing is reported.

## References
- Singhal et al. 2023, "A Long Way to Go: Investigating Length Correlations in RLHF".
"""

from rlvitals.metrics.catalogue.language import LENGTH_MEAN
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, below, end, start
from rlvitals.rules.standing import Standing
from rlvitals.rules.weigh import sides
from rlvitals.types import Trace

LENGTH_SHRINK_FACTOR = Threshold(
    "response-length-collapses.factor",
    0.5,
    "x its own start, that the response length has shrunk to",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Compare with the run's own start."""
    lengths = trace[LENGTH_MEAN.name]
    first = start(lengths)
    if not first:
        return Undecided("responses were empty at the start: there is no scale")
    limit = LENGTH_SHRINK_FACTOR.bound(
        trace, f"{LENGTH_SHRINK_FACTOR.on(trace):g} x this run's start", scale=first
    )
    stretch = below(lengths, limit.value)
    if stretch is None:
        return Clear()
    last = end(lengths)
    if last > limit.value:
        return Clear()  # it is over
    trend = learning_trend(trace)
    if trend.improves or trend.state == "holding its best":
        return Clear()
    return Finding(
        f"responses shrank from {first:.4g} to {last:.4g} tokens",
        severity=stretch.severity(_severity(trend, last / first)),
        metric=LENGTH_MEAN.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=sides(trend)[0],
    )


def _severity(trend: Standing, share: float) -> Severity:
    """Weigh responses that shrank to a share of their first length."""
    worse = trend.state in {"falling", "fallen back"}
    return (
        Severity.WARNING
        if worse or (trend.stalls and share < 0.1)  # of the first length
        else Severity.NOTE
    )


RULE = Rule(
    name="response-length-collapses",
    needs=(LENGTH_MEAN,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "an empty or short answer that earns as much as a good one",
        "a penalty for length or for unfinished responses",
        "a collapsed policy",
    ),
    remedies=(
        "read some responses",
        "score an empty answer by hand",
        "weaken what pays for brevity",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "learning-rate-jump",
        "gradient-explosion",
        "entropy-collapse",
        "component-dominates",
        "judge-outage",
    ),
    thresholds=(LENGTH_SHRINK_FACTOR,),
)
