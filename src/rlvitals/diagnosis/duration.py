"""Training time of a run, in total and up to each step.

Everything that prints a duration asks here, so that a run has one. Pauses between attempts do not
count.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.throughput import ELAPSED, STEP_TIME
from rlvitals.types import Series, Trace

CLOCK_STEP = 1.0  # seconds that a clock may be set back within one attempt
PAUSE_FACTOR = 20.0  # times the usual distance of two rows, and
PAUSE_SECONDS = 600.0  # at least so long: a longer silence is a pause between attempts
BY_STEPS = "the times of its steps"


def clock(trace: Trace) -> Series | None:
    """Return seconds trained by step, rising; None where the log has no times."""
    elapsed = trace.numbers(ELAPSED.name, least=2)
    if elapsed is not None:
        gaps = np.diff(elapsed.values, prepend=0.0)
        # The clock of a resumed attempt starts anew: its first value is what it has taken so far.
        gaps = np.where(gaps < -CLOCK_STEP, elapsed.values, gaps)
        return _without_pauses(elapsed, gaps)
    timed = [s.where(np.isfinite(s.times)) for s in trace.series.values()]
    longest = max((s for s in timed if len(s) > 1), key=len, default=None)
    if longest is None:
        return None
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
        return None, BY_STEPS
    # A row speaks of the steps since the one before it; the first, of as many as the next.
    steps = np.diff(per_step.steps, prepend=2 * per_step.steps[0] - per_step.steps[1])
    return float((per_step.values * steps).sum()), BY_STEPS


def _without_pauses(rows: Series, gaps: NDArray[np.float64]) -> Series | None:
    """Add up the seconds [n] before each row, pauses left out; None where they come to nothing."""
    between = gaps[1:]
    usual = float(np.median(between[between >= 0])) if (between >= 0).any() else 0.0
    pause = max(PAUSE_FACTOR * usual, PAUSE_SECONDS)
    intervals = np.where((gaps < 0) | (gaps > pause), 0.0, gaps)
    intervals[0] = max(float(gaps[0]), 0.0)  # what an attempt took before its first row
    worked = np.cumsum(intervals)
    return Series(rows.steps, rows.times, worked) if worked[-1] > 0 else None
