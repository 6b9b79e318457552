"""Throughput per interval, from the steps and the clock that the log has."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.throughput import STEPS_PER_SECOND
from rlvitals.rules.shapes import MIN_LASTING_SHARE
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

# seconds: SB3 logs whole ones, so shorter windows are mostly rounding; and whatever the clock,
# a collector's garbage, a checkpoint or an evaluation fills a shorter one.
MIN_WINDOW_SECONDS = 20.0
SLOW_PACE_FACTOR = 0.7  # of the run's own past
USUAL_WINDOWS, MIN_SLOW_WINDOWS = 3, 5  # before and after the change
MIN_PACE_WINDOWS = USUAL_WINDOWS + MIN_SLOW_WINDOWS
# Who logs steps per second of each interval, over steps of the environments: of other rates it is
# not known what they are a mean of, or they are means since the start.
PACE_WINDOWS = 30  # per run: dates a change, and averages noise
WARM_UP_SHARE = 0.1  # of the run


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate over successive windows of the run."""

    steps: NDArray[np.int64]  # [windows], the step at which each ends
    rates: NDArray[np.float64]  # [windows], per second
    seconds: float  # mean length of a window


def pace(trace: Trace, counter: Series | None = None) -> Pace | None:
    """Return steps per second, or the rate of `counter`'s values; None without a usable clock.

    The first tenth is left out: compilation, empty replay buffers, warm-up.
    """
    clock = _clock(trace)
    if clock is None:
        return None
    progress = clock.steps.astype(np.float64)
    if counter is not None:
        common = np.isin(clock.steps, counter.steps)
        clock = clock.where(common)
        if not len(clock):
            return None
        progress = counter.values[np.searchsorted(counter.steps, clock.steps)]
        if not len(clock):
            return None
    # A run that becomes ten times slower spends less than a tenth of its time on its first half.
    keep = _past(clock.values, WARM_UP_SHARE) | _past(progress, WARM_UP_SHARE)
    clock, progress = clock.where(keep), progress[keep]
    return _rates(clock, progress) if len(clock) else None


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
    clock = elapsed.finite() if elapsed is not None else by_rate(trace)
    if clock is None:
        by_length = sorted(trace.series.values(), key=len, reverse=True)
        timed = (s for s in by_length if np.count_nonzero(np.isfinite(s.times)) > 1)
        if (longest := next(timed, None)) is None:
            return None
        clock = Series(longest.steps, longest.times, longest.times).finite()
    if not len(clock):
        return None
    keep = np.concatenate(([True], np.diff(clock.steps) > 0))
    clock = clock.where(keep)
    # A resumed run's clock starts anew or has a gap: only a rising clock is a clock.
    return clock if len(clock) > 1 and (np.diff(clock.values) >= 0).all() else None


def by_rate(trace: Trace) -> Series | None:
    """Return seconds of collecting and learning by step; None where no rate tells them."""
    source = trace.measured.get(STEPS_PER_SECOND.name)
    if source is None or source.framework != "rlvitals-ppo":
        return None
    logged = trace[STEPS_PER_SECOND.name].finite()
    logged = logged.where(logged.values > 0)
    steps = np.maximum(np.diff(logged.steps, prepend=logged.steps[:1]), 0)
    return Series(logged.steps, logged.times, np.cumsum(steps / logged.values))


def _after(values: NDArray[np.float64], edge: int, length: float) -> int:
    """Return the first index whose value lies at least `length` above that of `edge`."""
    index = max(int(np.searchsorted(values, values[edge] + length)), edge + 1)
    # The sum is rounded as the difference is not.
    while index - 1 > edge and values[index - 1] - values[edge] >= length:
        index -= 1
    while index < values.size and values[index] - values[edge] < length:
        index += 1
    return index


def _rates(clock: Series, progress: NDArray[np.float64]) -> Pace | None:
    """Cut a run into windows of a thirtieth of its time or of its steps, whichever is shorter."""
    seconds = clock.values
    length = max(MIN_WINDOW_SECONDS, float(seconds[-1] - seconds[0]) / PACE_WINDOWS)
    stride = float(progress[-1] - progress[0]) / PACE_WINDOWS
    edges = [0]
    while True:
        by_steps = max(
            _after(seconds, edges[-1], MIN_WINDOW_SECONDS), _after(progress, edges[-1], stride)
        )
        edge = min(_after(seconds, edges[-1], length), by_steps)
        if edge >= seconds.size:
            break
        edges.append(edge)
    if len(edges) < 3:  # two windows at least
        return None
    seconds = np.diff(clock.values[edges])
    return Pace(clock.steps[edges[1:]], np.diff(progress[edges]) / seconds, float(seconds.mean()))


def slow_since(speed: Pace, slower: float = SLOW_PACE_FACTOR) -> int | None:
    """Return the first window of the slow stretch that lasts to the end; None if there is none.

    Slow is below `slower` of the median before it.
    """
    tail = max(MIN_SLOW_WINDOWS, int(MIN_LASTING_SHARE * len(speed.rates)))
    for split in range(USUAL_WINDOWS, len(speed.rates) - tail + 1):
        slow = speed.rates[split:] < slower * float(np.median(speed.rates[:split]))
        if slow.mean() >= 0.8 and slow[0] and slow[-1]:  # of the windows since then
            return split
    return None
