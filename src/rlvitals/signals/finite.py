"""Select the finite values of a series and scale them so that squares cannot overflow."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLOAT_ROUNDING = 1e-12  # relative: a smaller difference is float64 rounding


def finite(values: Array) -> Array:
    """Return the finite values in order, as float64, without NaN and infinities."""
    column = np.asarray(values, dtype=np.float64).ravel()
    return column[np.isfinite(column)]


def is_constant(values: Array) -> bool:
    """Return True if finite values differ by no more than rounding, or are fewer than two."""
    if values.size < 2:
        return True
    low, high = float(values.min()), float(values.max())
    return high / 2 - low / 2 <= FLOAT_ROUNDING * max(abs(low), abs(high))


def clip_extremes(values: Array) -> Array:
    """Clip the largest and the smallest of finite values to the next in rank.

    One outlier, however far, then changes no statistic by more than the next in rank does. Fewer
    than three values are returned as they are.
    """
    if values.size < 3:
        return values
    ordered = np.sort(values)
    return np.clip(values, ordered[1], ordered[-2])


def clip_outliers(values: Array) -> Array:
    """Clip the largest and the smallest value where they lie far outside of all others.

    Far is more than the range of the others away: that is one outlier, and no level. Fewer than
    three finite values are returned as they are.
    """
    clipped = clip_extremes(values)
    low, high = (float(clipped.min()), float(clipped.max())) if clipped.size else (0.0, 0.0)
    width = high / 2 - low / 2
    far = np.abs(values / 2 - clipped / 2) > width
    return np.where(far, clipped, values)


def scale_to_unit(values: Array) -> tuple[Array, int]:
    """Divide finite values by a power of two, exactly, so that squares cannot overflow.

    Return the values in (-1, 1) and the exponent for `unscaled`.
    """
    if not values.size:
        return values, 0
    exponent = math.frexp(float(np.abs(values).max()))[1]
    return np.ldexp(values, -exponent), exponent


def unscale(number: float, exponent: int) -> float:
    """Undo `scaled` for one number; return an infinity beyond the range of float64."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.copysign(math.inf, number)
