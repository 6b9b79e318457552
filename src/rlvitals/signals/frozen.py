"""Stretches over which a series repeats one value exactly."""

from dataclasses import dataclass

import numpy as np

from rlvitals.signals.finite import Array


@dataclass(frozen=True, slots=True)
class Stretch:
    """Successive equal values."""

    first: int  # index into the values given
    last: int
    count: int  # finite values in it
    value: float


def longest_frozen(values: Array) -> Stretch | None:
    """Return the longest stretch of bit-for-bit equal finite values, the newest of equals.

    NaN and infinities are passed over: they neither join a stretch nor break it. 0.0 and -0.0
    are equal. `None` where no value is finite; a series that never repeats has a stretch of 1.
    """
    column = np.asarray(values, dtype=np.float64).ravel()
    where = np.flatnonzero(np.isfinite(column))
    if not where.size:
        return None
    x = column[where]
    starts = np.concatenate(([0], np.flatnonzero(x[1:] != x[:-1]) + 1))
    ends = np.concatenate((starts[1:], [x.size]))
    lengths = ends - starts
    chosen = lengths.size - 1 - int(np.argmax(lengths[::-1]))
    first, last = int(where[starts[chosen]]), int(where[ends[chosen] - 1])
    return Stretch(first, last, int(lengths[chosen]), float(x[starts[chosen]]))
