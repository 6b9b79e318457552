"""Correlate the changes of two series over a range of lags."""

import math

import numpy as np

from rlvitals.signals.finite import Array, is_constant, scale_to_unit
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

MIN_LAGGED_POINTS = 50  # points: fewer cannot show a correlation over many lags
MEMORY_DIVISOR = 5  # the effective number of points uses correlations over 1/5 of them
MAX_LAGGED_POINTS = 1 << 16  # the last points are compared
MAX_CORRELATION = 1 - 1e-9  # Fisher's z is infinite for a correlation of 1


@dataclass(frozen=True, slots=True)
class Lagged:
    """The strongest correlation between the changes of two series."""

    lag: int  # points by which the second series follows the first; negative: it precedes it
    correlation: float
    limit: float  # smallest significant |correlation| over all lags
    effective: float  # effective number of independent pairs
    correlations: tuple[float, ...] = ()  # at every lag, the most negative lag first

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of the correlation; it excludes 0 if `is_significant`.

        Fisher's z, with the effective number of pairs and the number of lags of `limit`.
        """
        middle = math.atanh(min(max(self.correlation, -MAX_CORRELATION), MAX_CORRELATION))
        half = math.atanh(min(self.limit, MAX_CORRELATION))
        return math.tanh(middle - half), math.tanh(middle + half)

    @property
    def is_significant(self) -> bool:
        """True if the correlation is significant."""
        return abs(self.correlation) > self.limit


def lag_correlation(first: Array, second: Array, lags: int = 20) -> Lagged | None:
    """Correlate the changes of two series [n] of finite values at all lags up to `lags`.

    Two persistent series are always correlated, because both drift. So their differences, less
    the mean, are compared, and the effective number of n pairs is n / (1 + 2 sum r1(k) r2(k))
    (Bartlett 1935; Pyper and Peterman 1998). The limit has a Bonferroni correction for the lags.
    Only the last 65,536 points are used. None for fewer than 50 points or a constant series.

    A slow relation under fast independent noise is not detected: differences hide it.
    """
    if first.size != second.size or first.size < MIN_LAGGED_POINTS:
        return None
    x, y = _changes(first[-MAX_LAGGED_POINTS:]), _changes(second[-MAX_LAGGED_POINTS:])
    if x is None or y is None:
        return None
    n = x.size
    # The sum of the products of both autocorrelations over the lags from 1.
    longest, length = n // MEMORY_DIVISOR, 1 << (2 * n - 1).bit_length()
    spectra = (np.abs(np.fft.rfft(changes, length)) ** 2 for changes in (x, y))
    x_memory, y_memory = (np.fft.irfft(power)[1 : longest + 1] for power in spectra)
    shared_memory = float(x_memory @ y_memory)
    effective = min(n / max(1 + 2 * shared_memory, 1.0), n)
    if effective < MIN_LAGGED_POINTS / MEMORY_DIVISOR:
        return None
    # x[i] with y[i + lag]; values without a counterpart count as 0.
    by_lag = {
        lag: float(x[-lag:] @ y[:lag] if lag < 0 else x[: x.size - lag] @ y[lag:])
        for lag in range(-lags, lags + 1)
    }
    # Of equal correlations, the lag nearest to 0.
    best = max(by_lag, key=lambda lag: (round(abs(by_lag[lag]), 9), -abs(lag)))
    freedom = effective - 2
    t = t_quantile(1 - (1 - 0.99) / len(by_lag), freedom)  # 99 % over all lags
    limit = t / math.sqrt(freedom + t * t)
    return Lagged(best, by_lag[best], limit, effective, tuple(by_lag.values()))


def _changes(values: Array) -> Array | None:
    """Return the centred differences with norm 1; None for a constant or a straight line."""
    if is_constant(values):
        return None
    steps = np.diff(scale_to_unit(values)[0])
    steps = steps - steps.mean()
    length = float(np.sqrt(steps @ steps))
    return None if length == 0 else np.asarray(steps / length, dtype=np.float64)
