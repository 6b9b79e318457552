"""Describe the whole course of a curve by six numbers that no offset, scale or unit changes."""

import math

import numpy as np

from rlvitals.signals.finite import FLOAT_ROUNDING, Array, clip_extremes, finite, scale_to_unit
from rlvitals.signals.rolling import block_means
from rlvitals.signals.spread import difference_sd, noise_sd

MIN_CURVE_POINTS = 8
SHAPE = (
    "change",  # last level less the first, in standard deviations of all values
    "lost",  # best level less the last, as a share of the range of levels
    "range",  # range of the levels, in standard deviations of all values
    "order",  # Kendall's tau of the blocks, -1 to 1
    "best at",  # where the best level begins, as a share of the curve
    "gain",  # log(1 + best level less the first, in standard deviations of neighbouring values)
)


def curve_shape(values: Array) -> Array | None:
    """Return the numbers of `SHAPE` for finite values [n], higher is better; None for fewer than 8.

    The curve is cut into 12 blocks and a level is the mean of two neighbouring ones. The largest
    and the smallest value are clipped to the next in rank. All are 0 for a constant.
    """
    x, _ = scale_to_unit(clip_extremes(finite(values)))
    if x.size < MIN_CURVE_POINTS:
        return None
    sd = float(x.std())
    if sd <= FLOAT_ROUNDING * float(np.abs(x).max()):
        return np.zeros(len(SHAPE))
    blocks = block_means(x, min(12, x.size))
    levels = (blocks[1:] + blocks[:-1]) / 2
    first, last, best = float(levels[0]), float(levels[-1]), float(levels.max())
    width = float(np.ptp(levels))
    rows, columns = np.triu_indices(blocks.size, 1)
    noise = noise_sd(x) or difference_sd(x)
    return np.array(
        [
            (last - first) / sd,
            (best - last) / width if width else 0.0,
            width / sd,
            float(np.sign(blocks[columns] - blocks[rows]).mean()),
            int(levels.argmax()) / levels.size,
            math.log1p((best - first) / noise) if noise else 0.0,
        ]
    )
