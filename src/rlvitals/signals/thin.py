"""Decimate a long series without averages and without losing spikes."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import Array

Indices = NDArray[np.int64]

MAX_THIN_POINTS = 1 << 13  # longer series are decimated to between half as many and as many
POINTS_PER_EXTREME = 32  # regular points per spike upwards, spike downwards and NaN


def thin(values: Array, max_points: int = MAX_THIN_POINTS, batch_points: int = 1 << 20) -> Indices:
    """Return the indices of points that represent a series: all, up to `max_points`.

    Regular points are every k-th point, with k a power of two so that a growing series keeps its
    points, and the newest; they scatter like the series. In addition, per 32 regular points: the
    highest and the lowest point between them, where these lie outside the range of the regular
    points by more than its width, and the first NaN, where all regular points are numbers.
    `batch_points` are looked at together: what is computed on the way takes 50 bytes for each.
    """
    count = values.size
    if count <= max_points:
        return np.arange(count, dtype=np.int64)
    every = 1 << (-(-count // max_points) - 1).bit_length()
    width = POINTS_PER_EXTREME * every
    split = count - count % width
    batch = max(1, batch_points // width) * width
    regular = np.append(np.arange(0, count, every, dtype=np.int64), count - 1)
    rare = [
        start + find_rare(values[start : min(start + batch, split)].reshape(-1, width), every)
        for start in range(0, split, batch)
    ]
    if split < count:
        rare.append(split + find_rare(values[split:].reshape(1, -1), every))
    return np.unique(np.concatenate((regular, *rare)))


def find_rare(windows: Array, every: int) -> Indices:
    """Return the flat indices of spikes, dips and NaN that regular points of each window miss.

    `windows` [windows, width].
    """
    is_finite = np.isfinite(windows)
    high, low = np.where(is_finite, windows, -np.inf), np.where(is_finite, windows, np.inf)
    top, bottom = high[:, ::every].max(axis=1), low[:, ::every].min(axis=1)
    has_points = top >= bottom
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.where(has_points, top - bottom, 0.0)
        spike, dip = high.max(axis=1) > top + span, low.min(axis=1) < bottom - span
    blank = is_finite[:, ::every].all(axis=1) & ~is_finite.all(axis=1)
    extremes = (
        (spike, high.argmax(axis=1)),
        (dip, low.argmin(axis=1)),
        (blank, is_finite.argmin(axis=1)),
    )
    indices = [
        np.flatnonzero(mask) * windows.shape[1] + columns[mask] for mask, columns in extremes
    ]
    return np.concatenate(indices).astype(np.int64)
