"""The reward threshold does not separate right answers from wrong ones.

## What it sees
PSR, NSR and W-REINFORCE: the share of samples that count as positive differs from the share of
right answers by a tenth or more, in the same direction, in at least half of 20 successive updates.
Both shares must be logged for the same updates. An error where right answers do not improve, a
warning where that cannot be told, and also where they improve if 99 % of the samples count alike;
else a note.

## Why it matters
Where wrong answers count as positive, PSR reinforces them, and NSR and W-REINFORCE do not push
them down. Where right answers count as negative, NSR and W-REINFORCE push them down. The reward
that the threshold is compared with may rise all the same: a policy that learns the form of an
answer is not one that learns the answer.

## What to do
Compare the threshold with a reward that checks the answer, not with one for its form and not with
the sum of both (`correctness`, `threshold_on`). If it is the sum, put `reward_threshold` above what
a wrong answer can earn, with every bonus, and at or below what a right one earns.

## When it is wrong
The logged reward for right answers is stricter than the one that the filter is meant to use.

## References
- Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning".
"""

import numpy as np

from rlvitals.metrics.catalogue.language import NEGATIVE_SHARE, POSITIVE_SAMPLES, POSITIVE_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import answers, learning_trend
from rlvitals.rules.derived_series import positive_share
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Curve,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
)
from rlvitals.rules.shapes import LONG_WINDOW, Stretch, above
from rlvitals.rules.weigh import sides
from rlvitals.types import Series, Trace

MAX_THRESHOLD_GAP = Threshold(
    "threshold-off-correctness.gap",
    0.1,
    "share of the samples that the filter takes for right or wrong and that are not",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Compare the share of positive samples with the share of right answers."""
    positive = positive_share(trace)
    if positive is None:
        return Undecided("the positive share cannot be worked out", (POSITIVE_SHARE.name,))
    right = answers(trace)
    if right is None:
        return Undecided("no reward for right answers is logged", ("outcome/accuracy",))
    name, share = positive
    shared, gap = _gap(share, right[1])
    if shared < 0.9:  # of the updates
        return Undecided(f"{name} and {right[0]} are logged at different steps", (right[0],))
    limit = MAX_THRESHOLD_GAP.bound(trace, "default: a tenth of the samples")
    for sign in (1.0, -1.0):
        signed_gap = Series(gap.steps, gap.times, sign * gap.values)
        stretch = above(signed_gap, limit.value, LONG_WINDOW)
        if stretch is not None:
            return _finding(trace, (name, share), right[1], stretch, limit, sign)
    return Clear()


def _gap(share: Series, right: Series) -> tuple[float, Series]:
    """Return the part of the updates that log both, and positive less right share at those."""
    _, rows, within = np.intersect1d(share.steps, right.steps, return_indices=True)
    common = share.where(rows)
    gap = Series(common.steps, common.times, common.values - right.values[within])
    return len(common) / max(len(share), 1), gap


def _finding(  # noqa: PLR0913, PLR0917 - the two shares, where they differ, and how
    trace: Trace,
    positive: tuple[str, Series],
    right: Series,
    stretch: Stretch,
    limit: Bound,
    sign: float,
) -> Finding:
    name, share = positive
    level, right_level = _level(stretch.of(share)), _level(stretch.of(right))
    trend = learning_trend(trace, since=stretch.start)
    # With 99 % of the samples alike, the filter filters nothing.
    unfiltered = max(level, 1 - level) >= 0.99
    severity = Severity.ERROR if trend.stalls else Severity.WARNING
    if trend.improves and not unfiltered:
        severity = Severity.NOTE
    evidence, counter = sides(trend)
    mistake = "wrong answers for right ones" if sign > 0 else "right answers for wrong ones"
    return Finding(
        f"{level:.0%} of the samples count as positive, but {right_level:.0%} of the answers are"
        f" right: the threshold takes {mistake}",
        severity=stretch.severity(severity),
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=(*_describe_filter(trace), *evidence),
        counter=counter,
        curve=Curve("positive share", share),
        remedies=(
            "compare the threshold with a reward that checks the answer, not its form",
            "raise {reward_threshold} above what a wrong answer earns"
            if sign > 0
            else "lower {reward_threshold} to what a right answer earns",
        ),
    )


def _level(series: Series) -> float:
    """Return the mean over the first tenth, at least 10 points: the fault itself moves it later."""
    values = series.finite().values
    return float(np.mean(values[: max(10, len(values) // 10)]))


def _describe_filter(trace: Trace) -> tuple[str, ...]:
    """Say what the settings tell of the filter."""
    threshold, reward = trace.number("reward_threshold"), trace.settings.get("correctness")
    sentences = [] if threshold is None else [f"the run's reward_threshold is {threshold:g}"]
    if trace.settings.get("threshold_on") == "total":
        sentences.append("it is compared with the sum of all rewards")
    elif reward:
        sentences.append(f"it is compared with {reward}")
    return tuple(sentences)


RULE = Rule(
    name="threshold-off-correctness",
    needs=(),
    needs_any=(POSITIVE_SHARE, NEGATIVE_SHARE, POSITIVE_SAMPLES),
    at_least=LONG_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a threshold that is compared with a reward for the form, not for the answer",
        "a threshold on another scale than the reward",
        "bonuses for format or length that pass the threshold without a right answer",
    ),
    remedies=("put {reward_threshold} between what a wrong and what a right answer earns",),
    profiles=kinds.THRESHOLD_FILTERED,
    verdict="stalled",
    thresholds=(MAX_THRESHOLD_GAP,),
)
