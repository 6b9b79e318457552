"""Which of a handful of pictures a loss-like curve looks like."""

import math
from typing import Literal

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scaled
from rlvitals.signals.oscillation import oscillation
from rlvitals.signals.plateau import plateau_start
from rlvitals.signals.spread import noise_sd, robust_sd
from rlvitals.signals.trend import trend

Shape = Literal["converged", "still falling", "still rising", "unstable", "flat"]

LEAST = 20  # values below which a curve has no shape yet
PARTS = 20  # stretches whose means span the curve's range
SHORTEST_TAIL = 12  # values that a trend needs
HALF = 0.5
TAIL = 0.3  # share of the curve, its last, that says where it goes now
ROUGHER = 4.0  # roughness, last half / first 30 %, at which a curve has become unstable
REVERSALS = 3  # turns by 30 % of the range that make a curve unstable
MATERIAL = 0.1  # share of the range by which a tail must change to be still moving
LOUD = 0.1  # share of the range that the last half's noise must reach to be called unstable
DEEP = 0.25  # share of the median loss that swings must reach to be called unstable
# Correlation of neighbours below which a curve alternates: white noise of n values is below -3 of
# its own standard errors, 1 / sqrt(n), once in 700 curves.
ALTERNATES, STANDARD_ERRORS = -0.5, 3.0
SLACK = 2.0  # standard deviations of scatter within which a flat curve's whole change must lie


def tail_ratio(values: Array, count: int = 10) -> float | None:
    """Return std / |mean| of the last `count` finite values; below 0.01 a loss is called converged.

    The population standard deviation, as in the formula's origin. `None` for fewer than `count`
    values (at least 2), and where the mean is so near 0, beside the scatter or the values'
    rounding, that the ratio says nothing: a loss may be negative or cross 0.
    """
    x = finite(values)
    size = max(int(count), 2)
    if x.size < size:
        return None
    tail = x[-size:]
    if is_constant(tail):
        return None if not tail.any() else 0.0
    unit = scaled(tail)[0]
    mean, spread = abs(float(unit.mean())), float(unit.std())
    # Within two standard errors of 0 the mean has no known sign, and the ratio no known size.
    return None if mean <= 2 * spread / math.sqrt(size) else spread / mean


def shape(values: Array) -> Shape | None:
    """Name the picture: converged, still falling, still rising, unstable or flat.

    converged: fell and is flat now. still falling, still rising: the last 30 % moves, or the last
    half with the last 30 % going along, by an interval that excludes 0 and by more than 10 % of
    the range. unstable: grew over 4 times as rough as it was (mean square step) with noise above
    10 % of its range, or turned 3 times by more than 30 % of its range and 25 % of the loss,
    which must be positive throughout, or goes up and down by 25 % of it from one value to the next.
    flat: is flat and has not fallen, as white noise or a
    curve that rose to its plateau. Computed over the finite values. `None` for fewer than 20,
    and where noise hides the answer.
    """
    x = finite(values)
    if x.size < LEAST:
        return None
    if is_constant(x):
        return "flat"
    unit = scaled(x)[0]
    return "unstable" if _unstable(unit) else _course(unit)


def _unstable(values: Array) -> bool:
    found = oscillation(values)
    if found is None:
        return False
    rougher = ROUGHER * (1 + LEAST / values.size)  # short stretches differ more by chance
    loud = (noise_sd(values[values.size // 2 :]) or 0.0) > LOUD * _span(values)
    # A swing is large or small beside the loss itself, where the loss has a zero to stand on.
    deep = values.min() > 0 and found.amplitude > DEEP * float(np.median(values))
    if (found.reversals >= REVERSALS and deep) or (found.ratio >= rougher and loud):
        return True
    return _alternates(values)


def _alternates(values: Array) -> bool:
    """Tell whether a positive curve swings widely from each value to the next."""
    off = values - values.mean()
    neighbours = float(np.mean(off[1:] * off[:-1])) / float(np.mean(off**2))
    limit = min(ALTERNATES, -STANDARD_ERRORS / math.sqrt(values.size))
    swing = float(np.median(np.abs(np.diff(values))))
    return values.min() > 0 and neighbours < limit and swing > DEEP * float(np.median(values))


def _course(values: Array) -> Shape | None:
    least = MATERIAL * _span(values)
    whole, half, tail = (
        trend(values[-max(round(share * values.size), SHORTEST_TAIL) :])
        for share in (1.0, HALF, TAIL)
    )
    if whole is None or half is None or tail is None:
        return None
    # Where noise hides the tail's own slope, the last half may show it, if the tail goes along.
    for moving in (tail, half):
        if moving.falls and max(moving.change, tail.change) < -least:
            return "still falling"
        if moving.rises and min(moving.change, tail.change) > least:
            return "still rising"
    start = plateau_start(values)
    if start is not None:
        fell = np.median(values[:start]) > np.median(values[start:])
        return "converged" if fell else "flat"
    wide = max(-whole.change_low, whole.change_high)
    return "flat" if wide <= SLACK * (robust_sd(values) or 0.0) else None


def _span(values: Array) -> float:
    return float(np.ptp(block_means(values, math.ceil(values.size / PARTS))))
