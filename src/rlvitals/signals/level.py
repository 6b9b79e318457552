"""Intervals of a series beyond a limit, and robust means of its start and end."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.finite import Array, finite, scale_to_unit, unscale

Flags = NDArray[np.bool_]
MIN_CHANGE_VALUES = 4  # of which the first and the last fifth are levels


def stays_above(values: Array, limit: float, window: int, share: float) -> tuple[int, int] | None:
    """Return the first and last index of the stretch over which values stay above a limit.

    A window of `window` consecutive points qualifies if at least `share` of its points that are
    not NaN are above, and at least half of them are not NaN. The stretch runs from the first
    point above in the first such window to the last point above in the last. +inf is above.
    `None` where no window qualifies, and where there are fewer points than one window.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    return _stays(column > limit, ~np.isnan(column), window, share)


def stays_below(values: Array, limit: float, window: int, share: float) -> tuple[int, int] | None:
    """Return the first and last index of the stretch below a limit: see `stays_above`."""
    column = np.asarray(values, dtype=np.float64).ravel()
    return _stays(column < limit, ~np.isnan(column), window, share)


def _stays(beyond: Flags, is_known: Flags, window: int, share: float) -> tuple[int, int] | None:
    if window < 1 or beyond.size < window:
        return None
    sums = [np.concatenate(([0], np.cumsum(flags, dtype=np.int64))) for flags in (beyond, is_known)]
    hits, points = (total[window:] - total[:-window] for total in sums)
    windows = np.flatnonzero((hits > 0) & (hits >= share * points) & (2 * points >= window))
    if not windows.size:
        return None
    indices = np.flatnonzero(beyond)
    first = indices[np.searchsorted(indices, windows[0])]
    last = indices[np.searchsorted(indices, windows[-1] + window) - 1]
    return int(first), int(last)


def first_last_change(values: Array, share: float = 0.2) -> tuple[float, float] | None:
    """Return robust means of the first and the last `share` of the series.

    The means are trimmed: a tenth at either end of the sorted stretch is excluded. Computed over
    the finite values; `None` for fewer than 4, or where the two stretches would overlap.
    """
    x = finite(values)
    count = max(round(share * x.size), 1)
    if x.size < MIN_CHANGE_VALUES or 2 * count > x.size:
        return None
    unit, exponent = scale_to_unit(x)
    cut = int(0.1 * count)
    stretches = (np.sort(stretch) for stretch in (unit[:count], unit[-count:]))
    first, last = (float(stretch[cut : count - cut].mean()) for stretch in stretches)
    return unscale(first, exponent), unscale(last, exponent)


def bound_change(low: float, high: float, values: Array) -> tuple[float, float]:
    """Bound the interval of a change by the range of the values: no level can change by more.

    An interval that lies wholly beyond the range is returned as it is.
    """
    spread = float(np.ptp(values))
    bounded = max(low, -spread), min(high, spread)
    return bounded if bounded[0] < bounded[1] else (low, high)
