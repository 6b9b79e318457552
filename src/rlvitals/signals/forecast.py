"""Extrapolate a series to a level, with a confidence interval."""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, scale_to_unit
from rlvitals.signals.noise import SHRINKAGE_LINE, persistence
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

MIN_PACE_POINTS = 20  # points of the stretch that the slope is fitted to


@dataclass(frozen=True, slots=True)
class Crossing:
    """The position at which the trend reaches a level, and its interval."""

    at: float
    low: float
    high: float
    shape: str  # "straight" or "exponential"


@dataclass(frozen=True, slots=True)
class Unclear:
    """The reason why there is no forecast."""

    why: str


def crossing(
    places: Array | NDArray[np.int64], values: Array, level: float, *, confidence: float = 0.90
) -> Crossing | Unclear:
    """Extrapolate the recent half of a series of finite values to a level.

    `places` [n] increases; `values` [n]. Fit a straight line, or an exponential where values and
    level are positive and it fits better, by least squares. The interval is Fieller's (1954,
    J. R. Stat. Soc. B 16) under AR(1) noise with the persistence of the residuals, raised by 1.3
    standard errors. It covers the position at which the trend, not one noisy value, crosses.
    """
    count = max(math.ceil(0.5 * values.size), min(MIN_PACE_POINTS, values.size))
    x, y = np.asarray(places[-count:], dtype=np.float64), values[-count:].astype(np.float64)
    if y.size < MIN_PACE_POINTS or np.ptp(x) <= 0:
        return Unclear(f"{y.size} points are too few to tell a pace")
    group = math.ceil(y.size / 120)  # a longer stretch is averaged into blocks
    y, exponent = scale_to_unit(y)  # squares of 1e308 must not overflow
    try:
        level = math.ldexp(level, -exponent)
    except OverflowError:
        return Unclear("at this pace it is too far off to tell")
    x, y = block_means(x, group), block_means(y, group)
    span = float(places[-1]) - float(places[0])
    logged = level > 0 and bool((y > 0).all())
    if logged:  # an exponential, if it fits better than a straight line
        straight, log = _Line.fit(x, y).residual, _Line.fit(x, np.log(y)).residual
        exponential = y - np.exp(np.log(y) - log)
        logged = float(exponential @ exponential) < float(straight @ straight)
    reach = _reach(x, np.log(y) if logged else y, math.log(level) if logged else level, confidence)
    if isinstance(reach, Unclear):
        return reach
    step, low, high = reach
    # No forecast beyond three times the span of the series.
    if high > float(places[-1]) + 3.0 * span:
        return Unclear("at this pace it is too far off to tell")
    return Crossing(step, low, high, "exponential" if logged else "straight")


@dataclass(frozen=True, slots=True)
class _Line:
    """A least-squares line centred on the mean of `x`, with its error."""

    middle: float
    height: float  # at the middle
    slope: float
    residual: Array
    error: Array  # covariance of height and slope [2, 2]
    freedom: float

    @staticmethod
    def fit(x: Array, y: Array) -> "_Line":
        """Fit the line and its error under AR(1) noise."""
        middle = float(x.mean())
        design = np.stack([np.ones_like(x), x - middle], axis=1)
        inverse = np.linalg.pinv(design.T @ design)
        height, slope = inverse @ design.T @ y
        residual = y - design @ np.array([height, slope])
        rho = min(persistence(residual, SHRINKAGE_LINE, 1.3), 0.999)
        freedom = max(x.size * (1 - rho) / (1 + rho) - 2, 1.0)
        # Residuals of a persistent series are smaller than its noise: the line absorbs some.
        innovations = residual[1:] - rho * residual[:-1]
        variance = float(innovations @ innovations) / max(x.size - 3, 1) / (1 - rho * rho)
        lags = np.abs(np.subtract.outer(np.arange(x.size), np.arange(x.size)))
        weights = inverse @ design.T
        error = variance * weights @ (rho**lags) @ weights.T
        return _Line(middle, float(height), float(slope), residual, error, freedom)


def _reach(
    x: Array, y: Array, level: float, confidence: float
) -> tuple[float, float, float] | Unclear:
    """Solve |line(x) - level| <= t * error(x) for x; return the crossing and its interval."""
    line, end = _Line.fit(x, y), float(x[-1])
    distance = level - line.height
    current = line.height + line.slope * (end - line.middle)
    if not line.slope or (level - current) * line.slope <= 0:
        return Unclear("it does not head there")
    # The slopes of the two halves differ at 90 % confidence.
    half = x.size // 2
    first, second = _Line.fit(x[:half], y[:half]), _Line.fit(x[half:], y[half:])
    error = math.sqrt(float(first.error[1, 1] + second.error[1, 1]))
    quantile = t_quantile(0.90, first.freedom + second.freedom)
    has_two_paces = abs(first.slope - second.slope) > quantile * error
    if has_two_paces:
        return Unclear("its pace changes")
    t = t_quantile(confidence, line.freedom)
    a = line.slope**2 - t**2 * float(line.error[1, 1])
    b = line.slope * distance + t**2 * float(line.error[0, 1])
    c = distance**2 - t**2 * float(line.error[0, 0])
    if a <= 0:
        return Unclear("its pace cannot be told from its noise")
    root = math.sqrt(max(b * b - a * c, 0.0))
    step = line.middle + distance / line.slope
    return step, max(line.middle + (b - root) / a, end), max(line.middle + (b + root) / a, step)
