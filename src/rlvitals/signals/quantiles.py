"""Quantiles of a histogram."""

from collections.abc import Sequence

import numpy as np

from rlvitals.signals.finite import Array


def quantiles(edges: Array, counts: Array, levels: Sequence[float]) -> Array:
    """Return the quantiles of a histogram at `levels` in [0, 1]; NaN for an empty histogram.

    `counts` [n] belong to the bins between `edges` [n + 1], which ascend; values are assumed
    uniform within a bin. Level 0 is the lower edge of the first non-empty bin, 1 the upper edge
    of the last. Values in a bin with an infinite edge are placed at its finite edge.
    """
    filled = np.flatnonzero(np.isfinite(counts) & (counts > 0))
    if not len(filled):
        return np.full(len(levels), np.nan)
    low, high = edges[filled], edges[filled + 1]
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    cumulative = np.concatenate(([0.0], np.cumsum(counts[filled])))
    targets = np.clip(np.asarray(levels), 0.0, 1.0) * cumulative[-1]
    bins = np.clip(cumulative.searchsorted(targets, side="left") - 1, 0, len(filled) - 1)
    fraction = (targets - cumulative[bins]) / (cumulative[bins + 1] - cumulative[bins])
    # Halved before they are subtracted: the ends may lie 1e308 apart.
    points = low[bins] + 2 * np.clip(fraction, 0, 1) * (high[bins] / 2 - low[bins] / 2)
    return np.asarray(np.clip(points, low[bins], high[bins]))
