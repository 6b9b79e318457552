"""Thin the points of a large text log while it is read, a chunk of its rows in memory at once."""

from collections.abc import Callable, Iterable, KeysView
from pathlib import Path

from rlvitals.readers.formats.columns import NAN, Columns
from rlvitals.readers.reader import Cursor, ThinReading
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import thin_read
from rlvitals.storage.thinner import Thinner
from rlvitals.types import Log, Series


class _ReadWholeError(Exception):
    """The steps of a log repeat or go back."""


class ThinColumns(Columns):
    """Columns that give their points to a thinner each: `drain` returns none.

    Raises an error of `read` where steps repeat or go back.
    """

    __slots__ = ("_points", "thinners")
    chunk_points = 1 << 18  # in memory at once, of 24 bytes each

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.thinners: dict[str, Thinner] = {}
        self._points = 0

    def keys(self) -> KeysView[str]:
        """Return the keys that have a point."""
        return dict.fromkeys([*self.thinners, *super().keys()]).keys()

    def add(self, key: str, step: int, value: float, time: float = NAN) -> None:
        """Add one point."""
        super().add(key, step, value, time)
        self._points += 1
        if self._points >= self.chunk_points:
            self.drain()

    def add_row(
        self, step: int, row: Iterable[tuple[str, float | None]], time: float = NAN
    ) -> None:
        """Add a row's points."""
        points = list(row)
        super().add_row(step, points, time)
        self._points += len(points)
        if self._points >= self.chunk_points:
            self.drain()

    def drain(self) -> dict[str, Series]:
        """Thin the points that wait; return none."""
        self._points = 0
        for key, column in super().drain().items():
            thinner = self.thinners.setdefault(key, Thinner())
            last = thinner.last_step
            steps = column.steps
            if (steps[1:] <= steps[:-1]).any() or (last is not None and steps[0] <= last):
                raise _ReadWholeError
            thinner.add(column)
        return {}


@dataclass(frozen=True, slots=True)
class ThinReader:
    """The thin reading of a reader whose `read` takes the columns to fill."""

    read_into: Callable[[Path, None, Columns], tuple[Log, Cursor]]

    def __call__(self, path: Path) -> ThinReading | None:
        """Read a large log with thinned columns.

        None for a small log, and for one whose steps repeat or go back: its rows are put in order,
        and repeated ones dropped, for which all of them are needed. Raises UnreadableLog.
        """
        try:
            if path.stat().st_size < thin_read.LARGE_RUN_BYTES:
                return None
        except OSError:
            return None  # reading it says so
        columns = ThinColumns()
        try:
            log, cursor = self.read_into(path, None, columns)
        except _ReadWholeError:
            return None
        return ThinReading(log, cursor, columns.thinners)
