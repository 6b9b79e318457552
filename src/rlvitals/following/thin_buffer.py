"""Columns of a growing log of which only thinned points are kept."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from rlvitals.storage.thinner import Thinner
from rlvitals.types import Series


class ThinBuffer:
    """Thinned columns by key: `add` new points, and read the columns at any time.

    Points whose steps go back begin another attempt, as in a run that was resumed.
    """

    def __init__(self, thinners: Mapping[str, Thinner]) -> None:
        """Continue with thinned metrics."""
        self._thinners = dict(thinners)
        self._cache: dict[str, tuple[int, Series]] = {}  # points, and the columns that they came to
        self._seams: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._thinners)

    @property
    def points(self) -> int:
        """Number of points that were added."""
        return sum(thinner.count for thinner in self._thinners.values())

    @property
    def last(self) -> int | None:
        """The highest step that a key ends with."""
        steps = (thinner.last_step for thinner in self._thinners.values())
        return max((step for step in steps if step is not None), default=None)

    @property
    def has_too_many_seams(self) -> bool:
        """Whether the steps of a key went back more often than those of a run that was resumed."""
        return max(self._seams.values(), default=0) > 64

    def add(self, series: Mapping[str, Series]) -> None:
        """Append points to their keys; nothing where `has_too_many_seams` has become true."""
        for key, column in series.items():
            thinner = self._thinners.setdefault(key, Thinner())
            starts = np.flatnonzero(column.steps[1:] < column.steps[:-1]) + 1
            self._seams[key] += starts.size
            if self.has_too_many_seams:
                return
            for begin, end in zip((0, *starts), (*starts, len(column)), strict=True):
                piece = column.where(slice(begin, end))
                last = thinner.last_step
                if len(piece) and last is not None and piece.steps[0] < last:
                    thinner.begin_attempt()
                    self._seams[key] += not begin
                thinner.add(piece)

    def series(self) -> dict[str, Series]:
        """Return every column: all of its points, or those that rules judge with an outline."""
        for key, thinner in self._thinners.items():
            if key not in self._cache or self._cache[key][0] != thinner.count:
                self._cache[key] = thinner.count, thinner.series()
        return {key: self._cache[key][1] for key in self._thinners}
