"""The reward threshold does not separate right answers from wrong ones: the filter keeps both.

## What it sees
PSR: 99 % or more of the samples count as positive in at least half of 20 successive updates,
while right answers are below 90 %. NSR: 99 % or more count as negative while more than 5 % of the
answers are right. A warning, an error where right answers do not improve.

## Why it matters
PSR then reinforces wrong answers, and NSR pushes right ones down: both unlearn what they should
teach, at full speed and with a healthy-looking gradient.

A filter that agrees with the answers is no finding, whatever chance does to batches of four: the
samples that it takes for what they are not must be more than 5 % of all.

## What to do
Put `reward_threshold` above what a wrong answer can earn (with every format bonus) and at or below
what a right one earns. Best filter on correctness itself.

## When it is wrong
A reward for right answers that is stricter than the one the filter is meant to use.

## References
- Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning".
"""

import numpy as np

from rlvitals.metrics.language import NEGATIVE_SHARE, POSITIVE_SHARE
from rlvitals.records import Profile, Series, Trace
from rlvitals.rules.answers import answers, learned
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import above
from rlvitals.rules.weigh import sides

ALL = Threshold(
    "threshold-off-correctness.share", 0.99, "share of the samples that count alike", high=1.0
)
RIGHT = Threshold(
    "threshold-off-correctness.right",
    0.9,
    "PSR: share of right answers from which on nearly all samples are rightly positive",
    high=1.0,
)
SOME_RIGHT = Threshold(
    "threshold-off-correctness.some-right",
    0.05,
    "NSR: share of right answers up to which nearly all samples are rightly negative; of samples"
    " that count as what they are not",
    high=1.0,
)
WINDOW = 20  # updates


def check(trace: Trace) -> Answer:
    """Hold the filter's share against the share of right answers."""
    psr = trace.profile is Profile.PSR
    metric = POSITIVE_SHARE if psr else NEGATIVE_SHARE
    if metric.name not in trace:
        return Undecided(f"{metric.name} is not logged", (metric.name,))
    found = answers(trace)
    if found is None:
        return Undecided("no reward for right answers is logged", ("outcome/accuracy",))
    side = "positive" if psr else "negative"
    limit = ALL.bound(trace, "default: everything but rounding")
    stretch = above(trace[metric.name], limit.value, WINDOW)
    if stretch is None:
        return Clear()
    level = _during(found[1], stretch.began, stretch.ended)
    if level is None or (level >= RIGHT.on(trace) if psr else level <= SOME_RIGHT.on(trace)):
        return Clear()
    kept = _during(trace[metric.name], stretch.began, stretch.ended) or 0.0
    if kept - (level if psr else 1 - level) <= SOME_RIGHT.on(trace):
        return Clear()
    now = learned(trace, since=stretch.began)
    evidence, counter = sides(now)
    return Finding(
        f"{limit.value:.0%} or more of the samples count as {side}, but {level:.0%} of the answers "
        f"are right: the threshold {'rewards wrong' if psr else 'punishes right'} answers",
        severity=stretch.severity(Severity.ERROR if now.stalled else Severity.WARNING),
        metric=metric.name,
        began=stretch.began,
        ended=stretch.ended,
        observed=stretch.worst,
        bound=limit,
        evidence=(*_threshold(trace), *evidence),
        counter=counter,
        remedies=(
            "raise {reward_threshold} above what a wrong answer earns"
            if psr
            else "lower {reward_threshold} to what a right answer earns",
            "filter on correctness, not on the sum of all rewards",
        ),
    )


def _during(right: Series, began: int, ended: int) -> float | None:
    """Return the mean share of right answers over the first tenth of the stretch, at least 10.

    The first, because the fault itself drives it to zero later.
    """
    values = right.since(began).until(ended).values
    head = values[: max(10, len(values) // 10)]
    return float(np.mean(head)) if len(head) else None


def _threshold(trace: Trace) -> tuple[str, ...]:
    own = trace.number("reward_threshold")
    return () if own is None else (f"the run's reward_threshold is {own:g}",)


RULE = Rule(
    name="threshold-off-correctness",
    needs=(),
    needs_any=(POSITIVE_SHARE, NEGATIVE_SHARE),
    at_least=WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a threshold on another scale than the reward",
        "bonuses for format or length that pass the threshold without a right answer",
    ),
    remedies=("put {reward_threshold} between what a wrong and what a right answer earns",),
    profiles=(Profile.PSR, Profile.NSR),
    thresholds=(ALL, RIGHT, SOME_RIGHT),
)
