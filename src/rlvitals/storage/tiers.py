"""Thin a metric to the extremes of equal buckets, and count what each bucket had.

Of each bucket the first, last, lowest and highest point stay as they were logged, and the first
NaN and infinities. The counts of a bucket say how many points, NaN and infinities it had before.
"""

from struct import Struct
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import frames, typed
from rlvitals.storage.frames import Frame, Kind
from rlvitals.types import Series

Counts = NDArray[np.int64]
TIER_HEADER = Struct("<II")  # bytes of the key, buckets
COUNTS_PER_BUCKET = 5
POINTS_PER_BUCKET = 4  # of finite values: first, last, lowest, highest
TIER_BYTES_PER_BUCKET = 8 * COUNTS_PER_BUCKET


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """The counts of a thinned metric's buckets, each int64 [b], in the order of logging."""

    key: str
    stored: Counts  # points of the bucket that are left
    points: Counts  # points that it had
    nan: Counts
    above: Counts  # +inf
    below: Counts  # -inf

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self.points)

    def to_frame(self) -> bytes:
        """Encode it as a frame: key, padding, then the five counts [5, b]."""
        name = self.key.encode(errors="surrogatepass")
        head = TIER_HEADER.pack(len(name), len(self)) + name
        counts = np.array([self.stored, self.points, self.nan, self.above, self.below], "<i8")
        return frames.pack(Kind.TIER, head + bytes(-len(head) % 8) + counts.tobytes())

    @classmethod
    def parse(cls, frame: Frame) -> Self:
        """Read it from its frame. Raises ValueError."""
        payload = frame.payload
        if len(payload) < TIER_HEADER.size:
            raise ValueError("a tier without a key")
        length, buckets = TIER_HEADER.unpack_from(payload)
        start = TIER_HEADER.size + length
        start += -start % 8
        if len(payload) != start + TIER_BYTES_PER_BUCKET * buckets:
            raise ValueError("a tier's length is not that of its buckets")
        name = bytes(payload[TIER_HEADER.size : TIER_HEADER.size + length])
        counts = np.frombuffer(payload[start:], "<i8").reshape(COUNTS_PER_BUCKET, buckets)
        return cls(typed.text(name.decode(errors="surrogatepass")), *counts)


def thin(key: str, series: Series, buckets: int, tier: Tier | None = None) -> tuple[Counts, Tier]:
    """Return the indices of the points that stay, and the counts of their buckets.

    `tier`: the counts of the series where it was thinned before; its buckets are joined whole, so
    that counts and extremes stay exact. A series of fewer points than buckets stays complete.
    """
    value = series.values
    if tier is None:
        count = min(buckets, len(value))
        starts = np.arange(count, dtype=np.int64) * len(value) // max(count, 1)
        points = np.diff(starts, append=len(value))
        nan, above, below = (
            np.add.reduceat(mask.astype(np.int64), starts) if count else points
            for mask in (np.isnan(value), value == np.inf, value == -np.inf)
        )
    else:
        # The first of each group of adjacent buckets, of like size.
        preceding = np.cumsum(tier.points) - tier.points
        group = preceding * buckets // max(int(tier.points.sum()), 1)
        _, group_starts = np.unique(group, return_index=True)
        first = np.array(group_starts, np.int64)
        ends = np.concatenate([[0], np.cumsum(tier.stored)])
        starts = ends[first]
        points, nan, above, below = (
            np.add.reduceat(column, first) if len(first) else column
            for column in (tier.points, tier.nan, tier.above, tier.below)
        )
    ends = np.append(starts[1:], len(value))
    rows = [_select(value[start:end]) + start for start, end in zip(starts, ends, strict=True)]
    stored = np.array([len(selection) for selection in rows], np.int64)
    indices = np.concatenate(rows) if rows else np.empty(0, np.int64)
    return indices, Tier(key, stored, points, nan, above, below)


def _select(values: NDArray[np.float64]) -> Counts:
    """Return the indices of a bucket's points that stay, ascending."""
    finite = np.flatnonzero(np.isfinite(values))
    rows = {0, len(values) - 1}
    if len(finite):
        numbers = values[finite]
        places = [0, -1, int(numbers.argmin()), int(numbers.argmax())]
        rows |= {*finite[places].tolist()}
    if len(finite) < len(values):
        for mask in (np.isnan(values), values == np.inf, values == -np.inf):
            rows |= {*np.flatnonzero(mask)[:1].tolist()}
    return np.array(sorted(rows), np.int64)
