"""Thin a metric while it is read: the points that rules judge and those that charts draw.

The points of a metric lie in buckets of equally many, at most MAX_THIN_POINTS of them. Where there
would be more, adjacent buckets are joined and each is twice as wide. Of each bucket the first,
last, lowest and highest point are kept as they were logged, and the first NaN and infinities. The
points that rules judge are exactly those of `signals.thin.thin`.
"""

import copy
from enum import IntEnum
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.thin import MAX_THIN_POINTS, POINTS_PER_EXTREME, find_rare
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.columns import concatenate_series
from rlvitals.types import Outline, Series

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]

Kind = TypeVar("Kind", np.int64, np.float64)


class Slot(IntEnum):
    """The points of a bucket that are kept."""

    FIRST = 0
    LAST = 1
    LOW = 2
    HIGH = 3
    NAN = 4
    ABOVE = 5
    BELOW = 6


@dataclass(frozen=True, slots=True, eq=False)
class _Buckets:
    """Adjacent buckets: the kept points [7, b], and what all their points come to [b].

    A bucket without such a point, as one without NaN, holds any other of its points in its place.
    """

    places: Whole
    steps: Whole
    times: Numbers
    values: Numbers
    sums: Numbers  # of finite values
    numbers: Whole  # count of finite values

    def __len__(self) -> int:
        return len(self.sums)

    def select(self, buckets: slice) -> Self:
        """Return some of the buckets."""
        return type(self)(
            self.places[:, buckets],
            self.steps[:, buckets],
            self.times[:, buckets],
            self.values[:, buckets],
            self.sums[buckets],
            self.numbers[buckets],
        )

    def append(self, following: "_Buckets") -> "_Buckets":
        """Return these buckets and those that follow them."""
        return _Buckets(
            np.concatenate((self.places, following.places), axis=1),
            np.concatenate((self.steps, following.steps), axis=1),
            np.concatenate((self.times, following.times), axis=1),
            np.concatenate((self.values, following.values), axis=1),
            np.concatenate((self.sums, following.sums)),
            np.concatenate((self.numbers, following.numbers)),
        )

    def join(self, following: "_Buckets") -> "_Buckets":
        """Join each bucket with the one that follows it, given at the same index."""
        mine, following_values = self.values, following.values
        is_number = np.isfinite(following_values)
        is_later = np.zeros(mine.shape, np.bool_)
        is_later[Slot.LAST] = True
        is_later[Slot.LOW] = is_number[Slot.LOW] & ~(
            np.isfinite(mine[Slot.LOW]) & (mine[Slot.LOW] <= following_values[Slot.LOW])
        )
        is_later[Slot.HIGH] = is_number[Slot.HIGH] & ~(
            np.isfinite(mine[Slot.HIGH]) & (mine[Slot.HIGH] >= following_values[Slot.HIGH])
        )
        is_later[Slot.NAN] = np.isnan(following_values[Slot.NAN]) & ~np.isnan(mine[Slot.NAN])
        is_later[Slot.ABOVE] = (following_values[Slot.ABOVE] == np.inf) & (
            mine[Slot.ABOVE] != np.inf
        )
        is_later[Slot.BELOW] = (following_values[Slot.BELOW] == -np.inf) & (
            mine[Slot.BELOW] != -np.inf
        )
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums + following.sums
        return _Buckets(
            np.where(is_later, following.places, self.places),
            np.where(is_later, following.steps, self.steps),
            np.where(is_later, following.times, self.times),
            np.where(is_later, following_values, mine),
            sums,
            self.numbers + following.numbers,
        )


