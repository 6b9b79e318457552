"""Find the start of a plateau, and a reward that has reached its maximum."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit
from rlvitals.signals.level import first_last_change
from rlvitals.signals.noise import MIN_NOISE_POINTS
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.trend import trend

MIN_PLATEAU_POINTS = 20  # values below which a plateau cannot be separated from a pause
PLATEAU_TOLERANCE = 0.15  # share of the earlier range within which the tail's change must lie


def plateau_start(values: Array, *, tolerance: float = PLATEAU_TOLERANCE) -> int | None:
    """Return the index from which the series no longer changes relative to its range.

    The last 30 % must be flat: the 95 % interval of its change lies within +- `tolerance` of the
    earlier range of the series. The plateau starts where the series reaches the tail's level and
    the interval from there on is as narrow. Computed over the finite values; the index refers to
    the input. `None` where the tail still changes, where it is too short or too noisy, and where
    there was no earlier change (a series that is flat throughout has no plateau; neither has one
    of fewer than 20 values).
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < MIN_PLATEAU_POINTS or is_constant(x):
        return None
    unit = scale_to_unit(x)[0]
    width = math.ceil(unit.size / 20)
    course = block_means(unit, width)
    latest = unit.size - max(round(0.3 * unit.size), MIN_NOISE_POINTS)
    level = float(np.median(unit[latest:]))
    span = float(np.ptp(course))
    noise = 3 * (noise_sd(unit) or 0.0) / math.sqrt(width)
    if float(np.abs(course[: max(latest // width, 1)] - level).max()) <= 2 * noise:
        return None
    outliers = np.flatnonzero(np.abs(course - level) > max(tolerance * span, noise))
    start = unit.size - (course.size - 1 - int(outliers[-1])) * width if outliers.size else 0
    limit = tolerance * span
    for begin in (start, (start + latest) // 2, latest):
        line = trend(unit[begin:]) if begin <= latest else None
        if line is not None and -limit <= line.change_low and line.change_high <= limit:
            return int(np.flatnonzero(np.isfinite(column))[begin])
    return None


def is_share_of_full_batches(values: Array, *, min_full: int = 3) -> bool:
    """Return whether values [n] are means of rewards between 0 and 1, `min_full` of them 1."""
    return bool(values.min() >= 0 and values.max() == 1 and (values == 1).sum() >= min_full)


def ends_full(values: Array, top: float) -> bool:
    """Return whether finite values [n] are shares whose last fifth is `top` or more."""
    levels = first_last_change(values)
    if levels is None:
        return False
    return bool(values.min() >= 0 and values.max() <= 1 and levels[1] >= top)
