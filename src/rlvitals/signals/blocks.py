"""Autocorrelation time of a series, and means of nearly independent blocks."""

import math

import numpy as np

from rlvitals.signals.finite import Array, finite, is_constant, scale_to_unit
from rlvitals.signals.noise import (
    MIN_NOISE_POINTS,
    SHRINKAGE_LINE,
    SHRINKAGE_TWO_LINES,
    line_fit,
    persistence,
    two_lines_fit,
)


def autocorrelation_time(values: Array) -> float:
    """Return the integrated autocorrelation time tau, in samples, between 1 and the length.

    A series of n values contains about n / tau independent samples. Computed over the finite
    values, around a straight line or, where the curve bends, around two. Short series
    underestimate tau, hence a bias correction. A series too short to estimate tau (fewer than 12
    values, or a possible random walk) returns its own length. A constant returns 1.
    """
    x = finite(values)
    if is_constant(x):
        return 1.0
    if x.size < MIN_NOISE_POINTS:
        return float(x.size)
    group = math.ceil(x.size / (1 << 16))  # longer series are averaged down first
    x = block_means(scale_to_unit(x)[0], group)
    residual, bent = line_fit(x)[1], two_lines_fit(x)[0]
    rho = persistence(residual, SHRINKAGE_LINE, 0.0)
    rho_bent = persistence(bent, SHRINKAGE_TWO_LINES, 1.0)
    if rho_bent < rho:
        residual, rho = bent, rho_bent
    tau = float(x.size)
    if rho < 1:
        tau = _sokal(residual)
        # From 100 tau on, the series' own correlations need no AR(1) model.
        tau = tau if x.size >= 100.0 * tau else max(tau, (1 + rho) / (1 - rho))
    tau = max(tau, 1.0)
    # A block that is itself white hides any tau up to its own length.
    return float(min(max(group * tau if group > 1 else tau, 1.0), group * x.size))


def _sokal(residual: Array) -> float:
    n = residual.size
    spectrum = np.fft.rfft(residual, 1 << (2 * n - 1).bit_length())
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    if correlation[0] <= 0:
        return 1.0
    rho = correlation / correlation[0]
    sums = 2 * np.cumsum(rho) - 1
    # The window ends at 5 tau: Sokal 1997, Monte Carlo Methods, section 3.
    window = np.arange(n) >= 5.0 * np.maximum(sums, 1.0)
    end = int(np.argmax(window)) if window.any() else n - 1
    tau = float(max(sums[end], 1.0))
    # Taking out a line pulls each of the `end` correlations down by about 2 tau / n.
    return tau + 2 * end * min(2 * tau / n, 1.0) * max(1 - tau / (end + 1), 0.0)


def block_length(values: Array) -> int:
    """Return the number of samples, at least 5 tau, whose means are nearly independent.

    At least 1, at most the number of finite values (1 for none). A series that fills only one
    block has no second independent sample.
    """
    count = finite(values).size
    # Means of blocks of 5 tau are nearly independent.
    return max(1, min(math.ceil(5.0 * autocorrelation_time(values)), count))


def block_means(values: Array, length: int) -> Array:
    """Return the means of complete blocks of `length` finite values, oldest first.

    Blocks are aligned to the newest value, so up to `length - 1` of the oldest values are
    ignored. Fewer values than one block return an empty array. Sums cannot overflow.
    """
    x = finite(values)
    width = max(int(length), 1)
    count = x.size // width
    blocks = x[x.size - count * width :].reshape(count, width)
    return np.asarray((blocks / width).sum(axis=1), dtype=np.float64)


def decimate(values: Array, window: int) -> Array:
    """Return every `window`-th value, the newest included.

    Use it on a logged moving average over `window` rows, to get independent values (1 returns
    all). Rows are selected by position, so NaN and infinities may remain; filter them afterwards.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    return x[::-1][:: max(int(window), 1)][::-1]
