"""The one place where the level of a series shifts, if it does."""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import ROUNDING, Array, finite, is_constant, scaled, unscaled
from rlvitals.signals.noise import SHRINKAGE_TWO_LINES, line_fit, persistence
from rlvitals.signals.spread import robust_sd
from rlvitals.signals.student import t_quantile

LEAST = 20  # values below which no shift is judged
MARGIN = 0.05  # share of the series at either end where a shift cannot be told from an outlier
POINTS = 2048  # longer series are averaged into at most this many blocks first
CONFIDENCE = 0.99  # for all places together
PUSH = 1.5  # standard errors by which the noise's persistence is pushed up
SMOOTH = 4  # degree of the curve that a shift must outdo: 5 numbers, like line, step and place
VISIBLE = 1.0  # noise sd: a smaller shift is of no account, however certain
SUDDEN = 0.5  # share of the shift that must happen within a few points: the rest is a slope
NEAR = 5  # points on either side that show a shift to be sudden
SIDE = 0.2  # share of the series that tells the level on either side


@dataclass(frozen=True, slots=True)
class Change:
    """A level shift between two stretches of a series."""

    index: int  # first point at the new level, counted in the values given
    before: float  # median of the stretch before
    after: float
    size: float  # after - before, in standard deviations of the noise; infinite without noise


def change_point(values: Array) -> Change | None:
    """Find the best single level shift, and give it only if it is one.

    A shift is fitted beside a straight line, so a steady slope is none. It must stand out from
    AR(1) noise whose persistence is bounded from above, at the 1 % level over all places, and be
    at least 1 sd of it. It must fit better than a smooth curve (degree 4), and half of it must
    happen within 5 points. The first and last 5 % are not judged. Computed over the finite
    values; `None` for no shift, and for fewer than 20 values, which cannot be judged.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    x = finite(column)
    if x.size < LEAST or is_constant(x):
        return None
    group = math.ceil(x.size / POINTS)
    unit, exponent = scaled(x)
    blocks = block_means(unit, group)
    cut = _best_shift(blocks)
    size = _significant(blocks, cut)
    if size is None:
        return None
    near = max(1, round(SIDE * blocks.size))
    before, after = (
        unscaled(float(np.median(side)), exponent)
        for side in (blocks[max(cut - near, 0) : cut], blocks[cut : cut + near])
    )
    place = x.size - (blocks.size - cut) * group
    return Change(int(np.flatnonzero(np.isfinite(column))[place]), before, after, size)


def _best_shift(values: Array) -> int:
    """Return where a step beside a straight line takes out most squares."""
    n = values.size
    residual = line_fit(values)[1]
    t = np.arange(n) - (n - 1) / 2
    margin = max(NEAR, math.ceil(MARGIN * n))
    cuts = np.arange(margin, n - margin + 1)
    # The step, freed of its own mean and slope, at every cut at once.
    along = np.cumsum(t)[cuts - 1] ** 2 / (t @ t)
    norm = cuts * (n - cuts) / n - along
    return int(cuts[np.argmax(np.cumsum(residual)[cuts - 1] ** 2 / norm)])


def _significant(values: Array, cut: int) -> float | None:
    """Return the shift in noise sd if it is sudden and stands out, else None."""
    n = values.size
    step = np.where(np.arange(n) < cut, 0.0, 1.0)
    design = np.column_stack((np.ones(n), np.arange(n) / n, step))
    residual = values - design @ np.linalg.lstsq(design, values)[0]
    if residual @ residual > _smooth_squares(values):
        return None
    rho = persistence(residual, SHRINKAGE_TWO_LINES, PUSH)
    # Generalised least squares: what is left after each value's memory of the last is white.
    memory = design[1:] - rho * design[:-1]
    target = values[1:] - rho * values[:-1]
    if rho >= 1:
        memory = memory[:, 1:]  # a random walk has no level, only steps
    fit = np.linalg.lstsq(memory, target)[0]
    left = target - memory @ fit
    free = n - 1 - memory.shape[1]
    spread = math.sqrt(float(left @ left) / free)
    shift = float(fit[-1])
    error = spread * math.sqrt(float(np.linalg.inv(memory.T @ memory)[-1, -1]))
    limit = t_quantile(1 - (1 - CONFIDENCE) / n, max(free * (1 - rho) / (1 + rho), 5.0))
    if abs(shift) <= limit * error or not _sudden(values, cut, shift):
        return None
    noise = robust_sd(residual) or 0.0
    size = shift / noise if noise > ROUNDING else math.copysign(math.inf, shift)
    return size if abs(size) >= VISIBLE else None


def _smooth_squares(values: Array) -> float:
    """Return the squares that a smooth curve leaves with as many coefficients as the shift."""
    t = np.linspace(-1, 1, values.size)
    design = np.polynomial.legendre.legvander(t, SMOOTH)
    residual = values - design @ np.linalg.lstsq(design, values)[0]
    return float(residual @ residual)


def _sudden(values: Array, cut: int, shift: float) -> bool:
    jump = np.median(values[cut : cut + NEAR]) - np.median(values[cut - NEAR : cut])
    return bool(jump * math.copysign(1.0, shift) >= SUDDEN * abs(shift))
