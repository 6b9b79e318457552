"""Find the step from which a metric of two runs differs by more than its noise.

The common learning curve cancels in the difference of two runs: as long as they are the same the
difference has no trend, and its noise is estimated from how it varies from row to row.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import FLOAT_ROUNDING, is_constant, scale_to_unit
from rlvitals.signals.noise import (
    SHRINKAGE_LINE,
    SHRINKAGE_TWO_LINES,
    line_fit,
    persistence,
    two_lines_fit,
)
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

Array = NDArray[np.float64]

MIN_SHARED_ROWS = 20  # steps, or bins of steps, at which both runs have a value
RHO_STANDARD_ERRORS = 1.0  # added to the estimate of the noise's persistence
DIVERGENCE_CONFIDENCE = 0.98  # against a false divergence, over all stretches together


@dataclass(frozen=True, slots=True)
class Divergence:
    """The step where a metric of two runs diverges."""

    metric: str
    step: int | None  # first step of the divergence; None: none
    size: float  # there, in standard errors of the noise; NaN: no divergence
    first: float  # the first run's level there, else at the end
    second: float
    unequal: int | None  # the first step at which they logged different numbers
    why: str = ""  # the test was not possible; empty where it was


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs at the same steps, [n] each."""

    steps: NDArray[np.int64]
    first: Array
    second: Array


@dataclass(frozen=True, slots=True)
class _Levels:
    """The levels of two runs."""

    first: float
    second: float


def find_divergence(metric: str, first: Series, second: Series) -> Divergence:
    """Find the step where a metric of two runs diverges; their steps may differ."""
    unequal = _first_unequal_step(first, second)
    pair = _align(first.finite(), second.finite())
    levels = _Levels(
        *(float(run[-1]) if len(run) else math.nan for run in (pair.first, pair.second))
    )
    if len(pair.steps) < MIN_SHARED_ROWS:
        problem = f"fewer than {MIN_SHARED_ROWS} rows that both have"
        return Divergence(metric, None, math.nan, levels.first, levels.second, unequal, problem)
    difference = scale_to_unit(pair.second - pair.first)[0]
    if is_constant(difference):
        step = int(pair.steps[0]) if difference[0] else None
        size = math.inf if difference[0] else math.nan
        return Divergence(metric, step, size, levels.first, levels.second, unequal)
    spread, tau = _measure_noise(difference)
    length = max(
        math.ceil(len(difference) / 40),  # at most 40 stretches are tested
        math.ceil(min(3.0 * tau, len(difference) + 1.0)),  # their means are nearly independent
    )
    count = len(difference) // length
    if count < 3:
        problem = "too few rows that say something new: each is much like the one before"
        return Divergence(metric, None, math.nan, levels.first, levels.second, unequal, problem)
    starts = np.linspace(0, len(difference), count + 1).astype(int)[:-1]
    error = max(spread * math.sqrt(tau / length), FLOAT_ROUNDING * float(np.abs(difference).max()))
    sizes = _stretch_means(difference, starts) / error
    freedom = max(len(difference) / tau - 2, 3.0)
    # Two stretches in a row must be beyond the limit, on one side: count * p * p / 2 in all.
    tail = math.sqrt(2 * (1 - DIVERGENCE_CONFIDENCE) / count)
    stretch = _first_beyond(sizes, t_quantile(1 - tail, freedom))
    if stretch is None:
        return Divergence(metric, None, math.nan, levels.first, levels.second, unequal)
    levels = _Levels(
        *(float(_stretch_means(run, starts)[stretch]) for run in (pair.first, pair.second))
    )
    step, size = int(pair.steps[starts[stretch]]), float(sizes[stretch])
    step = max(step, unequal or step)  # not before the first row that differs
    return Divergence(metric, step, size, levels.first, levels.second, unequal)


def _first_unequal_step(first: Series, second: Series) -> int | None:
    """Return the first common step with different values; None where there is none."""
    steps, first_rows, second_rows = np.intersect1d(first.steps, second.steps, return_indices=True)
    if len(steps) < 5:  # too few to find the first unequal value
        return None
    first_values, second_values = first.values[first_rows], second.values[second_rows]
    differ = np.flatnonzero(
        (first_values != second_values) & ~(np.isnan(first_values) & np.isnan(second_values))
    )
    return int(steps[differ[0]]) if len(differ) else None


def _align(first: Series, second: Series) -> _Pair:
    """Align two runs at common steps, else at bins of steps."""
    steps, first_rows, second_rows = np.intersect1d(first.steps, second.steps, return_indices=True)
    row_count = min(len(first), len(second))
    # Runs with 80 % of the shorter one's steps in common are compared row by row.
    if len(steps) >= max(0.8 * min(len(np.unique(first.steps)), len(np.unique(second.steps))), 1):
        return _Pair(steps, first.values[first_rows], second.values[second_rows])
    if not row_count:
        empty = np.empty(0)
        return _Pair(steps[:0], empty, empty)
    begin = float(max(first.steps[0], second.steps[0]))
    end = float(min(first.steps[-1], second.steps[-1])) + 1
    if end <= begin:
        return _Pair(steps[:0], np.empty(0), np.empty(0))
    # Runs logged at different steps are averaged over bins of steps.
    edges = np.linspace(begin, end, min(500, max(row_count // 2, 1)) + 1)
    sums = [
        [np.histogram(run.steps, edges, weights=weights)[0] for weights in (None, run.values)]
        for run in (first, second)
    ]
    is_shared = (sums[0][0] > 0) & (sums[1][0] > 0)
    levels = [total[is_shared] / count[is_shared] for count, total in sums]
    return _Pair(np.ceil(edges[:-1][is_shared]).astype(np.int64), levels[0], levels[1])


def _measure_noise(difference: Array) -> tuple[float, float]:
    """Return the standard deviation and the autocorrelation time of a difference's noise.

    Measured around one line or, where runs diverge, two: whichever leaves less autocorrelation.
    """
    line_residual, bent_residual = line_fit(difference)[1], two_lines_fit(difference)[0]
    line_rho = persistence(line_residual, SHRINKAGE_LINE, RHO_STANDARD_ERRORS)
    bent_rho = persistence(bent_residual, SHRINKAGE_TWO_LINES, RHO_STANDARD_ERRORS)
    residual, parameters, rho = (
        (bent_residual, 5, bent_rho) if bent_rho < line_rho else (line_residual, 2, line_rho)
    )
    noise_std = math.sqrt(float(residual @ residual) / max(len(residual) - parameters, 1))
    return noise_std, math.inf if rho >= 1 else (1 + rho) / (1 - rho)


def _stretch_means(values: Array, starts: NDArray[np.int64]) -> Array:
    return np.asarray(np.add.reduceat(values, starts) / np.diff(starts, append=len(values)))


def _first_beyond(sizes: Array, limit: float) -> int | None:
    """Return the first of two consecutive stretches beyond the limit on the same side."""
    is_beyond = np.abs(sizes) > limit
    pairs = np.flatnonzero(is_beyond[:-1] & is_beyond[1:] & (sizes[:-1] * sizes[1:] > 0))
    return int(pairs[0]) if len(pairs) else None
