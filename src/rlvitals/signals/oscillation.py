"""Measure the oscillation of a series: roughness ratio and reversals."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit, unscale
from rlvitals.signals.spread import noise_sd
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Oscillation:
    """Oscillation of a series. White noise has a ratio of about 1 and no reversals."""

    ratio: float  # mean square successive difference, last half / first 30 %; inf after none
    reversals: int  # turns of the block means by more than a share of their range
    amplitude: float  # median size of the swings between those turns, 0 without any


def oscillation(values: Array, *, share: float = 0.3) -> Oscillation | None:
    """Measure swings by two statistics: the change of roughness, and the number of reversals.

    Roughness is von Neumann's mean square successive difference (von Neumann 1941), here of the
    last half relative to the first 30 %. It does not respond to a trend, nor to a series that
    oscillates from the start. Reversals cover the latter: turns of the means of 20 blocks by more
    than `share` of their range and by more than 6 sd of a block mean of white noise. Sign changes
    of differences are not counted: white noise has 67 %. Slow noise (AR near 1) also turns, so
    reversals alone are no fault. Computed over the finite values; `None` for fewer than 20.
    """
    x = finite(values)
    if x.size < 20:
        return None
    if is_constant(x):
        return Oscillation(1.0, 0, 0.0)
    unit, exponent = scale_to_unit(x)
    width = max(1, unit.size // 20)
    course = block_means(unit, width)
    noise = (noise_sd(unit, order=2) or 0.0) / math.sqrt(width)
    turns = turning_points(course, max(share * float(np.ptp(course)), 6 * noise))
    swings = np.abs(np.diff(turns))
    amplitude = unscale(float(np.median(swings)), exponent) if swings.size > 1 else 0.0
    steps = np.diff(unit)
    first = float(np.mean(steps[: max(2, int(0.3 * steps.size))] ** 2))
    last = float(np.mean(steps[steps.size // 2 :] ** 2))
    ratio = last / first if first else math.inf if last > 0 else 1.0
    return Oscillation(ratio, max(len(turns) - 2, 0), amplitude)


def turning_points(values: Array, threshold: float) -> list[float]:
    """Return the extremes of a zigzag whose legs are all longer than `threshold`.

    `values` are finite; the first value starts the zigzag, the end of the last leg closes it.
    A plain Python loop, for some tens of block means.
    """
    pivots = [float(values[0])]
    extreme, heading = pivots[0], 0
    for value in map(float, values[1:]):
        if heading == 0 and abs(value - pivots[0]) > threshold:
            heading = 1 if value > pivots[0] else -1
            extreme = value
        elif heading and (value - extreme) * heading > 0:
            extreme = value
        elif heading and (extreme - value) * heading > threshold:
            pivots.append(extreme)
            extreme, heading = value, -heading
    return [*pivots, extreme] if heading else pivots
