"""Since when two runs of one metric lie further apart than their own noise explains.

What both runs do alike, their learning curve, is not in their difference: that has no trend as
long as they are the same, and its noise is told by how it jumps from row to row.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import ROUNDING, is_constant, scale_to_unit
from rlvitals.signals.noise import (
    SHRINKAGE_LINE,
    SHRINKAGE_TWO_LINES,
    line_fit,
    persistence,
    two_lines_fit,
)
from rlvitals.signals.student import t_quantile
from rlvitals.types import Series

Array = NDArray[np.float64]

LEAST = 20  # rows that both runs have, or stretches of steps in which both have some
BINS = 500  # stretches of steps that runs which logged at others are averaged over
SHARED = 5  # steps that both logged, without which nobody can say where they are equal
MOSTLY = 0.8  # of the shorter run's steps that both logged: then they are compared row by row
FEWEST, MOST = 3, 40  # stretches that are judged
PER_STRETCH = 3.0  # autocorrelation times: the means of such stretches hardly know of each other
PUSH = 1.0  # standard errors by which the noise's persistence is pushed up
CONFIDENCE = 0.98  # that runs which do not differ are not said to, over all stretches together


@dataclass(frozen=True, slots=True)
class Parting:
    """Where one metric of two runs parts."""

    metric: str
    step: int | None  # since when they lie apart beyond noise; None: they do not
    size: float  # there, in standard deviations of the noise; NaN where they do not part
    first: float  # the first run's level there, else at the end
    second: float
    unequal: int | None  # the first step at which they logged different numbers
    why: str = ""  # they cannot be told apart; empty where they can


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs at the same steps, [n] each."""

    steps: NDArray[np.int64]
    first: Array
    second: Array


@dataclass(frozen=True, slots=True)
class _Levels:
    """Where two runs stand."""

    first: float
    second: float


def parting(metric: str, one: Series, other: Series) -> Parting:
    """Find since when two runs' metric lies apart; their steps need not be the same."""
    unequal = _unequal(one, other)
    pair = _paired(one.finite(), other.finite())
    at = _Levels(*(float(run[-1]) if len(run) else math.nan for run in (pair.first, pair.second)))
    if len(pair.steps) < LEAST:
        why = f"fewer than {LEAST} rows that both have"
        return Parting(metric, None, math.nan, at.first, at.second, unequal, why)
    apart = scale_to_unit(pair.second - pair.first)[0]
    if is_constant(apart):
        step = int(pair.steps[0]) if apart[0] else None
        size = math.inf if apart[0] else math.nan
        return Parting(metric, step, size, at.first, at.second, unequal)
    spread, tau = _noise(apart)
    length = max(math.ceil(len(apart) / MOST), math.ceil(min(PER_STRETCH * tau, len(apart) + 1.0)))
    count = len(apart) // length
    if count < FEWEST:
        why = "too few rows that say something new: each is much like the one before"
        return Parting(metric, None, math.nan, at.first, at.second, unequal, why)
    starts = np.linspace(0, len(apart), count + 1).astype(int)[:-1]
    error = max(spread * math.sqrt(tau / length), ROUNDING * float(np.abs(apart).max()))
    sizes = _means(apart, starts) / error
    freedom = max(len(apart) / tau - 2, 3.0)
    # Two stretches in a row must be beyond the limit, on one side: count * p * p / 2 in all.
    beyond = math.sqrt(2 * (1 - CONFIDENCE) / count)
    place = _first(sizes, t_quantile(1 - beyond, freedom))
    if place is None:
        return Parting(metric, None, math.nan, at.first, at.second, unequal)
    at = _Levels(*(float(_means(run, starts)[place]) for run in (pair.first, pair.second)))
    step, size = int(pair.steps[starts[place]]), float(sizes[place])
    step = max(step, unequal or step)  # not before the first row that differs
    return Parting(metric, step, size, at.first, at.second, unequal)


def _unequal(one: Series, other: Series) -> int | None:
    """Return the first step that both logged with different numbers; None where there is none."""
    steps, here, there = np.intersect1d(one.steps, other.steps, return_indices=True)
    if len(steps) < SHARED:
        return None
    a, b = one.values[here], other.values[there]
    differ = np.flatnonzero((a != b) & ~(np.isnan(a) & np.isnan(b)))
    return int(steps[differ[0]]) if len(differ) else None


def _paired(one: Series, other: Series) -> _Pair:
    """Bring two runs to the same steps: those that both logged, else stretches of steps."""
    steps, here, there = np.intersect1d(one.steps, other.steps, return_indices=True)
    fewer = min(len(one), len(other))
    if len(steps) >= max(MOSTLY * min(len(np.unique(one.steps)), len(np.unique(other.steps))), 1):
        return _Pair(steps, one.values[here], other.values[there])
    if not fewer:
        nothing = np.empty(0)
        return _Pair(steps[:0], nothing, nothing)
    begin = float(max(one.steps[0], other.steps[0]))
    end = float(min(one.steps[-1], other.steps[-1])) + 1
    if end <= begin:
        return _Pair(steps[:0], np.empty(0), np.empty(0))
    edges = np.linspace(begin, end, min(BINS, max(fewer // 2, 1)) + 1)
    sums = [
        [np.histogram(run.steps, edges, weights=weights)[0] for weights in (None, run.values)]
        for run in (one, other)
    ]
    both = (sums[0][0] > 0) & (sums[1][0] > 0)
    levels = [total[both] / count[both] for count, total in sums]
    return _Pair(np.ceil(edges[:-1][both]).astype(np.int64), levels[0], levels[1])


def _noise(apart: Array) -> tuple[float, float]:
    """Return the standard deviation and the autocorrelation time of a difference's noise.

    Around one line or, where runs part, two: the one that leaves less memory.
    """
    line, bent = line_fit(apart)[1], two_lines_fit(apart)[0]
    straight = persistence(line, SHRINKAGE_LINE, PUSH)
    rho = persistence(bent, SHRINKAGE_TWO_LINES, PUSH)
    residual, fitted, rho = (bent, 5, rho) if rho < straight else (line, 2, straight)
    spread = math.sqrt(float(residual @ residual) / max(len(residual) - fitted, 1))
    return spread, math.inf if rho >= 1 else (1 + rho) / (1 - rho)


def _means(values: Array, starts: NDArray[np.int64]) -> Array:
    return np.asarray(np.add.reduceat(values, starts) / np.diff(starts, append=len(values)))


def _first(sizes: Array, limit: float) -> int | None:
    """Return the first stretch beyond the limit whose next is beyond it on the same side."""
    beyond = np.abs(sizes) > limit
    both = np.flatnonzero(beyond[:-1] & beyond[1:] & (sizes[:-1] * sizes[1:] > 0))
    return int(both[0]) if len(both) else None
