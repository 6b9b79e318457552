"""Detect the largest level shift of a series."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import (
    FLOAT_ROUNDING,
    Array,
    finite,
    is_constant,
    scale_to_unit,
    unscale,
)
from rlvitals.signals.noise import SHRINKAGE_TWO_LINES, line_fit, persistence
from rlvitals.signals.spread import robust_sd
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

MIN_SHIFT_POINTS = 20  # values below which no shift is tested
JUMP_POINTS = 5  # points on either side that show that a shift is sudden


@dataclass(frozen=True, slots=True)
class Change:
    """A level shift between two stretches of a series."""

    index: int  # first point at the new level, an index into the input
    before: float  # median of the stretch before
    after: float
    size: float  # after - before, in standard deviations of the noise; infinite without noise


def change_point(values: Array) -> Change | None:
    """Return the best single level shift, if it is significant.

    The shift is fitted together with a straight line, so a steady slope is no shift. It must be
    significant against AR(1) noise whose persistence is bounded from above, at the 1 % level
    over all positions, and at least 1 sd of that noise. It must fit better than a smooth curve
    (degree 4), and half of it must occur within 5 points. The first and last 5 % are not tested.
    Computed over the finite values; `None` for no shift and for fewer than 20 values.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < MIN_SHIFT_POINTS or is_constant(x):
        return None
    group = math.ceil(x.size / 2048)  # longer series are averaged into blocks first
    unit, exponent = scale_to_unit(x)
    blocks = block_means(unit, group)
    # The index at which a step added to a straight line removes most squares.
    n = blocks.size
    residual = line_fit(blocks)[1]
    t = np.arange(n) - (n - 1) / 2
    margin = max(JUMP_POINTS, math.ceil(0.05 * n))  # a shift at an edge may be an outlier
    cuts = np.arange(margin, n - margin + 1)
    # The step, less its own mean and slope, for all cuts at once.
    along = np.cumsum(t)[cuts - 1] ** 2 / (t @ t)
    norm = cuts * (n - cuts) / n - along
    cut = int(cuts[np.argmax(np.cumsum(residual)[cuts - 1] ** 2 / norm)])
    size = _significant(blocks, cut)
    if size is None:
        return None
    near = max(1, round(0.2 * blocks.size))  # blocks on either side that show its level
    level_before, level_after = (
        unscale(float(np.median(side)), exponent)
        for side in (blocks[max(cut - near, 0) : cut], blocks[cut : cut + near])
    )
    index = x.size - (blocks.size - cut) * group
    return Change(int(np.flatnonzero(np.isfinite(column))[index]), level_before, level_after, size)


def _significant(values: Array, cut: int) -> float | None:
    """Return the shift in noise sd if it is sudden and significant, else None."""
    n = values.size
    step = np.where(np.arange(n) < cut, 0.0, 1.0)
    design = np.column_stack((np.ones(n), np.arange(n) / n, step))
    residual = values - design @ np.linalg.lstsq(design, values)[0]
    # Of a smooth curve with as many coefficients as the shift.
    grid = np.linspace(-1, 1, values.size)
    curve = np.vander(grid, 5)  # 5 coefficients: line, step and its index
    deviation = values - curve @ np.linalg.lstsq(curve, values)[0]
    smooth_squares = float(deviation @ deviation)
    if residual @ residual > smooth_squares:
        return None
    rho = persistence(residual, SHRINKAGE_TWO_LINES, 1.5)
    # Generalised least squares: differences at lag 1, weighted by rho, are white.
    memory = design[1:] - rho * design[:-1]
    target = values[1:] - rho * values[:-1]
    if rho >= 1:
        memory = memory[:, 1:]  # a random walk has no level, only steps
    fit = np.linalg.lstsq(memory, target)[0]
    remainder = target - memory @ fit
    free = n - 1 - memory.shape[1]
    spread = math.sqrt(float(remainder @ remainder) / free)
    shift = float(fit[-1])
    error = spread * math.sqrt(float(np.linalg.inv(memory.T @ memory)[-1, -1]))
    # 99 % over all positions.
    limit = t_quantile(1 - (1 - 0.99) / n, max(free * (1 - rho) / (1 + rho), 5.0))
    jump = np.median(values[cut : cut + JUMP_POINTS]) - np.median(values[cut - JUMP_POINTS : cut])
    # Half of the shift must occur within a few points: the rest is a slope.
    is_sudden = bool(jump * math.copysign(1.0, shift) >= 0.5 * abs(shift))
    if abs(shift) <= limit * error or not is_sudden:
        return None
    noise = robust_sd(residual) or 0.0
    size = shift / noise if noise > FLOAT_ROUNDING else math.copysign(math.inf, shift)
    # Noise sd: a smaller shift is irrelevant even if it is significant.
    return size if abs(size) >= 1.0 else None
