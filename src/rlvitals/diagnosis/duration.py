"""Training time of a run, in total and up to each step.

Everything that prints a duration asks here, so that a run has one. Pauses between attempts do not
count.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.throughput import ELAPSED, STEP_TIME
from rlvitals.types import Series, Trace

PAUSE_FACTOR = 20.0  # x the usual interval of two rows
MIN_PAUSE_SECONDS = 600.0  # a longer gap than both is a pause between attempts
STEP_TIMES_SOURCE = "the times of its steps"


def clock(trace: Trace, max_rows: int = 1 << 20) -> Series | None:
    """Return seconds trained by step, rising; None where the log has no times.

    Of more than `max_rows` rows only so many are returned, the last among them: whole columns of a
    large run are not copied.
    """
    elapsed = trace.numbers(ELAPSED.name, least=2)
    if elapsed is not None:
        gaps = np.diff(elapsed.values, prepend=0.0)
        # The clock of a resumed attempt starts anew: its first value is what it has taken so far.
        # A clock may be set back by 1 s within one attempt.
        gaps = np.where(gaps < -1.0, elapsed.values, gaps)
        return _without_pauses(elapsed, gaps)
    timed = [(int(np.isfinite(s.times).sum()), s) for s in trace.series.values()]
    count, longest = max(timed, key=lambda pair: pair[0], default=(0, None))
    if longest is None or count <= 1:
        return None
    if count < len(longest):
        longest = longest.where(np.isfinite(longest.times))
    if count > max_rows:
        return _clock_in_parts(longest, max_rows)
    return _without_pauses(longest, np.diff(longest.times, prepend=longest.times[0]))


def training_time(trace: Trace) -> tuple[float | None, str]:
    """Return the seconds that a run has trained, and what says so; None where nothing does."""
    runtime = trace.number("train_runtime")  # as Hugging Face's Trainer writes at the end
    if runtime is not None:
        return runtime, "its log"
    by_row = clock(trace)
    if by_row is not None:
        logged = trace.numbers(ELAPSED.name, least=2) is not None
        return float(by_row.values[-1]), "its log" if logged else "the times of its rows"
    per_step = trace.numbers(STEP_TIME.name, least=2)
    if per_step is None:
        return None, STEP_TIMES_SOURCE
    # A row speaks of the steps since the one before it; the first, of as many as the next.
    steps = np.diff(per_step.steps, prepend=2 * per_step.steps[0] - per_step.steps[1])
    return float((per_step.values * steps).sum()), STEP_TIMES_SOURCE


def _clock_in_parts(rows: Series, max_rows: int) -> Series | None:
    """Add up the seconds before each k-th row, pauses left out; None where they come to nothing."""
    count, every = len(rows), -(-len(rows) // max_rows)
    batch = every * max(max_rows // 16, 1)  # rows that are looked at together
    sampled = np.arange(1, count, every)
    pause = _longest_gap(rows.times[sampled] - rows.times[sampled - 1])
    sums = []
    for start in range(0, count, batch):
        times = rows.times[start : start + batch]
        gaps = np.diff(times, prepend=rows.times[max(start - 1, 0)])
        gaps[(gaps < 0) | (gaps > pause)] = 0.0
        sums.append(np.add.reduceat(gaps, np.arange(0, len(gaps), every)))
    worked = np.cumsum(np.concatenate(sums))
    ends = np.minimum(np.arange(1, len(worked) + 1) * every - 1, count - 1)
    return Series(rows.steps[ends], rows.times[ends], worked) if worked[-1] > 0 else None


def _without_pauses(rows: Series, gaps: NDArray[np.float64]) -> Series | None:
    """Add up the seconds [n] before each row, pauses left out; None where they come to nothing."""
    pause = _longest_gap(gaps[1:])
    first = max(float(gaps[0]), 0.0)  # what an attempt took before its first row
    worked = np.where((gaps < 0) | (gaps > pause), 0.0, gaps)
    worked[0] = first
    worked = np.cumsum(worked)
    return Series(rows.steps, rows.times, worked) if worked[-1] > 0 else None


def _longest_gap(gaps: NDArray[np.float64]) -> float:
    """Return the seconds between two rows beyond which a gap is a pause."""
    between = gaps[gaps >= 0]
    usual = float(np.median(between)) if len(between) else 0.0
    return max(PAUSE_FACTOR * usual, MIN_PAUSE_SECONDS)
