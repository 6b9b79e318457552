"""What every signal does first: keep the finite values and bring them to a safe scale."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 1e-12  # relative: below it a difference is float64 arithmetic, not a measurement


def finite(values: Array) -> Array:
    """Return the finite values in their order, as float64; NaN and infinities are left out."""
    column = np.asarray(values, dtype=np.float64).ravel()
    return column[np.isfinite(column)]


def is_constant(values: Array) -> bool:
    """Say whether finite values differ by no more than float64 rounding; so do 0 and 1 values."""
    if values.size < 2:  # noqa: PLR2004
        return True
    low, high = float(values.min()), float(values.max())
    return high / 2 - low / 2 <= ROUNDING * max(abs(low), abs(high))


def scaled(values: Array) -> tuple[Array, int]:
    """Divide finite values by a power of two, exactly, so that squares cannot overflow.

    Returns the values in (-1, 1) and the exponent for `unscaled`.
    """
    if not values.size:
        return values, 0
    exponent = math.frexp(float(np.abs(values).max()))[1]
    return np.ldexp(values, -exponent), exponent


def unscaled(number: float, exponent: int) -> float:
    """Undo `scaled` for one number; beyond float64's range the answer is an infinity."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.copysign(math.inf, number)
