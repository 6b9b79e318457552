"""How far a series has come down from its best."""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import ROUNDING, Array, finite, scaled, unscaled
from rlvitals.signals.noise import candidates

LEAST = 20  # values below which best and last are not told from noise
PARTS = 20  # blocks whose means are compared
POINTS = 256  # longer series are averaged into at most this many points first


@dataclass(frozen=True, slots=True)
class Drawdown:
    """The fall from the best block mean to the last: a dip that recovered is none."""

    first: float  # means of the first block, the best, the last
    best: float
    last: float
    index: int  # last value of the best block, counted in the values given
    share: float  # (best - last) / (best - first); infinite where the first block was the best
    size: float  # best - last in sd of such a difference between two blocks of noise


def drawdown(values: Array) -> Drawdown | None:
    """Compare the last of 20 blocks with the best, where higher is better (negate a loss).

    `size` takes the noise's autocorrelation into account, but the best of 20 blocks of pure
    noise already lies about 3 above a typical one: ask for well over that. `share` 0 means that
    the last block is the best. Computed over the finite values; `None` for fewer than 20.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < LEAST:
        return None
    unit, exponent = scaled(x)
    group = math.ceil(unit.size / POINTS)
    points = block_means(unit, group)
    width = math.ceil(points.size / PARTS)
    means = block_means(points, width)
    top = means.size - 1 - int(np.argmax(means[::-1]))
    drop, gain = float(means[top] - means[-1]), float(means[top] - means[0])
    end = points.size - (means.size - 1 - top) * width
    place = x.size - (points.size - end) * group - 1
    return Drawdown(
        first=unscaled(float(means[0]), exponent),
        best=unscaled(float(means[top]), exponent),
        last=unscaled(float(means[-1]), exponent),
        index=int(np.flatnonzero(np.isfinite(column))[place]),
        share=0.0 if drop <= 0 else drop / gain if gain > 0 else math.inf,
        size=_size(points, end, width, drop),
    )


def _size(points: Array, end: int, width: int, drop: float) -> float:
    """Return the drop in sd of the difference between the block that ends there and the last."""
    if drop <= ROUNDING:
        return 0.0
    weights = np.zeros(points.size)
    weights[end - width : end] += 1 / width
    weights[-width:] -= 1 / width
    error = math.sqrt(min(noise.variance(weights) for noise in candidates(points)))
    return drop / error if error > ROUNDING else math.inf
