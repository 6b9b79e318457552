"""Whether one series follows another, and by how many points."""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.signals.finite import Array, is_constant, scaled
from rlvitals.signals.student import t_quantile

LEAST = 50  # points: fewer cannot show a correlation over many lags
LAGS = 20  # points looked at to either side
WIDE = 5  # the correlations of 1/5 of the points enter their effective number
LONGEST = 1 << 16  # points compared at most: the last ones
CONFIDENCE = 0.99  # over all lags together
SURE = 1 - 1e-9  # a correlation of 1 has no z


@dataclass(frozen=True, slots=True)
class Lagged:
    """The strongest correlation between the changes of two series."""

    lag: int  # points by which the second follows the first; negative: it goes ahead
    correlation: float
    limit: float  # the least |correlation| that is no chance, over all lags looked at
    effective: float  # independent pairs behind it
    correlations: tuple[float, ...] = ()  # at every lag looked at, the most negative one first

    @property
    def interval(self) -> tuple[float, float]:
        """Where the correlation lies, as sure as `limit` is: its ends have one sign if `proven`.

        Fisher's z, by the same effective number of pairs and as many lags as the limit.
        """
        middle = math.atanh(min(max(self.correlation, -SURE), SURE))
        half = math.atanh(min(self.limit, SURE))
        return math.tanh(middle - half), math.tanh(middle + half)

    @property
    def proven(self) -> bool:
        """Whether it is more than chance."""
        return abs(self.correlation) > self.limit


def lagged(first: Array, second: Array, lags: int = LAGS) -> Lagged | None:
    """Correlate the changes of two series [n] of finite values at all lags up to `lags`.

    Two sluggish series are always correlated: both drift. So it is their differences, less the
    mean, that are compared, and what is left of their memory counts: n pairs are worth
    n / (1 + 2 sum r1(k) r2(k)) (Bartlett 1935; Pyper and Peterman 1998). The limit is divided
    among the lags (Bonferroni). Of more than 65,536 points the last so many count. None for fewer
    than 50 points or a series that never changes.

    A slow relation under faster noise of another kind is not seen: single steps hide it.
    """
    if first.size != second.size or first.size < LEAST:
        return None
    x, y = _changes(first[-LONGEST:]), _changes(second[-LONGEST:])
    if x is None or y is None:
        return None
    n = x.size
    effective = min(n / max(1 + 2 * _shared_memory(x, y), 1.0), n)
    if effective < LEAST / WIDE:
        return None
    both = {lag: _correlation(x, y, lag) for lag in range(-lags, lags + 1)}
    # Of lags that are equally strong the one nearest to 0.
    best = max(both, key=lambda lag: (round(abs(both[lag]), 9), -abs(lag)))
    freedom = effective - 2
    t = t_quantile(1 - (1 - CONFIDENCE) / len(both), freedom)
    limit = t / math.sqrt(freedom + t * t)
    return Lagged(best, both[best], limit, effective, tuple(both.values()))


def _changes(values: Array) -> Array | None:
    """Return the differences around 0 with length 1; None where there are none."""
    if is_constant(values):
        return None
    steps = np.diff(scaled(values)[0])
    steps = steps - steps.mean()
    length = float(np.sqrt(steps @ steps))
    return None if length == 0 else np.asarray(steps / length, dtype=np.float64)


def _shared_memory(x: Array, y: Array) -> float:
    """Add up the products of both autocorrelations over the lags from 1."""
    longest = x.size // WIDE
    return float(_own(x, longest) @ _own(y, longest))


def _own(x: Array, longest: int) -> Array:
    spectrum = np.fft.rfft(x, 1 << (2 * x.size - 1).bit_length())
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2)[1 : longest + 1], dtype=np.float64)


def _correlation(x: Array, y: Array, lag: int) -> float:
    """Correlate x[i] with y[i + lag]; the ends that have no partner count as 0."""
    if lag < 0:
        return float(x[-lag:] @ y[:lag])
    return float(x[: x.size - lag] @ y[lag:])
