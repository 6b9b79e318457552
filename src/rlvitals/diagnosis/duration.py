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
    timed = [(int(np.isfinite(s.times).sum()), s) for s in trace.series.values()]
    count, longest = max(timed, key=lambda pair: pair[0], default=(0, None))
    if longest is None or count <= 1:
        return None
    if count < len(longest):
        longest = longest.where(np.isfinite(longest.times))
    gaps = np.zeros(count)  # of a large run an array of this size is what can be spared
    np.subtract(longest.times[1:], longest.times[:-1], out=gaps[1:])
    return _without_pauses(longest, gaps)


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
    """Add up the seconds [n] before each row, pauses left out; None where they come to nothing.

    `gaps` is overwritten.
    """
    between = gaps[1:][gaps[1:] >= 0]
    usual = float(np.median(between, overwrite_input=True)) if len(between) else 0.0
    del between
    pause = max(PAUSE_FACTOR * usual, PAUSE_SECONDS)
    first = max(float(gaps[0]), 0.0)  # what an attempt took before its first row
    gaps[(gaps < 0) | (gaps > pause)] = 0.0
    gaps[0] = first
    worked = np.cumsum(gaps, out=gaps)
    return Series(rows.steps, rows.times, worked) if worked[-1] > 0 else None
