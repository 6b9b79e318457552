"""Robust statistics: median, standard deviation, point-to-point noise."""

import math

import numpy as np

from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit, unscale

NORMAL_MAD = 1.4826  # standard deviation / median absolute deviation of a normal: 1 / z(.75)


def median(values: Array) -> float | None:
    """Return the median of the finite values; `None` where there are none."""
    x = finite(values)
    if not x.size:
        return None
    unit, exponent = scale_to_unit(x)
    return unscale(_middle(unit), exponent)


def robust_sd(values: Array) -> float | None:
    """Return the standard deviation that a normal of the same spread would have.

    1.4826 x the median absolute deviation. Where more than half the values are equal that is 0,
    and the interquartile range is used, then the mean absolute deviation: the result is 0 only
    for constants. Computed over the finite values; `None` for fewer than 2.
    """
    x = finite(values)
    if x.size < 2:
        return None
    if is_constant(x):
        return 0.0
    unit, exponent = scale_to_unit(x)
    return unscale(_spread(unit - _middle(unit)), exponent)


def noise_sd(values: Array, *, order: int = 1) -> float | None:
    """Return the standard deviation of point-to-point noise, without trend and slow waves.

    From first differences, which for independent noise are sqrt(2) wider; autocorrelated noise
    is underestimated. The median difference is subtracted, so a straight line has no noise.
    `order` 2 uses second differences, which fast swings affect less. Computed over the finite
    values; `None` for fewer than 2 + `order`.
    """
    x = finite(values)
    if x.size < 2 + order:
        return None
    if is_constant(x):
        return 0.0
    unit, exponent = scale_to_unit(x)
    steps = np.diff(unit, order)
    wider = math.sqrt(math.comb(2 * order, order))  # sum of squared binomial coefficients
    return unscale(_spread(steps - _middle(steps)) / wider, exponent)


def difference_sd(values: Array) -> float:
    """Return the standard deviation of finite values [n], n >= 2, by those between neighbours.

    Unlike `noise_sd` it counts each difference in full: of values that are one of two the median
    difference is 0 or one of them.
    """
    unit, exponent = scale_to_unit(values)
    return unscale(float(np.diff(unit).std()) / math.sqrt(2), exponent)


def _spread(deviations: Array) -> float:
    around = np.abs(deviations)
    if (estimate := NORMAL_MAD * _middle(around)) > 0:
        return estimate
    low, high = np.quantile(deviations, (0.25, 0.75))
    if (estimate := float(high - low) / 1.3490) > 0:  # a normal's: 2 z(.75)
        return estimate
    return float(1.2533 * around.mean())  # a normal's: sqrt(pi / 2)


def _middle(values: Array) -> float:
    """Return the median of one or more finite values; `numpy.median` takes twice the time."""
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float(ordered[half - 1] + ordered[half]) / 2
