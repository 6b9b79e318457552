"""Quantiles of a distribution that is known by its counts alone."""

from collections.abc import Sequence

import numpy as np

from rlvitals.signals.finite import Array


def quantiles(edges: Array, counts: Array, levels: Sequence[float]) -> Array:
    """Return where shares `levels` of a histogram lie below: [len(levels)]; NaN where it is empty.

    `counts` [n] stand between `edges` [n + 1], which ascend; within a bin values are taken as
    spread evenly. Level 0 is the lower edge of the first bin that holds something, 1 the upper
    edge of the last. What lies beyond an infinite edge is put at the bin's finite one.
    """
    held = np.flatnonzero(np.isfinite(counts) & (counts > 0))
    if not len(held):
        return np.full(len(levels), np.nan)
    low, high = edges[held], edges[held + 1]
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    reached = np.concatenate(([0.0], np.cumsum(counts[held])))
    wanted = np.clip(np.asarray(levels), 0.0, 1.0) * reached[-1]
    bins = np.clip(reached.searchsorted(wanted, side="left") - 1, 0, len(held) - 1)
    part = (wanted - reached[bins]) / (reached[bins + 1] - reached[bins])
    # Halved before they are subtracted: the ends may lie 1e308 apart.
    found = low[bins] + 2 * np.clip(part, 0, 1) * (high[bins] / 2 - low[bins] / 2)
    return np.asarray(np.clip(found, low[bins], high[bins]))
