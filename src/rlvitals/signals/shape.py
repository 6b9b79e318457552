"""Classify the shape of a loss-like curve."""

import math
from typing import Literal

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit
from rlvitals.signals.noise import MIN_NOISE_POINTS
from rlvitals.signals.oscillation import oscillation
from rlvitals.signals.plateau import plateau_start
from rlvitals.signals.spread import noise_sd, robust_sd
from rlvitals.signals.trend import trend

Shape = Literal["converged", "still falling", "still rising", "unstable", "flat"]

MIN_SHAPE_POINTS = 20  # values below which a curve has no shape yet
MIN_SWING_SHARE = 0.25  # share of the median loss that swings must reach to be called unstable


def tail_ratio(values: Array, count: int = 10) -> float | None:
    """Return std / |mean| of the last `count` finite values; below 0.01 a loss is called converged.

    Uses the population standard deviation, as the original formula does. `None` for fewer than
    `count` values (at least 2), and where the mean is so near 0, relative to the scatter or the
    rounding of the values, that the ratio is undefined: a loss may be negative or cross 0.
    """
    size = max(int(count), 2)
    x = finite(values[-16 * size :])  # a long series is not copied for its end
    x = x if x.size >= size else finite(values)
    if x.size < size:
        return None
    tail = x[-size:]
    if is_constant(tail):
        return None if not tail.any() else 0.0
    unit = scale_to_unit(tail)[0]
    mean, spread = abs(float(unit.mean())), float(unit.std())
    # Within two standard errors of 0 the mean has no known sign, and the ratio no known size.
    return None if mean <= 2 * spread / math.sqrt(size) else spread / mean


def shape(values: Array) -> Shape | None:
    """Return the shape: converged, still falling, still rising, unstable or flat.

    converged: fell and is flat now. still falling, still rising: the last 30 % moves, or the last
    half with the last 30 % in the same direction, by an interval that excludes 0 and by more than
    10 % of the range. unstable: became over 4 times as rough (mean square step) with noise above
    10 % of its range, or turned 3 times by more than 30 % of its range and 25 % of the loss,
    which must be positive throughout, or alternates by 25 % of it from one value to the next.
    flat: is flat and has not fallen, as white noise or a curve that rose to its plateau.
    Computed over the finite values. `None` for fewer than 20, and where noise hides the answer.
    """
    x = finite(values)
    if x.size < MIN_SHAPE_POINTS:
        return None
    if is_constant(x):
        return "flat"
    unit = scale_to_unit(x)[0]
    return "unstable" if _unstable(unit) else _course(unit)


def _unstable(values: Array) -> bool:
    swings = oscillation(values)
    if swings is None:
        return False
    # Short stretches differ more by chance.
    rougher = 4 * (1 + MIN_SHAPE_POINTS / values.size)
    loud = (noise_sd(values[values.size // 2 :]) or 0.0) > 0.1 * _span(values)
    # The size of a swing is relative to the loss itself, if the loss is positive.
    deep = values.min() > 0 and swings.amplitude > MIN_SWING_SHARE * float(np.median(values))
    # Turns by 30 % of the range.
    if (swings.reversals >= 3 and deep) or (swings.ratio >= rougher and loud):
        return True
    # A positive curve may alternate widely from each value to the next.
    off = values - values.mean()
    neighbours = float(np.mean(off[1:] * off[:-1])) / float(np.mean(off**2))
    # White noise is below -3 standard errors, 1 / sqrt(n) each, in one of 700 curves.
    limit = min(-0.5, -3 / math.sqrt(values.size))
    swing = float(np.median(np.abs(np.diff(values))))
    return (
        values.min() > 0
        and neighbours < limit
        and swing > MIN_SWING_SHARE * float(np.median(values))
    )


def _course(values: Array) -> Shape | None:
    min_change = 0.1 * _span(values)
    full, half, tail = (
        trend(values[-max(round(share * values.size), MIN_NOISE_POINTS) :])
        for share in (1.0, 0.5, 0.3)
    )
    if full is None or half is None or tail is None:
        return None
    # Where noise hides the slope of the tail, the last half may show it, if the tail agrees.
    for moving in (tail, half):
        if moving.falls and max(moving.change, tail.change) < -min_change:
            return "still falling"
        if moving.rises and min(moving.change, tail.change) > min_change:
            return "still rising"
    start = plateau_start(values)
    if start is not None:
        fell = np.median(values[:start]) > np.median(values[start:])
        return "converged" if fell else "flat"
    wide = max(-full.change_low, full.change_high)
    return "flat" if wide <= 2 * (robust_sd(values) or 0.0) else None


def _span(values: Array) -> float:
    return float(np.ptp(block_means(values, math.ceil(values.size / 20))))
