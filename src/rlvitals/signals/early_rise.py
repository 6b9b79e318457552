"""Measure an early rise that lasts: the first block of a series against all later levels."""

import math

import numpy as np

from rlvitals.signals.finite import FLOAT_ROUNDING, Array, clip_extremes, finite, scale_to_unit
from rlvitals.signals.outcome_change import MIN_SHARE_LOST
from rlvitals.signals.spread import noise_sd


def early_rise_size(values: Array) -> float:
    """Return how far the last three quarters lie above the first block, in standard errors.

    The series is cut into 16 blocks. 0 unless each of the last 12 is above the first and less than
    a third of the gain is lost at the end. The error combines the scatter of the 12 blocks, slow
    swings included, with that of the first block's mean, by the differences between its values.
    0 for fewer than 16 finite values. The largest and the smallest value are clipped. A mean over
    a growing number of values begins far from its level by chance: it is not to be judged by this.
    """
    x, _ = scale_to_unit(clip_extremes(finite(values)))
    if x.size < 16:
        return 0.0
    blocks = np.array_split(x, 16)
    means = np.array([block.mean() for block in blocks])
    first, level = float(means[0]), means[4:]
    gain = float(level.mean()) - first
    levels = np.convolve(means, np.full(3, 1 / 3), "valid")
    best, last = float(levels.max()), float(levels[-1])
    if float(level.min()) - first <= FLOAT_ROUNDING or best - last >= MIN_SHARE_LOST * (
        best - first
    ):
        return 0.0
    # Differences of independent values scatter by sqrt(2) more than one. Two do not tell it.
    changes = np.diff(x[: max(blocks[0].size, 4)])
    single = math.sqrt(float(changes @ changes) / changes.size / 2)
    single = max(single, noise_sd(x[: max(x.size // 4, 8)]) or 0.0)
    error = math.hypot(float(level.std(ddof=1)), single / math.sqrt(blocks[0].size))
    return gain / error if error else math.inf
