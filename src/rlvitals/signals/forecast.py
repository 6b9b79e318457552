"""When a series will reach a level, if it goes on as it has: with an interval, or not at all."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, scaled
from rlvitals.signals.noise import SHRINKAGE_LINE, persistence
from rlvitals.signals.student import t_quantile

LEAST = 20  # points of the stretch that the pace is taken from
RECENT = 0.5  # share of the series, its last: the pace of now
POINTS = 120  # a longer stretch is averaged into blocks
PUSH = 1.3  # standard errors by which the noise's persistence is pushed up
FURTHEST = 3.0  # times the span of the series: beyond that nothing is foretold
BENDS = 0.90  # confidence with which two halves of the stretch must differ to be two paces


@dataclass(frozen=True, slots=True)
class Crossing:
    """The place at which the trend reaches a level, and its interval."""

    at: float
    low: float
    high: float
    shape: str  # "straight" or "exponential"


@dataclass(frozen=True, slots=True)
class Unclear:
    """Why no place can be told."""

    why: str


def crossing(
    places: Array | NDArray[np.int64], values: Array, level: float, *, confidence: float = 0.90
) -> Crossing | Unclear:
    """Extrapolate the recent half of a series of finite values to a level.

    `places` [n], rising, and `values` [n]. A straight line, or an exponential one where values
    and level are positive and it fits better, by least squares; the interval is Fieller's (1954,
    J. R. Stat. Soc. B 16) under AR(1) noise of the residuals' own persistence, pushed up by
    1.3 standard errors. It covers the place at which the trend, not one noisy value, gets there.
    """
    count = max(math.ceil(RECENT * values.size), min(LEAST, values.size))
    x, y = np.asarray(places[-count:], dtype=np.float64), values[-count:].astype(np.float64)
    if y.size < LEAST or np.ptp(x) <= 0:
        return Unclear(f"{y.size} points are too few to tell a pace")
    group = math.ceil(y.size / POINTS)
    y, exponent = scaled(y)  # squares of 1e308 must not overflow
    try:
        level = math.ldexp(level, -exponent)
    except OverflowError:
        return Unclear("at this pace it is too far off to tell")
    x, y = block_means(x, group), block_means(y, group)
    span = float(places[-1]) - float(places[0])
    logged = level > 0 and bool((y > 0).all()) and _bends_less(x, y)
    found = _reach(x, np.log(y) if logged else y, math.log(level) if logged else level, confidence)
    if isinstance(found, Unclear):
        return found
    at, low, high = found
    if high > float(places[-1]) + FURTHEST * span:
        return Unclear("at this pace it is too far off to tell")
    return Crossing(at, low, high, "exponential" if logged else "straight")


def _bends_less(x: Array, y: Array) -> bool:
    """Tell whether an exponential fits better than a straight line, both on the scale of `y`."""
    straight, log = _Line.fit(x, y), _Line.fit(x, np.log(y))
    exponential = y - np.exp(np.log(y) - log.residual)
    return float(exponential @ exponential) < float(straight.residual @ straight.residual)


@dataclass(frozen=True, slots=True)
class _Line:
    """A least-squares line about the middle of its places, and how sure it is."""

    middle: float
    height: float  # at the middle
    slope: float
    residual: Array
    error: Array  # covariance of height and slope [2, 2]
    freedom: float

    @staticmethod
    def fit(x: Array, y: Array) -> "_Line":
        """Fit, with the error that AR(1) noise leaves."""
        middle = float(x.mean())
        design = np.stack([np.ones_like(x), x - middle], axis=1)
        inverse = np.linalg.pinv(design.T @ design)
        height, slope = inverse @ design.T @ y
        residual = y - design @ np.array([height, slope])
        rho = min(persistence(residual, SHRINKAGE_LINE, PUSH), 0.999)
        freedom = max(x.size * (1 - rho) / (1 + rho) - 2, 1.0)
        # Residuals of a sluggish series are smaller than its noise by what the line took.
        innovations = residual[1:] - rho * residual[:-1]
        variance = float(innovations @ innovations) / max(x.size - 3, 1) / (1 - rho * rho)
        lags = np.abs(np.subtract.outer(np.arange(x.size), np.arange(x.size)))
        weights = inverse @ design.T
        error = variance * weights @ (rho**lags) @ weights.T
        return _Line(middle, float(height), float(slope), residual, error, freedom)


def _reach(
    x: Array, y: Array, level: float, confidence: float
) -> tuple[float, float, float] | Unclear:
    """Solve |line(x) - level| <= t * error(x) for x, the line's own place in the middle."""
    line, end = _Line.fit(x, y), float(x[-1])
    distance = level - line.height
    now = line.height + line.slope * (end - line.middle)
    if not line.slope or (level - now) * line.slope <= 0:
        return Unclear("it does not head there")
    if _two_paces(x, y):
        return Unclear("its pace changes")
    t = t_quantile(confidence, line.freedom)
    a = line.slope**2 - t**2 * float(line.error[1, 1])
    b = line.slope * distance + t**2 * float(line.error[0, 1])
    c = distance**2 - t**2 * float(line.error[0, 0])
    if a <= 0:
        return Unclear("its pace cannot be told from its noise")
    root = math.sqrt(max(b * b - a * c, 0.0))
    at = line.middle + distance / line.slope
    return at, max(line.middle + (b - root) / a, end), max(line.middle + (b + root) / a, at)


def _two_paces(x: Array, y: Array) -> bool:
    """Tell whether the two halves of a stretch have provably different slopes."""
    half = x.size // 2
    early, late = _Line.fit(x[:half], y[:half]), _Line.fit(x[half:], y[half:])
    error = math.sqrt(float(early.error[1, 1] + late.error[1, 1]))
    t = t_quantile(BENDS, early.freedom + late.freedom)
    return abs(early.slope - late.slope) > t * error
