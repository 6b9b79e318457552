"""Whether a series swings, more than it used to and more than its noise would."""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, finite, is_constant, scaled, unscaled
from rlvitals.signals.spread import noise_sd

LEAST = 20  # values below which swings are not judged
PARTS = 20  # blocks whose turns are counted
BASELINE = 0.3  # share of the series, its first, with which the last half is compared
NOISE = 6.0  # standard deviations of a block mean's noise that a swing must exceed


@dataclass(frozen=True, slots=True)
class Oscillation:
    """How a series swings. White noise has a ratio of about 1 and no reversals."""

    ratio: float  # mean square successive difference, last half / first 30 %; inf after none
    reversals: int  # turns of the block means by more than a share of their range
    amplitude: float  # median size of the swings into and out of those turns, 0 without any


def oscillation(values: Array, *, share: float = 0.3) -> Oscillation | None:
    """Measure swings by two statistics: the change of roughness, and counted reversals.

    Roughness is von Neumann's mean square successive difference (von Neumann 1941), here of the
    last half against the first 30 %: blind to trend, and to what swings from the start. For that
    there are reversals: turns of the means of 20 blocks by more than `share` of their range and
    by more than 6 sd of what white noise would leave in a block mean. Sign changes of differences
    are not counted: white noise has 67 %. Slow noise (AR near 1) does turn, so reversals alone
    are no fault. Computed over the finite values; `None` for fewer than 20.
    """
    x = finite(values)
    if x.size < LEAST:
        return None
    if is_constant(x):
        return Oscillation(1.0, 0, 0.0)
    unit, exponent = scaled(x)
    width = max(1, unit.size // PARTS)
    course = block_means(unit, width)
    noise = (noise_sd(unit, order=2) or 0.0) / math.sqrt(width)
    turns = turning_points(course, max(share * float(np.ptp(course)), NOISE * noise))
    swings = np.abs(np.diff(turns))
    amplitude = unscaled(float(np.median(swings)), exponent) if swings.size > 1 else 0.0
    return Oscillation(_roughness_ratio(unit), max(len(turns) - 2, 0), amplitude)


def _roughness_ratio(values: Array) -> float:
    steps = np.diff(values)
    early = float(np.mean(steps[: max(2, int(BASELINE * steps.size))] ** 2))
    late = float(np.mean(steps[steps.size // 2 :] ** 2))
    if early == 0:
        return math.inf if late > 0 else 1.0
    return late / early


def turning_points(values: Array, threshold: float) -> list[float]:
    """Return the extremes of a zigzag whose every leg is longer than `threshold`.

    `values` are finite; the first value starts the zigzag, the last leg's end closes it. One
    pass in plain Python: meant for some tens of block means.
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
