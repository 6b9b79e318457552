"""How fast a run goes, interval by interval, from the steps and whatever clock the log has."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.records import Series, Trace
from rlvitals.rules.shapes import LASTING

# seconds: SB3 logs whole ones, so shorter windows are mostly rounding; and whatever the clock,
# a collector's garbage, a checkpoint or an evaluation fills a shorter one.
SHORTEST = 20.0
SLOWER = 0.7  # of the run's own past
MOSTLY = 0.8  # of the windows since then
BEFORE, AFTER = 3, 5  # windows that say what was usual, and that must be slow
LEAST = BEFORE + AFTER
WINDOWS = 30  # at most: enough to date a change, few enough to be steady


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate over successive windows of the run."""

    steps: NDArray[np.int64]  # [windows], the step at which each ends
    rates: NDArray[np.float64]  # [windows], per second
    seconds: float  # mean length of a window


def pace(trace: Trace, counted: Series | None = None) -> Pace | None:
    """Return steps per second, or the rate of `counted`'s values; None without a usable clock.

    The first tenth is left out: compilation, empty replay buffers, warm-up.
    """
    clock = _clock(trace)
    if clock is None:
        return None
    at = clock.steps.astype(np.float64)
    if counted is not None:
        both = np.isin(clock.steps, counted.steps)
        clock = clock.where(both)
        if not len(clock):
            return None
        at = counted.values[np.searchsorted(counted.steps, clock.steps)]
        if not len(clock):
            return None
    keep = clock.values >= clock.values[0] + 0.1 * (clock.values[-1] - clock.values[0])
    clock, at = clock.where(keep), at[keep]
    passed = clock.values[-1] - clock.values[0] if len(clock) else 0.0
    length = max(SHORTEST, passed / WINDOWS)
    return _rates(clock, at, length)


def _clock(trace: Trace) -> Series | None:
    """Return seconds by step, rising: the logged elapsed time, else the wall times of a series."""
    elapsed = trace.get("throughput/elapsed")
    found = elapsed.finite() if elapsed is not None else None
    if found is None:
        by_length = sorted(trace.series.values(), key=len, reverse=True)
        timed = (s for s in by_length if np.count_nonzero(np.isfinite(s.times)) > 1)
        if (longest := next(timed, None)) is None:
            return None
        found = Series(longest.steps, longest.times, longest.times).finite()
    if not len(found):
        return None
    keep = np.concatenate(([True], np.diff(found.steps) > 0))
    found = found.where(keep)
    # A resumed run's clock starts anew or has a gap: only a rising clock is a clock.
    return found if len(found) > 1 and (np.diff(found.values) >= 0).all() else None


def _after(clock: NDArray[np.float64], edge: int, length: float) -> int | None:
    """Return the first index at least `length` seconds after `edge`; None without one."""
    at = max(int(np.searchsorted(clock, clock[edge] + length)), edge + 1)
    # The sum is rounded as the difference is not.
    while at - 1 > edge and clock[at - 1] - clock[edge] >= length:
        at -= 1
    while at < clock.size and clock[at] - clock[edge] < length:
        at += 1
    return at if at < clock.size else None


def _rates(clock: Series, at: NDArray[np.float64], length: float) -> Pace | None:
    edges = [0]
    while (edge := _after(clock.values, edges[-1], length)) is not None:
        edges.append(edge)
    if len(edges) < 3:  # noqa: PLR2004 - two windows at least
        return None
    seconds = np.diff(clock.values[edges])
    return Pace(clock.steps[edges[1:]], np.diff(at[edges]) / seconds, float(seconds.mean()))


def slow_since(speed: Pace, slower: float = SLOWER) -> int | None:
    """Return the first window of the slow stretch that lasts to the end; None if there is none.

    Slow is below `slower` of the median before it.
    """
    tail = max(AFTER, int(LASTING * len(speed.rates)))
    for split in range(BEFORE, len(speed.rates) - tail + 1):
        slow = speed.rates[split:] < slower * float(np.median(speed.rates[:split]))
        if slow.mean() >= MOSTLY and slow[0] and slow[-1]:
            return split
    return None
