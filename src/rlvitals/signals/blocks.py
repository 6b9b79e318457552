"""Autocorrelation: how many neighbouring points of a series count as one independent sample."""

import math

import numpy as np

from rlvitals.signals.finite import Array, finite, is_constant, scaled
from rlvitals.signals.noise import (
    LEAST,
    SHRINKAGE_LINE,
    SHRINKAGE_TWO_LINES,
    line_fit,
    persistence,
    two_lines_fit,
)

SOKAL = 5.0  # the window ends at 5 tau: Sokal 1997, Monte Carlo Methods, section 3
AMPLE = 100.0  # series length, in tau, from which its own correlations need no AR(1) model
PER_BLOCK = 5.0  # block length in tau: means of such blocks are nearly independent
LONGEST = 1 << 16  # points transformed at once; longer series are averaged down first


def autocorrelation_time(values: Array) -> float:
    """Return the integrated autocorrelation time tau, in samples, between 1 and the length.

    n values carry about n / tau independent ones. Computed over the finite values, around a
    straight line or, where the curve bends, around two. Short series understate tau, hence a
    bias correction; a series too short to show its tau (fewer than 12 values, or one that
    could be a random walk) gets its own length: it may be one single sample. A constant gives 1.
    """
    x = finite(values)
    if is_constant(x):
        return 1.0
    if x.size < LEAST:
        return float(x.size)
    group = math.ceil(x.size / LONGEST)
    x = block_means(scaled(x)[0], group)
    tau = max(_tau(x), 1.0)
    # A block that is itself white hides any tau up to its own length.
    return float(min(max(group * tau if group > 1 else tau, 1.0), group * x.size))


def _tau(values: Array) -> float:
    residual, bent = line_fit(values)[1], two_lines_fit(values)[0]
    rho = persistence(residual, SHRINKAGE_LINE, 0.0)
    rho_bent = persistence(bent, SHRINKAGE_TWO_LINES, 1.0)
    if rho_bent < rho:
        residual, rho = bent, rho_bent
    if rho >= 1:
        return float(values.size)
    tau = _sokal(residual)
    return tau if values.size >= AMPLE * tau else max(tau, (1 + rho) / (1 - rho))


def _sokal(residual: Array) -> float:
    n = residual.size
    spectrum = np.fft.rfft(residual, 1 << (2 * n - 1).bit_length())
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    if correlation[0] <= 0:
        return 1.0
    rho = correlation / correlation[0]
    sums = 2 * np.cumsum(rho) - 1
    window = np.arange(n) >= SOKAL * np.maximum(sums, 1.0)
    end = int(np.argmax(window)) if window.any() else n - 1
    tau = float(max(sums[end], 1.0))
    # Taking out a line pulls each of the `end` correlations down by about 2 tau / n.
    return tau + 2 * end * min(2 * tau / n, 1.0) * max(1 - tau / (end + 1), 0.0)


def block_length(values: Array) -> int:
    """Return the number of samples, at least 5 tau, whose means are nearly independent.

    At least 1, at most the number of finite values (1 for none): a series of which one block
    fills the whole has no second sample to be compared with.
    """
    count = finite(values).size
    return max(1, min(math.ceil(PER_BLOCK * autocorrelation_time(values)), count))


def block_means(values: Array, length: int) -> Array:
    """Return the means of whole blocks of `length` finite values, oldest first.

    Blocks are counted from the newest value back, so the newest always counts and up to
    `length - 1` of the oldest do not. Fewer values than one block: an empty array. Exact
    for any finite values: sums cannot overflow.
    """
    x = finite(values)
    width = max(int(length), 1)
    count = x.size // width
    blocks = x[x.size - count * width :].reshape(count, width)
    return np.asarray((blocks / width).sum(axis=1), dtype=np.float64)


def decimate(values: Array, window: int) -> Array:
    """Return every `window`-th value, the newest included: a moving average made independent.

    For a logged moving average over `window` rows (1 returns all). Values are taken by row, so
    NaN and infinities stay where they fall; filter them afterwards.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    return x[::-1][:: max(int(window), 1)][::-1]
