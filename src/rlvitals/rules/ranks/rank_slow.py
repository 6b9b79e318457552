"""A rank takes longer for each step than the others: a straggler.

## What it sees
The time of a step on each rank: `step_time` where the ranks log it, else the wall time between
their rows. Each is divided by the median over the ranks at the same step; a rank is slow where the
lower end of the 99.9 % interval of its median ratio, over the second half of the run, lies above
1.25. The interval is that of order statistics, widened for the number of ranks. At least 3 ranks
and 20 steps.

## Why it matters
Ranks that wait for each other at every step are as slow as the slowest: of 64 accelerators, one
at half speed costs 32.

## What to do
Look at the rank's machine: temperature and clock of its accelerator, other processes, its disk and
network. Exchange it for another one, and see whether the slowness moves with the machine or with
the data.

## When it is wrong
Ranks that synchronise at every step have rows at the same moments, whoever is slow: then only a
`step_time` that each rank measures before it waits shows the straggler. A rank with more to do by
design, such as one that evaluates, is slow as intended.

## References
- Lin et al. 2025, "Understanding Stragglers in Large Model Training Using What-if Analysis".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.throughput import STEP_TIME
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.signals.rank_scatter import block_medians, median_interval
from rlvitals.types import Trace

SLOW_RATIO = Threshold(
    "rank-slow.ratio", 1.25, "time of a step, x the median of the ranks", low=1.0
)
MIN_SLOW_RANKS = 3  # of two, the median is as far from either
MIN_SLOW_STEPS = 20
INTERVAL_CHANCE = 0.001  # that a rank of a run without a straggler lies outside its interval


def check(trace: Trace) -> Answer:
    """Compare each rank's time of a step with the median of the ranks."""
    name, steps, seconds, ranks = step_times(trace)
    if len(ranks) < MIN_SLOW_RANKS or len(steps) < MIN_SLOW_STEPS:
        return Undecided("too few ranks, or steps that all of them give a time for")
    middle = np.nanmedian(seconds, axis=0)
    if not (middle > 0).all():
        return Undecided("the ranks' clocks go back")
    ratios = seconds / middle
    intervals = _intervals(ratios)
    slowest = max(range(len(ranks)), key=lambda row: intervals[row][1])
    ratio, low, high = intervals[slowest]
    if low <= SLOW_RATIO.on(trace):
        return Clear()
    medians, starts = block_medians(ratios, 8)
    slow = medians[slowest] > SLOW_RATIO.on(trace)
    first = len(slow) - int(np.argmin(slow[::-1])) if not slow.all() else 0
    other_count = sum(interval[1] > SLOW_RATIO.on(trace) for interval in intervals) - 1
    return Finding(
        f"rank {ranks[slowest]} takes {ratio:.3g} x the time of a step that the ranks take in the "
        f"median (99.9 % interval {low:.3g} to {high:.3g})",
        severity=Severity.WARNING,
        metric=name,
        began=int(steps[starts[min(first, len(starts) - 1)]]),
        ended=min(int(steps[-1]), trace.last_step),
        observed=ratio,
        bound=SLOW_RATIO.bound(trace, "default: 1.25 x the median of the ranks"),
        limit_on_curve=False,
        evidence=(f"as slow are {other_count} more ranks",) if other_count else (),
    )


def slow_rows(seconds: NDArray[np.float64], limit: float) -> list[int]:
    """Return the rows of the slow ranks, the slowest first; `seconds` [r, n] of each step."""
    if len(seconds) < MIN_SLOW_RANKS or seconds.shape[1] < MIN_SLOW_STEPS:
        return []
    middle = np.median(seconds, axis=0)
    if not (middle > 0).all():
        return []
    intervals = _intervals(seconds / middle)
    slow = [row for row, (_, low, _) in enumerate(intervals) if low > limit]
    return sorted(slow, key=lambda row: -intervals[row][1])


def _intervals(ratios: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Return each rank's median ratio over the second half of the steps, and its interval."""
    half = ratios.shape[1] // 2
    return [median_interval(row[half:], INTERVAL_CHANCE / len(ratios)) for row in ratios]


def step_times(
    trace: Trace,
) -> tuple[str, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return a metric's name, the steps [n], the time of a step [r, n] and the ranks [r].

    Of the times of rows, n is one less than the rows. Only steps that every rank logged count.
    """
    timed = trace.ranks.get(STEP_TIME.name)
    if timed is not None:
        complete = np.isfinite(timed.values).all(axis=0)
        return STEP_TIME.name, timed.steps[complete], timed.values[:, complete], timed.ranks
    name, values = max(trace.ranks.items(), key=lambda item: len(item[1].steps))
    complete = np.isfinite(values.times).all(axis=0)
    steps, times = values.steps[complete], values.times[:, complete]
    return name, steps[1:], np.diff(times, axis=1) / np.diff(steps), values.ranks


RULE = Rule(
    name="rank-slow",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "the rank's machine is slower: a hot accelerator, other processes, a slow disk",
        "the rank has more work: longer episodes or samples",
    ),
    remedies=(
        "look at the clock and the temperature of that rank's accelerator",
        "exchange the machine, or leave it out of the launch",
        "give the ranks parts of equal work",
    ),
    thresholds=(SLOW_RATIO,),
    many_ranks=True,
)
