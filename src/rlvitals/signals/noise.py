"""Model the noise around a curve as AR(1), with its persistence bounded from above.

A learning curve bends, and a straight line leaves the bend in its residuals, where it looks
like persistent noise. So four models are fitted: around a straight line, around two straight
lines with a jump between them, around a line through the tail, and a random walk, which is the
worst case and needs no fit.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import Array
from rlvitals.startup.fast_dataclass import dataclass

Indices = NDArray[np.int64]

MAX_CACHED_SAMPLES = 4096  # of a fit that is kept: 32 KiB a column
MIN_NOISE_POINTS = 12  # points below which no persistence can be bounded
# Shrinkage of the lag-1 autocorrelation of residuals, E[r] = rho - (free + slope * rho) / n. For
# a line: Kendall 1954, Marriott and Pope 1954. For two lines with the best of all breaks: fitted
# to 400 simulated AR(1) series for each n in 30..200 and each rho in 0..1.
SHRINKAGE_LINE = (2.0, 4.0)
SHRINKAGE_TWO_LINES = (7.0, 20.0)
# Standard errors added to the persistence, and its spread times n at a unit root: the smallest
# with which `trend` keeps 5 % false positives on AR(.98) and moving averages (see its tests).
PUSH_LINE, PUSH_TWO_LINES, PUSH_TAIL, UNIT_ROOT_SPREAD = 1.6, 2.1, 2.75, 5.0


@dataclass(frozen=True, slots=True)
class Noise:
    """AR(1) noise: x[i] = persistence * x[i - 1] + innovation."""

    persistence: float  # in [0, 1]; 1 is a random walk
    innovation: float  # standard deviation of the innovations
    freedom: float  # residual degrees of freedom

    def variance(self, weights: Array) -> float:
        """Return the variance of `weights` @ noise, for weights that sum to 0.

        Uses the variogram, which unlike the covariance exists for a random walk.
        """
        lags = np.arange(1, weights.size, dtype=np.float64)
        if self.persistence >= 1:
            semivariance = lags / 2
        else:
            rho = self.persistence
            semivariance = np.asarray((1 - rho**lags) / (1 - rho * rho), dtype=np.float64)
        total = -2 * self.innovation**2 * float(_overlap(weights.tobytes()) @ semivariance)
        return max(total, 0.0)


@lru_cache(maxsize=256)
def _overlap(weights: bytes) -> Array:
    """Return the autocorrelation sums of the weights at lags 1 to n - 1 [n - 1]."""
    column = np.frombuffer(weights)
    return np.asarray(np.correlate(column, column, "full")[column.size :], dtype=np.float64)


def _centred_times(samples: int) -> tuple[Array, float]:
    """Return the sample numbers around their mean [samples], and the sum of their squares."""
    make = _make_centred_times if samples <= MAX_CACHED_SAMPLES else _make_centred_times.__wrapped__
    return make(samples)


@lru_cache(maxsize=256)
def _make_centred_times(samples: int) -> tuple[Array, float]:
    t = np.arange(samples, dtype=np.float64) - (samples - 1) / 2
    return t, float(t @ t)


def slope_weights(samples: int) -> Array:
    """Return the weights whose dot product with values is their least-squares slope."""
    t, squares = _centred_times(samples)
    return np.asarray(t / squares, dtype=np.float64)


def line_fit(values: Array) -> tuple[float, Array]:
    """Return the least-squares slope per sample and the residuals, for at least two values."""
    t, squares = _centred_times(values.size)
    centred = values - values.mean()
    slope = float(centred @ t / squares)
    return slope, centred - slope * t


def best_break(values: Array) -> int:
    """Return the index at which two unconnected lines fit best, for at least 12 values."""
    n = values.size
    t = np.arange(n) - n / 2
    x = values - values.mean()
    sums = [np.concatenate(([0.0], np.cumsum(v))) for v in (t, x, t * t, x * t, x * x)]

    def squares(first: Indices, last: Indices) -> Array:
        count = last - first
        st, sx, stt, sxt, sxx = (s[last] - s[first] for s in sums)
        along = (sxt - st * sx / count) ** 2 / (stt - st * st / count)
        return np.asarray(sxx - sx * sx / count - along, dtype=np.float64)

    margin = max(4, n // 10)
    cuts = np.arange(margin, n - margin + 1, dtype=np.int64)
    zeros = np.zeros_like(cuts)
    return int(cuts[np.argmin(squares(zeros, cuts) + squares(cuts, zeros + n))])


def two_lines_fit(values: Array) -> tuple[Array, int]:
    """Return the residuals around two unconnected lines and the index of the break."""
    cut = best_break(values)
    return np.concatenate((line_fit(values[:cut])[1], line_fit(values[cut:])[1])), cut


def persistence(residual: Array, shrinkage: tuple[float, float], push: float) -> float:
    """Return the lag-1 autocorrelation in [0, 1], bias-corrected and raised.

    `push` is the number of standard errors to add; 0 gives about the median of the true value,
    which is 1 (a random walk) far more often than the raw estimate.
    """
    squares = float(residual @ residual)
    if squares == 0:
        return 0.0
    n, (free, slope) = residual.size, shrinkage
    raw = float(residual[1:] @ residual[:-1]) / squares
    rho = min((raw + free / n) / max(1 - slope / n, 0.05), 1.0)
    spread = math.sqrt(max(1 - rho * rho, 0.0) / n + (UNIT_ROOT_SPREAD / n) ** 2)
    return min(max(rho + push * spread, 0.0), 1.0)


def candidates(values: Array, *, push: float = 1.0) -> tuple[Noise, ...]:
    """Return conservative models of the noise of at least 12 finite values.

    Each model bounds the noise from above, so the tightest may be used. `push` 0 only corrects
    the bias of the persistence, without a bound.
    """
    n = values.size
    steps = np.diff(values)
    steps = steps - steps.mean()
    # 0.2 degrees of freedom for each step: the tails of a random walk are heavy.
    walk = Noise(1.0, math.sqrt(float(steps @ steps) / (n - 2)), 0.2 * n)
    fit = _residuals if n <= MAX_CACHED_SAMPLES else _residuals.__wrapped__
    line, tail, bent, cut = fit(np.asarray(values, dtype=np.float64).tobytes())
    return (
        walk,
        *ar1_noise(line, persistence(line, SHRINKAGE_LINE, push * PUSH_LINE)),
        *ar1_noise(
            bent, persistence(bent, SHRINKAGE_TWO_LINES, push * PUSH_TWO_LINES), seams=(cut,)
        ),
        *ar1_noise(tail, persistence(tail, SHRINKAGE_LINE, push * PUSH_TAIL)),
    )


@lru_cache(maxsize=64)
def _residuals(values: bytes) -> tuple[Array, Array, Array, int]:
    """Return the residuals around a line, a line through the tail and two lines, and the break.

    They are the same for every `push`.
    """
    column = np.frombuffer(values)
    # An early rise is over within the last 60 %.
    tail = column[column.size - int(0.6 * column.size) :]
    return (line_fit(column)[1], line_fit(tail)[1], *two_lines_fit(column))


def ar1_noise(residual: Array, rho: float, *, seams: tuple[int, ...] = ()) -> tuple[Noise, ...]:
    """Model residuals of lines that meet at `seams` as AR(1) noise; empty if rho is 1."""
    if rho >= 1:
        return ()
    # A step across a seam belongs to neither line.
    innovations = residual[1:] - rho * residual[:-1]
    if seams:
        innovations = np.delete(innovations, [seam - 1 for seam in seams])
    n, fitted = residual.size, 2 + 3 * len(seams)  # two coefficients per line, one per seam
    variance = float(innovations @ innovations) / max(n - 1 - fitted, 1)
    return (Noise(rho, math.sqrt(variance), max(n * (1 - rho) / (1 + rho) - 2, 3.0)),)