class Thinner:
    """The kept points of one metric, attempt after attempt; memory does not grow with the run."""

    def __init__(self, batch_points: int = 1 << 18, waiting_points: int = 1 << 16) -> None:
        """Start without points. `batch_points` are looked at together: they fit in a cache.

        `waiting_points` are put in buckets together: as they are they take as much memory.
        """
        self._batch_points, self._waiting_points = batch_points, waiting_points
        self.count = 0
        self.is_ascending = True  # no attempt's steps go back
        self._waiting: list[Series] = []  # points that are not in buckets yet
        self._settled = 0  # points in buckets
        self._width = 1
        self._buckets: _Buckets | None = None
        self._bad = np.zeros(3, np.int64)
        self._seams: list[tuple[int, Series]] = []  # places, and points around them
        self._seam_points = 0  # to be kept at the start of an attempt
        self._last: Series | None = None  # point of the attempt
        self._previous: Series | None = None  # the last point of the attempt before

    def begin_attempt(self) -> None:
        """Keep the last point and the first that follow, if these go back: a resume shows there."""
        if self._last is not None:
            self._previous, self._last = self._last, None

    def add(self, series: Series) -> None:
        """Add points in the order of logging."""
        if not len(series):
            return
        steps = series.steps
        goes_back = self._last is not None and steps[0] < self._last.steps[0]
        self.is_ascending &= not goes_back and bool((steps[1:] >= steps[:-1]).all())
        if self._previous is not None and steps[0] < self._previous.steps[0]:
            self._seams.append((self.count - 1, self._previous))
            self._seam_points = 2  # by which a resume is known
        self._previous = None
        if self._seam_points:
            seam = series.where(slice(self._seam_points))
            self._seams.append((self.count, seam))
            self._seam_points -= len(seam)
        self._last = series.where(np.array([-1]))
        self.count += len(series)
        if self.count - self._settled >= self._waiting_points:
            self._waiting.append(series)
            self.settle()
            return
        # A copy: no view holds the block that it was read from.
        self._waiting.append(series.where(np.arange(len(series))))
        if len(self._waiting) >= 64:
            self._waiting = [concatenate_series(self._waiting)]

    @property
    def last_step(self) -> int | None:
        """The last step of the attempt; None before its first point."""
        return None if self._last is None else int(self._last.steps[0])

    def settle(self) -> None:
        """Put the points that wait into buckets."""
        if not self._waiting:
            return
        waiting, self._waiting = concatenate_series(self._waiting), []
        for begin in range(0, len(waiting), self._batch_points):
            self._add_batch(waiting.where(slice(begin, begin + self._batch_points)))

    def _add_batch(self, series: Series) -> None:
        while self._settled + len(series) > MAX_THIN_POINTS * self._width:
            # Join adjacent buckets.
            self._width *= 2
            current = self._buckets
            if current is not None:
                even = len(current) - len(current) % 2
                joined = current.select(slice(0, even, 2)).join(current.select(slice(1, even, 2)))
                self._buckets = joined.append(current.select(slice(even, None)))
        width = self._width
        head = min(-self._settled % width, len(series))  # points that fill the last bucket
        split = len(series) - (len(series) - head) % width
        for begin, end, size in ((0, head, head), (head, split, width), (split, len(series), 0)):
            if begin < end:
                buckets = self._reduce(series.where(slice(begin, end)), size or end - begin)
                self._append(buckets, is_head=end == head)
                self._settled += end - begin

    def _append(self, buckets: _Buckets, *, is_head: bool) -> None:
        current = self._buckets
        if current is not None and is_head:
            current, open_bucket = current.select(slice(-1)), current.select(slice(-1, None))
            buckets = open_bucket.join(buckets)
        self._buckets = buckets if current is None else current.append(buckets)

    def _reduce(self, series: Series, width: int) -> _Buckets:
        """Return the buckets of whole multiples of `width` points."""
        values = series.values.reshape(-1, width)
        is_finite = np.isfinite(values)
        columns = np.zeros((len(Slot), len(values)), np.int64)
        columns[Slot.LAST] = width - 1
        low = high = numbers = values
        counts = np.full(len(values), width, np.int64)
        if not is_finite.all():
            low, high = np.where(is_finite, values, np.inf), np.where(is_finite, values, -np.inf)
            numbers, counts = np.where(is_finite, values, 0.0), is_finite.sum(axis=1)
            masks = (np.isnan(values), values == np.inf, values == -np.inf)
            for row, (slot, mask) in enumerate(
                zip((Slot.NAN, Slot.ABOVE, Slot.BELOW), masks, strict=True)
            ):
                columns[slot] = mask.argmax(axis=1)
                self._bad[row] += mask.sum()
        columns[Slot.LOW], columns[Slot.HIGH] = low.argmin(axis=1), high.argmax(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = numbers.sum(axis=1)
        rows = columns + width * np.arange(len(values))
        points = series.where(rows)
        return _Buckets(
            self._settled + rows, points.steps, points.times, points.values, sums, counts
        )

    def series(self) -> Series:
        """Return the points so far: all, without an outline, or those that rules judge."""
        if self.count <= MAX_THIN_POINTS:
            empty = Series(np.empty(0, np.int64), np.empty(0), np.empty(0))
            return concatenate_series(self._waiting or [empty])
        if self._buckets is not None:
            self.settle()
            return self._thin(self._buckets)
        settled = copy.deepcopy(self)  # the points wait on: they take less memory than buckets
        settled.settle()
        return settled.series()

    def _thin(self, buckets: _Buckets) -> Series:
        order = buckets.places.argsort(axis=0, kind="stable")
        places = _ravel(buckets.places, order)
        values = _ravel(buckets.values, order)
        points = Series(_ravel(buckets.steps, order), _ravel(buckets.times, order), values)
        # The points that rules judge among the kept ones [7 b].
        window = POINTS_PER_EXTREME * len(Slot)
        split = len(values) - len(values) % window
        indices = [np.arange(0, len(values), len(Slot)), np.array([len(values) - 1])]
        indices.append(find_rare(values[:split].reshape(-1, window), len(Slot)))
        if split < len(values):
            remainder = values[split:].reshape(1, -1)
            indices.append(split + find_rare(remainder, len(Slot)))
        judged_rows = np.concatenate(indices)
        # Judged points and those around seams in the order of their places, each once.
        judged_points = points.where(judged_rows)
        all_places = [
            places[judged_rows],
            *(first + np.arange(len(seam)) for first, seam in self._seams),
        ]
        pieces = [judged_points, *(seam for _, seam in self._seams)]
        rows = np.unique(np.concatenate(all_places), return_index=True)[1]
        judged = Series(
            np.concatenate([piece.steps for piece in pieces])[rows],
            np.concatenate([piece.times for piece in pieces])[rows],
            np.concatenate([piece.values for piece in pieces])[rows],
        )
        drawn = points.where(np.unique(places, return_index=True)[1])
        bad = (int(self._bad[0]), int(self._bad[1]), int(self._bad[2]))
        has_numbers = buckets.numbers > 0
        means = buckets.sums[has_numbers] / buckets.numbers[has_numbers]
        outline = Outline(
            drawn,
            Series(
                buckets.steps[Slot.LAST, has_numbers], buckets.times[Slot.LAST, has_numbers], means
            ),
            self.count,
            bad,
        )
        return Series(judged.steps, judged.times, judged.values, self._width, outline)


def _ravel(column: NDArray[Kind], order: Whole) -> NDArray[Kind]:
    """Return kept points [7, b] bucket after bucket [7 b], those of each in an order [7, b]."""
    return np.take_along_axis(column, order, axis=0).T.reshape(-1)
