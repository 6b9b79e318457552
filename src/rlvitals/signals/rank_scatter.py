"""Statistics over the ranks of a run: arrays [r, n] of r ranks at n common steps."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.student import t_quantile

Floats = NDArray[np.float64]


def find_shared_value(values: Floats) -> Floats | None:
    """Return the value [n] that more than half of the ranks share; None for local values.

    A loss or a gradient norm after an all-reduce is equal on all ranks; before it, each rank has
    that of its own batch.
    """
    usable = values[:, np.isfinite(values).any(axis=0)]
    if not usable.size:
        return None
    middle = np.nanquantile(usable, 0.5, axis=0, method="lower")
    equal = np.abs(usable - middle) <= 1e-6 * np.abs(middle)
    agreed = 2 * equal.sum(axis=0) > len(values)
    # Of zeros, all are equal.
    if np.mean(agreed) < 0.9 or not np.any(middle):  # a rank may differ
        return None
    reference = np.full(values.shape[1], np.nan)
    reference[np.isfinite(values).any(axis=0)] = np.where(agreed, middle, np.nan)
    return reference


def block_medians(values: Floats, count: int) -> tuple[Floats, Sequence[int]]:
    """Return the medians [r, b] of `count` equal parts of the steps, and where each begins.

    NaN where a rank has no number in a block.
    """
    edges = np.linspace(0, values.shape[1], count + 1).round().astype(int)
    medians = np.full((len(values), count), np.nan)
    for block, (low, high) in enumerate(pairwise(edges)):
        block_values = values[:, low:high]
        usable_rows = np.isfinite(block_values).any(axis=1)
        medians[usable_rows, block] = np.nanmedian(
            np.where(np.isfinite(block_values), block_values, np.nan)[usable_rows], axis=1
        )
    return medians, [int(edge) for edge in edges[:-1]]


def distances(values: Floats) -> Floats:
    """Return each rank's distance [r, n] from the others, in units of their own scatter.

    Under one normal distribution it is Student's t with r - 2 degrees of freedom.
    """
    count = np.maximum(np.isfinite(values).sum(axis=0) - 1, 2)
    rest_mean = (np.nansum(values, axis=0) - values) / count
    squares = (np.nansum(values**2, axis=0) - values**2) / count - rest_mean**2
    scatter = np.sqrt(np.maximum(squares, 0.0) * count / (count - 1) * (1 + 1 / count))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(values - rest_mean) / scatter)


def distance_limit(ranks: int, chance: float) -> float:
    """Return the distance that one of `ranks` ranks exceeds by chance once in 1 / `chance`."""
    return t_quantile(1 - chance / ranks, ranks - 2)


def median_interval(values: Floats, chance: float) -> tuple[float, float, float]:
    """Return the median of values [n], and the ends of its interval by order statistics."""
    ordered = np.sort(values[np.isfinite(values)])
    half = NormalDist().inv_cdf(1 - chance / 2) * math.sqrt(len(ordered)) / 2
    low = max(math.floor(len(ordered) / 2 - half), 0)
    high = min(math.ceil(len(ordered) / 2 + half), len(ordered) - 1)
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])
