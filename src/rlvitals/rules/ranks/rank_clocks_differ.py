"""The clock of a rank's machine differs from those of the others.

## What it sees
The wall time of each rank's row against the median over the ranks at the same step. Only of ranks
in step with each other: where the times between rows vary, they vary on all ranks alike, which
nothing but waiting for each other brings about. There an offset of more than 5 s and of 2 steps,
that changes by less than a half of itself over the run, is that of the clock. At least 3 ranks and
20 steps. A note, never more: it does not change what is learned.

## Why it matters
Rows, logs and traces of several machines are put in order by their times. With a clock that is
off, an effect seems to precede its cause, a living process looks lost, and signatures of object
stores expire.

## What to do
Start the time service of that machine: `chronyc tracking`, `timedatectl`.

## When it is wrong
Ranks of a pipeline that are in step but several steps apart by design.

## References
- Mills 2010, "Computer Network Time Synchronization".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.types import Trace

CLOCK_OFFSET = Threshold(
    "rank-clocks-differ.seconds", 5.0, "offset of a clock that does not matter", low=0.001
)
MIN_CLOCK_RANKS, MIN_CLOCK_STEPS = 3, 20
IN_STEP_SCATTER = 0.3  # scatter of a rank's own times between rows, x that of the ranks' median
STEADY_SHARE = 0.5  # x the offset: the most that it may change


def check(trace: Trace) -> Answer:
    """Compare the wall times of the ranks' rows."""
    name, values = max(trace.ranks.items(), key=lambda item: len(item[1].steps))
    complete = np.isfinite(values.times).all(axis=0)
    times, steps = values.times[:, complete], values.steps[complete]
    if len(values.ranks) < MIN_CLOCK_RANKS or len(steps) < MIN_CLOCK_STEPS:
        return Undecided("too few ranks, or steps that all of them give a time for")
    offsets = times - np.median(times, axis=0)
    typical = np.median(offsets, axis=1)
    row = int(np.abs(typical).argmax())
    between = np.median(np.diff(times, axis=1), axis=0)
    limit = float(max(CLOCK_OFFSET.on(trace), 2 * np.median(between)))
    if abs(typical[row]) <= limit:
        return Clear()
    if np.ptp(offsets[row]) > STEADY_SHARE * abs(typical[row]) or not _in_step(times[row], between):
        return Undecided("the ranks are not in step: their times cannot be compared")
    direction = "ahead of" if typical[row] > 0 else "behind"
    return Finding(
        f"the clock of rank {values.ranks[row]} is {abs(typical[row]):.3g} s {direction} that "
        "of the other ranks",
        severity=Severity.NOTE,
        metric=name,
        began=int(steps[0]),
        ended=min(int(steps[-1]), trace.last_step),
        observed=float(abs(typical[row])),
        bound=CLOCK_OFFSET.bound(
            trace, "seconds: default, or 2 steps", limit / CLOCK_OFFSET.on(trace)
        ),
        limit_on_curve=False,
    )


def _in_step(times: NDArray[np.float64], between: NDArray[np.float64]) -> bool:
    """Tell whether a rank's times between rows [n] vary as the ranks' median does."""
    return bool(np.std(np.diff(times) - between) <= IN_STEP_SCATTER * np.std(between))


RULE = Rule(
    name="rank-clocks-differ",
    needs=(),
    check=check,
    doc=__doc__,
    causes=("no time service runs on that machine", "the time zone was set by changing the clock"),
    remedies=("start the time service: `chronyc tracking` shows the offset",),
    thresholds=(CLOCK_OFFSET,),
    many_ranks=True,
)
