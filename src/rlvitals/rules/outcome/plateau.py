"""The outcome rose, and rises no more, short of its ceiling.

## What it sees
The outcome improved over the run, its last 30 % no longer change materially beside the range it
went through, and it is not at the environment's maximum. Of 10 to 19 values: the best one was
reached before the last 30 %, and most values since are exactly that. Or the policy has not been
updated since some step, the learning rate being 0 to the end, and what it gained came before. A
note: it decides the verdict between learning and plateau.

## Why it matters
What is spent from here on buys nothing. A plateau below the known maximum is a chance to change
something; a plateau at an unknown one may simply be the end.

## What to do
Where the policy's entropy is low, restore exploration; where it is high, anneal it. Lower the
learning rate. Otherwise stop the run and save the rest of its budget.

## When it is wrong
Progress comes in steps on tasks with bottlenecks: a plateau may end by itself.

## References
- Machado et al. 2018, "Revisiting the Arcade Learning Environment".
"""

import math

import numpy as np

from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.rules import causes
from rlvitals.rules.answers import prefer_evaluation, verdict_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import (
    MIN_OUTCOME_POINTS,
    OUTCOME_METRICS,
    describe_progress,
    label,
    outcome,
    standing,
)
from rlvitals.signals.blocks import block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.plateau import MIN_PLATEAU_POINTS, PLATEAU_TOLERANCE, plateau_start
from rlvitals.types import Series, Trace

PLATEAU_SHARE = Threshold(
    "plateau.within",
    PLATEAU_TOLERANCE,
    "share of the run's own range within which its end stays",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Look for a flat end after a rise."""
    trace = prefer_evaluation(trace)
    picked = outcome(trace)
    if picked is None or len(picked[1]) < MIN_OUTCOME_POINTS:
        reason = f"fewer than {MIN_OUTCOME_POINTS} values of the outcome"
        return Undecided(reason, ("outcome/return",))
    trend = standing(trace)
    trend = verdict_trend(trace) if trend.state == "unknown" else trend
    if trend.state == "unknown":
        return Undecided(trend.sentence)
    if trend.state != "rising":
        return Clear()
    name, series = picked
    within = PLATEAU_SHARE.bound(trace, "share of this run's own range within which the end stays")
    start = _start_of_level(series, within.value)
    does = "changed" if start is not None and len(series) >= MIN_PLATEAU_POINTS else "risen"
    if start is None and (start := _start_of_zero_rate(trace, series)) is None:
        return Clear()
    step = int(series.steps[start])
    tail = standing(trace, since=step)
    # A rise below 10 % of the run's gain has levelled off.
    goes_on = tail.state == "rising" and tail.last - tail.first > 0.1 * (trend.last - trend.first)
    if goes_on or tail.state == "at its ceiling":
        return Clear()
    share = (series.steps[-1] - step) / max(int(series.steps[-1] - series.steps[0]), 1)
    way = describe_progress(trace, trend)
    return Finding(
        f"{label(name)} has not {does} over the last {share:.0%} of the run: {trend.last:.4g}",
        severity=Severity.NOTE,
        metric=name,
        began=step,
        ended=int(series.steps[-1]),
        observed=_moved_share(series, start),
        bound=within,
        limit_on_curve=False,
        evidence=(f"that is {way}",) if way else (),
    )


def _moved_share(series: Series, start: int) -> float:
    """Return the change from `start` to the end, as a share of the range of the run's blocks."""
    first, last = first_last_change(series.values[start:]) or (np.nan, np.nan)
    span = float(np.ptp(block_means(series.values, math.ceil(len(series) / 20))))
    return abs(last - first) / span if span else 0.0


def _start_of_level(series: Series, tolerance: float) -> int | None:
    """Return the index from which an outcome is level, or most of a few values are its best."""
    if len(series) < MIN_PLATEAU_POINTS:
        return _start_at_best(series)
    return plateau_start(series.values, tolerance=tolerance)


def _start_at_best(series: Series) -> int | None:
    """Return the index from which most of a few values are exactly the best one."""
    best = series.values == series.values.max()
    start = int(best.argmax())
    late = len(best) - start >= max(0.3 * len(best), 5)  # of the run, and values
    # A mean that still varies is at no bound.
    return start if late and float(best[start:].mean()) >= 0.5 else None


def _start_of_zero_rate(trace: Trace, series: Series) -> int | None:
    """Return the index from which the learning rate is 0 to the end, of a fifth of the run or more.

    A console may round a small rate to 0: the KL, where it is logged, has to be 0 as well.
    """
    rates, kl = (trace.numbers(metric.name) for metric in (LEARNING_RATE, APPROX_KL))
    if rates is None or rates.values[-1] != 0 or not rates.values.any():
        return None
    start_step = int(rates.steps[np.flatnonzero(rates.values)[-1] + 1])
    is_long = trace.last_step - start_step >= 0.2 * (trace.last_step - trace.first_step)
    # Nats: float32 makes as much of no update.
    moves = kl is not None and bool((np.abs(kl.since(start_step).values) > 1e-6).any())
    start = int(np.searchsorted(series.steps, start_step))
    return start if is_long and not moves and start < len(series) else None


RULE = Rule(
    name="plateau",
    needs=(),
    needs_any=OUTCOME_METRICS,
    check=check,
    doc=__doc__,
    causes=("the policy's best within reach", "exploration spent", "learning rate annealed away"),
    remedies=(
        "stop here and save the rest of the budget",
        "restore exploration where entropy is low",
        "lower {learning_rate} where the outcome still scatters",
    ),
    explained_by=causes.MECHANISM_RULES,
    verdict="plateau",
    thresholds=(PLATEAU_SHARE,),
)
