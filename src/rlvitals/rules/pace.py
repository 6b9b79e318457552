"""How fast a run goes, interval by interval, from the steps and whatever clock the log has."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.throughput import STEPS_PER_SECOND
from rlvitals.rules.shapes import LASTING
from rlvitals.types import Series, Trace

# seconds: SB3 logs whole ones, so shorter windows are mostly rounding; and whatever the clock,
# a collector's garbage, a checkpoint or an evaluation fills a shorter one.
SHORTEST = 20.0
SLOWER = 0.7  # of the run's own past
MOSTLY = 0.8  # of the windows since then
BEFORE, AFTER = 3, 5  # windows that say what was usual, and that must be slow
LEAST = BEFORE + AFTER
# Who logs steps per second of each interval, over steps of the environments: of other rates it is
# not known what they are a mean of, or they are means since the start.
PER_INTERVAL = ("rlvitals-ppo",)
WINDOWS = 30  # enough to date a change, few enough to be steady
WARM_UP = 0.1  # of the run


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
    # A run that becomes ten times slower spends less than a tenth of its time on its first half.
    keep = _past(clock.values, WARM_UP) | _past(at, WARM_UP)
    clock, at = clock.where(keep), at[keep]
    return _rates(clock, at) if len(clock) else None


def _past(values: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    limit = float(values[0] + share * (values[-1] - values[0]))
    late: NDArray[np.bool_] = values >= limit
    return late


def _clock(trace: Trace) -> Series | None:
    """Return seconds by step, rising.

    The logged elapsed time, else the sums of what each interval took by its logged rate, else the
    wall times of a series.
    """
    elapsed = trace.get("throughput/elapsed")
    found = elapsed.finite() if elapsed is not None else by_rate(trace)
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


def by_rate(trace: Trace) -> Series | None:
    """Return seconds of collecting and learning by step; None where no rate tells them."""
    source = trace.measured.get(STEPS_PER_SECOND.name)
    if source is None or source.framework not in PER_INTERVAL:
        return None
    logged = trace[STEPS_PER_SECOND.name].finite()
    logged = logged.where(logged.values > 0)
    steps = np.maximum(np.diff(logged.steps, prepend=logged.steps[:1]), 0)
    return Series(logged.steps, logged.times, np.cumsum(steps / logged.values))


def _after(values: NDArray[np.float64], edge: int, length: float) -> int:
    """Return the first index whose value lies at least `length` above that of `edge`."""
    at = max(int(np.searchsorted(values, values[edge] + length)), edge + 1)
    # The sum is rounded as the difference is not.
    while at - 1 > edge and values[at - 1] - values[edge] >= length:
        at -= 1
    while at < values.size and values[at] - values[edge] < length:
        at += 1
    return at


def _rates(clock: Series, at: NDArray[np.float64]) -> Pace | None:
    """Cut a run into windows of a thirtieth of its time or of its steps, whichever is shorter."""
    seconds = clock.values
    length = max(SHORTEST, float(seconds[-1] - seconds[0]) / WINDOWS)
    stride = float(at[-1] - at[0]) / WINDOWS
    edges = [0]
    while True:
        by_steps = max(_after(seconds, edges[-1], SHORTEST), _after(at, edges[-1], stride))
        edge = min(_after(seconds, edges[-1], length), by_steps)
        if edge >= seconds.size:
            break
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
