"""Reduce a series to the points that a plot of a given width shows (M4).

Uwe Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014: the first,
last, lowest and highest point of each column draw the same line as all points do.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]

MIN_LOOP_POINTS = 100  # points of a column, from which on it is looked at by itself


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points to draw, by step, and where the values are no numbers."""

    steps: Whole  # [m], m <= 4 * width, never going back
    times: Numbers  # [m]
    values: Numbers  # [m], finite
    nan: Whole  # the first step with NaN in each column of pixels that has one
    above: Whole  # the same for +inf
    below: Whole  # the same for -inf
    count: int  # points of the series in the range


def points(series: Series, width: int, first: int | None = None, last: int | None = None) -> Points:
    """Return the points that `width` columns of pixels show of the steps `first` to `last`."""
    if width < 1:
        raise ValueError("a plot has at least one column")
    visible = _sort_by_step(series)
    if first is not None or last is not None:
        begin = 0 if first is None else int(visible.steps.searchsorted(first))
        end = len(visible) if last is None else int(visible.steps.searchsorted(last, side="right"))
        visible = visible.where(slice(begin, end))
    count = len(visible)
    if not count:
        empty = np.empty(0, np.int64)
        return Points(empty, np.empty(0), np.empty(0), empty, empty, empty, 0)
    low = int(visible.steps[0]) if first is None else first
    high = int(visible.steps[-1]) if last is None else last
    edges = _edges(low, high, width)
    numbers = visible.finite()
    extremes = numbers.where(_extremes(numbers, edges))
    value, steps = visible.values, visible.steps
    if len(numbers) == count:
        nan = above = below = np.empty(0, np.int64)
    else:
        nan = _first_bad_steps(steps, np.isnan(value), edges)
        above, below = (_first_bad_steps(steps, value == side * np.inf, edges) for side in (1, -1))
    return Points(extremes.steps, extremes.times, extremes.values, nan, above, below, count)


Walk = Callable[[Callable[[Series], None]], None]  # calls a function with each piece


def points_of_pieces(
    walk: Walk,
    width: int,
    first: int | None = None,
    last: int | None = None,
    batch_points: int = 1 << 18,
) -> Points | None:
    """Return `points` of a series whose pieces `walk` goes through; None for a series without any.

    So many `batch_points` of the pieces are kept until they are reduced together.

    Where an end of the range is not given, the pieces are gone through twice: the columns of pixels
    are placed by the steps.
    """
    ends: list[int] = []

    def add_ends(piece: Series) -> None:
        if len(piece):
            ends.extend((int(piece.steps.min()), int(piece.steps.max())))

    if first is None or last is None:
        walk(add_ends)
    low = min(ends, default=0) if first is None else first
    high = max(ends, default=low) if last is None else last
    pixels = _Pixels(width, low, high, batch_points)
    walk(pixels.add)
    return pixels.points() if pixels.is_logged else None


class _Pixels:
    """What a plot shows of a series that is added in pieces, in the order it was logged.

    Of the pieces only what their columns of pixels show is kept: `points` of that is the same.
    """

    def __init__(self, width: int, low: int, high: int, batch_points: int) -> None:
        """Show the steps `low` to `high`, both included."""
        if width < 1:
            raise ValueError("a plot has at least one column")
        self.is_logged = False  # whether a piece was added
        self._width, self._low, self._high = width, low, high
        self._batch_points = batch_points
        self._kept: list[Series] = []
        self._kept_points = self._count = 0

    def add(self, series: Series) -> None:
        """Add the points that follow."""
        self.is_logged = True
        visible = series.where((series.steps >= self._low) & (series.steps <= self._high))
        if not len(visible):
            return
        self._count += len(visible)
        shown = self._select(visible)
        self._kept.append(shown)
        self._kept_points += len(shown)
        if self._kept_points > self._batch_points:
            self._kept, self._kept_points = [self._select(_concatenate(self._kept))], 0

    def points(self) -> Points:
        """Return the points to draw."""
        shown = points(_concatenate(self._kept), self._width, self._low, self._high)
        return replace(shown, count=self._count)

    def _select(self, series: Series) -> Series:
        ordered = _sort_by_step(series)
        edges, values = _edges(self._low, self._high, self._width), ordered.values
        numbers = np.flatnonzero(np.isfinite(values))
        rows = [numbers[_extremes(ordered.where(numbers), edges)]]
        if len(numbers) < len(ordered):
            for bad in (np.isnan(values), values == np.inf, values == -np.inf):
                places = np.flatnonzero(bad)
                columns = edges.searchsorted(ordered.steps[places], side="right")
                rows.append(places[np.unique(columns, return_index=True)[1]])
        return ordered.where(np.unique(np.concatenate(rows)))


def _concatenate(pieces: list[Series]) -> Series:
    empty = Series(np.empty(0, np.int64), np.empty(0), np.empty(0))
    return Series(
        np.concatenate([piece.steps for piece in (empty, *pieces)]),
        np.concatenate([piece.times for piece in (empty, *pieces)]),
        np.concatenate([piece.values for piece in (empty, *pieces)]),
    )


def _sort_by_step(series: Series) -> Series:
    """Order by step; of equal steps, as logged. A run that was resumed goes back."""
    if np.all(series.steps[1:] >= series.steps[:-1]):
        return series
    return series.where(np.argsort(series.steps, kind="stable"))


def _edges(low: int, high: int, width: int) -> Whole:
    """Return the first step of each column of pixels: int64 [w], ascending."""
    span = high - low + 1  # Python's own integers: no overflow
    return np.unique(np.array([low + column * span // width for column in range(width)], np.int64))


def _extremes(series: Series, edges: Whole) -> Whole:
    """Return the places of the first, last, lowest and highest point of each column."""
    if not len(series):
        return np.empty(0, np.int64)
    starts = np.unique(series.steps.searchsorted(edges))
    starts = starts[starts < len(series)]
    ends = np.append(starts[1:], len(series))
    if len(series) > MIN_LOOP_POINTS * len(starts):
        # The place of the first lowest and of the first highest value of each column.
        places = np.empty((2, len(starts)), np.int64)
        for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            column = series.values[start:end]
            places[:, index] = start + column.argmin(), start + column.argmax()
        lows, highs = places[0], places[1]
    else:
        low = np.minimum.reduceat(series.values, starts)
        high = np.maximum.reduceat(series.values, starts)
        counts = ends - starts
        lows = _first_where(series.values == np.repeat(low, counts), starts)
        highs = _first_where(series.values == np.repeat(high, counts), starts)
    return np.unique(np.concatenate([starts, ends - 1, lows, highs]))


def _first_where(hit: NDArray[np.bool_], starts: Whole) -> Whole:
    """Return the first place of each column that is hit; every column has one."""
    places = np.flatnonzero(hit)
    return places[places.searchsorted(starts)]


def _first_bad_steps(steps: Whole, bad: NDArray[np.bool_], edges: Whole) -> Whole:
    """Return the first step in each column of pixels that is bad."""
    bad_steps = steps[bad]
    column = edges.searchsorted(bad_steps, side="right")
    return bad_steps[np.unique(column, return_index=True)[1]]
