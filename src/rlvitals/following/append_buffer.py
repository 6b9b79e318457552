"""Columns of a growing log: the cost of a point does not depend on their number."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

Kind = TypeVar("Kind", np.int64, np.float64)


class AppendBuffer:
    """Columns by key: `add` new points, and read all of them at any time.

    Each column has spare capacity, so that it is copied log(n) times over its life: at most half as
    much memory again as the points take.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.points = 0
        self.last: int | None = None  # the highest step that a reading ended with
        self._columns: dict[str, _Column] = {}
        self._batch: list[Mapping[str, Series]] = []

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._columns.keys() | {key for series in self._batch for key in series})

    def add(self, series: Mapping[str, Series]) -> None:
        """Append points to their keys."""
        sizes = [column.steps.size for column in series.values()]
        if not any(sizes):
            return
        self.points += sum(sizes)
        newest = max([column.steps[-1] for column in series.values() if column.steps.size])
        self.last = int(newest) if self.last is None else max(self.last, int(newest))
        self._batch.append(series)
        if len(self._batch) >= 32:  # appended with one copy
            self._settle()

    def series(self) -> dict[str, Series]:
        """Return every column: views that later points do not change."""
        self._settle()
        return {key: column.series() for key, column in self._columns.items()}

    def _settle(self) -> None:
        pieces: dict[str, list[Series]] = {}
        for batch in self._batch:
            for key, series in batch.items():
                pieces.setdefault(key, []).append(series)
        self._batch = []
        for key, segments in pieces.items():
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = _Column()
            column.add(segments)


class _Column:
    """Steps, times and values of one key, with spare capacity."""

    __slots__ = ("_count", "_steps", "_times", "_values")

    def __init__(self) -> None:
        self._count = 0
        self._steps: NDArray[np.int64] = np.empty(0, np.int64)
        self._times: NDArray[np.float64] = np.empty(0)
        self._values: NDArray[np.float64] = np.empty(0)

    def add(self, segments: list[Series]) -> None:
        first, count = self._count, self._count + sum(map(len, segments))
        if not first and len(segments) == 1:  # the reader's own columns, copied when they grow
            self._steps, self._times, self._values = (
                segments[0].steps, segments[0].times, segments[0].values,
            )  # fmt: skip
            self._count = count
            return
        if count > len(self._steps):
            room = count if not first else max(64, count, int(1.5 * first))
            self._steps = _grow(self._steps, first, room)
            self._times = _grow(self._times, first, room)
            self._values = _grow(self._values, first, room)
        np.concatenate([segment.steps for segment in segments], out=self._steps[first:count])
        np.concatenate([segment.times for segment in segments], out=self._times[first:count])
        np.concatenate([segment.values for segment in segments], out=self._values[first:count])
        self._count = count

    def series(self) -> Series:
        n = self._count
        return Series(self._steps[:n], self._times[:n], self._values[:n])


def _grow(column: NDArray[Kind], count: int, room: int) -> NDArray[Kind]:
    wide = np.empty(room, column.dtype)
    wide[:count] = column[:count]
    return wide


def find_new_points(
    old: Mapping[str, Series], new: Mapping[str, Series]
) -> dict[str, Series] | None:
    """Return the points of `new` after `old`, by key; None if `new` does not begin with `old`."""
    if not all(key in new and _starts_with(new[key], series) for key, series in old.items()):
        return None
    tails = {
        key: series.where(slice(len(old[key]) if key in old else 0, None))
        for key, series in new.items()
    }
    return {key: tail for key, tail in tails.items() if len(tail)}


def _starts_with(series: Series, prefix: Series) -> bool:
    n = len(prefix)
    return (
        len(series) >= n
        and np.array_equal(series.steps[:n], prefix.steps)
        and np.array_equal(series.values[:n], prefix.values, equal_nan=True)
    )


def is_continuation(old: Mapping[str, Series], new: Mapping[str, Series]) -> bool:
    """Return whether every common key continues in `new` at later steps."""
    shared = [key for key in old.keys() & new.keys() if len(old[key]) and len(new[key])]
    return bool(shared) and all(new[k].steps.min() > old[k].steps.max() for k in shared)
