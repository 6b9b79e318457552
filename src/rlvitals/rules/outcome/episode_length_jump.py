"""Episodes became suddenly longer or shorter.

## What it sees
A single shift in the level of `outcome/episode_length` that stands out of its noise, happens
within a few points, and changes the length by at least a quarter; nine in ten episodes of one
side are longer than nine in ten of the other. A note: what it means depends
on the task, and the return at that step tells; so does whether longer or shorter episodes earn
more in this run, where their changes are proven to go together. A jump with which the return of
a run that learns went up is no finding: that is what learning looks like.

## Why it matters
A jump is a change of behaviour: the agent learned to survive, to finish, to run in circles, or
the environment's limit was changed.

## What to do
Look at episodes on both sides of the step. Where the return jumps too, compare signs.

## When it is wrong
Tasks with bottlenecks are learned in jumps, and not every jump towards the better shows in the
return at once.

## References
- Pardo et al. 2018, "Time Limits in Reinforcement Learning".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.standing import standing
from rlvitals.signals.changepoint import MIN_SHIFT_POINTS, change_point
from rlvitals.signals.lagged import lag_correlation
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

MIN_LENGTH_CHANGE = Threshold(
    "episode-length-jump.change", 0.25, "part of the length before, by which it changes"
)
RETURN_SIDE_POINTS = 10  # on either side, for the change of the return


def check(trace: Trace) -> Answer:
    """Look for one sudden shift of level."""
    length = trace[EPISODE_LENGTH.name].finite()
    change = change_point(length.values)
    if change is None:
        return Clear()
    origin = "change by a quarter of the length before"
    limit = MIN_LENGTH_CHANGE.bound(trace, origin, scale=abs(change.before))
    if abs(change.after - change.before) < limit.value:
        return Clear()
    step = int(length.steps[change.index])
    levels = _returns(trace, step)
    better = levels is not None and levels[1] > levels[0] and standing(trace).improves
    if better or not _sides_differ(length.values, change.index):
        return Clear()
    comparative = "longer" if change.after > change.before else "shorter"
    evidence = []
    if levels:
        evidence.append(f"return around it: {levels[0]:.4g} before, {levels[1]:.4g} after")
    if RETURN.name in trace:
        evidence += _context(length, trace[RETURN.name].finite())
    return Finding(
        f"episodes became suddenly {comparative}: {change.before:.4g} to {change.after:.4g} steps",
        severity=Severity.NOTE,
        metric=EPISODE_LENGTH.name,
        began=step,
        ended=step,
        observed=abs(change.after - change.before),
        bound=limit,
        limit_on_curve=False,
        evidence=tuple(evidence),
    )


def _sides_differ(values: NDArray[np.float64], index: int) -> bool:
    """Tell whether most episodes of one side are longer than most of the other."""
    # 20 % of the points on either side, as in the test of a shift.
    near = max(MIN_SHIFT_POINTS // 4, round(0.2 * values.size))
    sides = values[max(index - near, 0) : index], values[index : index + near]
    # Most episodes of a side lie between these percentiles.
    (low, high), (lower, higher) = (np.percentile(side, (10.0, 90.0)) for side in sides)
    return bool(high < lower or higher < low)


def _returns(trace: Trace, step: int) -> tuple[float, float] | None:
    """Return the level of the return just before a step, and just after."""
    if (returns := trace.get(RETURN.name)) is None:
        return None
    level_before = median(returns.until(step - 1).tail(RETURN_SIDE_POINTS).values)
    level_after = median(returns.since(step).where(slice(RETURN_SIDE_POINTS)).values)
    return None if level_before is None or level_after is None else (level_before, level_after)


def _context(length: Series, returns: Series) -> tuple[str, ...]:
    """Say whether longer episodes are the better ones here, where the run itself shows it."""
    _, ours, theirs = np.intersect1d(length.steps, returns.steps, return_indices=True)
    correlation = lag_correlation(length.values[ours], returns.values[theirs], lags=0)
    if correlation is None or not correlation.is_significant:
        return ()
    comparative = "longer" if correlation.correlation > 0 else "shorter"
    course = f"correlation of their changes {correlation.correlation:+.2f}"
    return (f"in this run {comparative} episodes earn more: {course}",)


RULE = Rule(
    name="episode-length-jump",
    needs=(EPISODE_LENGTH,),
    at_least=MIN_SHIFT_POINTS,
    check=check,
    doc=__doc__,
    causes=("a change of behaviour", "another time limit, or another task"),
    remedies=("look at episodes on both sides of the step",),
    profiles=kinds.CONTROL,
    explained_by=(
        "environment-changed",
        "return-collapse",
        "kl-spike",
        "learning-rate-jump",
        "entropy-collapse",
        "learning-rate-too-high",
    ),
    thresholds=(MIN_LENGTH_CHANGE,),
)
