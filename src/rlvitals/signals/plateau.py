"""From where on a series that had moved moves no more."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scaled
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.trend import trend

LEAST = 20  # values below which a plateau is not told from a pause
TAIL = 0.3  # share of the series that must be flat, but at least 12 values, for a trend
SHORTEST_TAIL = 12
TOLERANCE = 0.15  # share of the earlier range within which the tail's change must lie
PARTS = 20  # stretches by which the course of the series is followed


def plateau_start(values: Array, *, tolerance: float = TOLERANCE) -> int | None:
    """Return the index from which the series no longer changes materially, for its own range.

    The last 30 % must be flat: the 95 % interval of its change lies within +- `tolerance` of the
    range that the series had gone through before. The plateau then reaches back as far as the
    series keeps to the tail's level and its interval stays as narrow. Computed over the finite
    values; the index counts in the values given. `None` where the tail still changes, where it
    is too short or too noisy to say, and where there was no earlier change to level off from
    (a series flat throughout has no plateau; neither has one of fewer than 20 values).
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < LEAST or is_constant(x):
        return None
    unit = scaled(x)[0]
    width = math.ceil(unit.size / PARTS)
    course = block_means(unit, width)
    latest = unit.size - max(round(TAIL * unit.size), SHORTEST_TAIL)
    level = float(np.median(unit[latest:]))
    span = float(np.ptp(course))
    noise = 3 * (noise_sd(unit) or 0.0) / math.sqrt(width)
    if float(np.abs(course[: max(latest // width, 1)] - level).max()) <= 2 * noise:
        return None
    away = np.flatnonzero(np.abs(course - level) > max(tolerance * span, noise))
    start = unit.size - (course.size - 1 - int(away[-1])) * width if away.size else 0
    for begin in (start, (start + latest) // 2, latest):
        if begin <= latest and _flat(unit[begin:], tolerance * span):
            return int(np.flatnonzero(np.isfinite(column))[begin])
    return None


def _flat(values: Array, limit: float) -> bool:
    found = trend(values)
    return found is not None and -limit <= found.change_low and found.change_high <= limit
