"""Drawdown of a series: the fall from its best block mean to the last."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import (
    FLOAT_ROUNDING,
    Array,
    clip_outliers,
    finite,
    scale_to_unit,
    unscale,
)
from rlvitals.signals.noise import (
    MIN_NOISE_POINTS,
    PUSH_TWO_LINES,
    SHRINKAGE_TWO_LINES,
    ar1_noise,
    candidates,
    persistence,
    two_lines_fit,
)
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Drawdown:
    """The fall from the best block mean to the last; a dip that recovered is not one."""

    first: float  # means of the first block, the best, the last
    best: float
    last: float
    index: int  # last value of the best block, an index into the input
    share: float  # (best - last) / (best - first); infinite where the first block was the best
    size: float  # best - last in sd of such a difference between two blocks of noise


def drawdown(values: Array) -> Drawdown | None:
    """Compare the last of 20 blocks with the best, where higher is better (negate a loss).

    `size` is relative to AR(1) noise whose persistence is bounded from above. The best block is
    selected as the maximum, with one outlier at either end clipped, which is no level: in 99 of
    100 series of pure noise (AR 0 to .98, moving averages) `size` stays below 4.2, so compare it
    with 5. `share` is 0 where the last block is the best.
    Computed over the finite values; `None` for fewer than 20.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < 20:  # too few to separate best and last from noise
        return None
    unit, exponent = scale_to_unit(clip_outliers(x))
    group = math.ceil(unit.size / 256)  # bounds the noise fits below to 256 points
    points = block_means(unit, group)
    width = math.ceil(points.size / 20)
    means = block_means(points, width)
    top = means.size - 1 - int(np.argmax(means[::-1]))
    drop, gain = float(means[top] - means[-1]), float(means[top] - means[0])
    end = points.size - (means.size - 1 - top) * width
    index = x.size - (points.size - end) * group - 1
    return Drawdown(
        first=unscale(float(means[0]), exponent),
        best=unscale(float(means[top]), exponent),
        last=unscale(float(means[-1]), exponent),
        index=int(np.flatnonzero(np.isfinite(column))[index]),
        share=0.0 if drop <= FLOAT_ROUNDING else drop / gain if gain > FLOAT_ROUNDING else math.inf,
        size=_size(points, end, width, drop),
    )


def _size(points: Array, end: int, width: int, drop: float) -> float:
    """Return the drop in sd of the difference between the block ending at `end` and the last."""
    if drop <= FLOAT_ROUNDING:
        return 0.0
    weights = np.zeros(points.size)
    weights[end - width : end] += 1 / width
    weights[-width:] -= 1 / width
    noises = candidates(points)
    if MIN_NOISE_POINTS <= end <= points.size - MIN_NOISE_POINTS:
        # The noise around the rise and the fall.
        (up, first), (down, second) = two_lines_fit(points[:end]), two_lines_fit(points[end:])
        residual = np.concatenate((up, down))
        free, slope = SHRINKAGE_TWO_LINES
        rho = persistence(residual, (2 * free, 2 * slope), PUSH_TWO_LINES)
        noises = (*noises, *ar1_noise(residual, rho, seams=(first, end, end + second)))
    error = math.sqrt(min(noise.variance(weights) for noise in noises))
    return drop / error if error > FLOAT_ROUNDING else math.inf
