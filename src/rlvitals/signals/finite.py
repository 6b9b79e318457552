"""Select the finite values of a series and scale them so that squares cannot overflow."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 1e-12  # relative: below it a difference is float64 arithmetic, not a measurement


def finite(values: Array) -> Array:
    """Return the finite values in order, as float64, without NaN and infinities."""
    column = np.asarray(values, dtype=np.float64).ravel()
    return column[np.isfinite(column)]


def is_constant(values: Array) -> bool:
    """Return True if finite values differ by no more than rounding, or are fewer than two."""
    if values.size < 2:  # noqa: PLR2004
        return True
    low, high = float(values.min()), float(values.max())
    return high / 2 - low / 2 <= ROUNDING * max(abs(low), abs(high))


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
