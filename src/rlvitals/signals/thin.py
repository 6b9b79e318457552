"""Fewer points of a long series, of which none is an average and no spike is lost."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import Array

Indices = NDArray[np.int64]

POINTS = 1 << 13  # longer series are thinned to between half as many and as many
STRETCH = 32  # kept points among which one spike upwards, one downwards and one NaN may stand


def thin(values: Array, most: int = POINTS) -> Indices:
    """Return the indices of the points that stand for a series: all, where there are few.

    Every k-th point, with k a power of two so that a series that grows keeps what it kept, and
    the newest. What the kept points scatter like, the series scatters like. Beside them, of each
    32 of them: the highest and the lowest of all points between, where they lie outside the kept
    ones by more than these span, and the first that is no number, where all kept ones are.
    """
    count = values.size
    if count <= most:
        return np.arange(count, dtype=np.int64)
    every = 1 << (-(-count // most) - 1).bit_length()
    width = STRETCH * every
    whole = count - count % width
    regular = np.append(np.arange(0, count, every, dtype=np.int64), count - 1)
    rare = [
        start + _rare(part, every)
        for start, part in (
            (0, values[:whole].reshape(-1, width)),
            (whole, values[whole:].reshape(1, -1)),
        )
        if part.size
    ]
    return np.unique(np.concatenate((regular, *rare)))


def _rare(windows: Array, every: int) -> Indices:
    """Return the flat indices of what every k-th point of each window [windows, width] misses."""
    known = np.isfinite(windows)
    high, low = np.where(known, windows, -np.inf), np.where(known, windows, np.inf)
    top, bottom = high[:, ::every].max(axis=1), low[:, ::every].min(axis=1)
    seen = top >= bottom
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.where(seen, top - bottom, 0.0)
        spike, dip = high.max(axis=1) > top + span, low.min(axis=1) < bottom - span
    blank = known[:, ::every].all(axis=1) & ~known.all(axis=1)
    found = ((spike, high.argmax(axis=1)), (dip, low.argmin(axis=1)), (blank, known.argmin(axis=1)))
    at = [np.flatnonzero(there) * windows.shape[1] + place[there] for there, place in found]
    return np.concatenate(at).astype(np.int64)
