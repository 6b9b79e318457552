"""Values that jump far above what came just before them."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rlvitals.signals.finite import Array

LEAST = 5  # finite values before a point without which it has no baseline
ROWS = 1 << 14  # windows gathered at once: bounds the memory on long series


@dataclass(frozen=True, slots=True)
class Spike:
    """One value far above its baseline."""

    index: int  # into the values given
    value: float  # an infinity where +inf was logged
    baseline: float  # median of the window before it
    ratio: float  # value / baseline; infinite where the baseline is not above 0


def spikes(values: Array, *, factor: float, floor: float, window: int = 50) -> tuple[Spike, ...]:
    """Return the values above `floor` and above `factor` x the median of the `window` before.

    Causal: what comes later changes nothing. Every spike is given, in order; whether one is an
    outlier and five in a row are a fault is the caller's to say. Meant for metrics that are not
    negative (KL, gradient norm, loss magnitude). The baseline is over the finite values of the
    window and needs 5 of them: earlier points are not judged. NaN is no spike; +inf is one.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    above = np.flatnonzero(column > floor)
    found: list[Spike] = []
    for start in range(0, above.size, ROWS):
        some = above[start : start + ROWS]
        baselines = _baselines(column, some, max(int(window), LEAST))
        with np.errstate(over="ignore", invalid="ignore"):
            hits = np.isfinite(baselines) & (column[some] > factor * baselines)
        found += map(partial(_spike, column), some[hits].tolist(), baselines[hits].tolist())
    return tuple(found)


def _spike(column: Array, index: int, baseline: float) -> Spike:
    value = float(column[index])
    with np.errstate(over="ignore"):
        ratio = float(np.float64(value) / baseline) if baseline > 0 else float("inf")
    return Spike(index, value, baseline, ratio)


def _baselines(column: Array, at: NDArray[np.int64], window: int) -> Array:
    """Return the median of the finite values in the window before each index, NaN for too few."""
    padded = np.concatenate((np.full(window, np.nan), column))
    padded[~np.isfinite(padded)] = np.nan
    before = np.sort(sliding_window_view(padded, window)[at], axis=1)  # NaN sorts last
    count = np.isfinite(before).sum(axis=1)
    middle = np.maximum(count - 1, 0)
    row = np.arange(at.size)
    halves = before[row, middle // 2] / 2 + before[row, (middle + 1) // 2] / 2
    return np.where(count >= LEAST, halves, np.nan)
