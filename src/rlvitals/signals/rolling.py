"""Rolling medians of a series, and means of successive blocks."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rlvitals.signals.finite import Array

MAX_WINDOWS_PER_SORT = 1 << 14  # bounds the memory on long series


def rolling_median(values: Array, window: int, *, min_count: int = 1) -> Array:
    """Return the median of the last `window` values at each index, with the same length.

    Causal, over the finite values of each window; NaN where there are fewer than `least` (at
    least 1) of them. The first windows are shorter than the rest.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    return medians_ending_at(column, np.arange(column.size), max(int(window), 1), max(min_count, 1))


def block_means(values: Array, count: int) -> Array:
    """Return the means of `count` successive blocks of `values` [n], as equal in length as can be.

    `count` is at most n.
    """
    return np.array([block.mean() for block in np.array_split(values, count)])


def medians_ending_at(column: Array, ends: NDArray[np.int64], window: int, min_count: int) -> Array:
    """Return the median of the `window` values that end with each index of `at`.

    An index of -1 ends before the first value: its window is empty, its median NaN.
    """
    padded = np.concatenate((np.full(window, np.nan), column))
    padded[~np.isfinite(padded)] = np.nan
    windows = sliding_window_view(padded, window)
    chunks = [np.empty(0)]
    for start in range(0, ends.size, MAX_WINDOWS_PER_SORT):
        ordered = np.sort(windows[ends[start : start + MAX_WINDOWS_PER_SORT] + 1], axis=1)
        count = np.isfinite(ordered).sum(axis=1)  # NaN sorts last
        middle, row = np.maximum(count - 1, 0), np.arange(count.size)
        # Halves are added, not sums halved: two values of 1e308 have a median.
        halves = ordered[row, middle // 2] / 2 + ordered[row, (middle + 1) // 2] / 2
        chunks.append(np.where(count >= min_count, halves, np.nan))
    return np.concatenate(chunks)
