"""Look into a run, finished or growing, without reading all of it.

view = store.open("runs/my_run")
view.last()                     # the newest point of every metric
view.series("train/loss")       # one metric
new, cursor = view.tail(cursor) # what came since
view.m4("train/loss", 800)      # what a plot 800 pixels wide shows
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from rlvitals.storage import blocks, columns, downsample, reader
from rlvitals.storage.blocks import BlockCursor, Scalars
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.downsample import Points
from rlvitals.storage.reader import Place, RunCursor
from rlvitals.storage.run_folder import About, BlockFile, LostRun, RunFolder, block_files
from rlvitals.types import Series


class Point(NamedTuple):
    """One number as it was logged."""

    step: int
    time: float  # seconds since the epoch
    value: float


@dataclass(slots=True)
class _Rank:
    """What is known of one attempt's rank: what is packed stays on the disk."""

    file: BlockFile
    packed: PackedFile | None = None
    packed_as: tuple[int, int] | None = None
    cursor: BlockCursor | None = None
    rows: list[Scalars] = field(default_factory=list)  # behind what is packed

    def refresh(self, file: BlockFile) -> None:
        """Take what came since: whole blocks alone."""
        self.file = file
        if file.packed is not None:
            status = file.packed.stat()
            if self.packed_as != (status.st_ino, status.st_mtime_ns):
                self.close()
                self.packed = PackedFile(file.packed)
                self.packed_as = (status.st_ino, status.st_mtime_ns)
                origin = self.packed.origin
                self.cursor, self.rows = origin.cursor() if origin else None, []
        try:
            found = blocks.scan(file.path, self.cursor)
        except FileNotFoundError:  # packed
            return
        if found.replaced or (self.packed is not None and self.packed.origin is None):
            self.close()
            self.rows = []
        self.rows += found.scalars
        self.cursor = found.cursor

    def close(self) -> None:
        if self.packed is not None:
            self.packed.close()
        self.packed = None

    def names(self) -> Iterator[str]:
        for block in self.packed.blocks if self.packed else ():
            yield from block.keys
        for part in self.rows:
            yield from part.keys

    def last(self) -> dict[str, tuple[int, Point]]:
        """The newest point of each key, with its row's place."""
        found: dict[str, tuple[int, Point]] = {}
        for one in self.packed.blocks if self.packed else ():
            step, time = one.last_step, one.last_time
            for key, value in zip(one.keys, one.lasts.tolist(), strict=True):
                if key not in found or found[key][0] < one.last_row:
                    found[key] = one.last_row, Point(step, time, value)
        for part in self.rows:
            if len(part.steps):
                row, step, time = part.first, int(part.steps[-1]), float(part.times[-1])
                values = part.values[:, -1].tolist()
                found.update(
                    (key, (row, Point(step, time, value)))
                    for key, value in zip(part.keys, values, strict=True)
                )
        return found

    def series(self, key: str) -> Series | None:
        packed = self.packed.series(key) if self.packed else None
        rows = columns.one_series(self.rows, key)
        found = [one for one in (packed, rows) if one is not None]
        return columns.chained(found) if found else None


class View:
    """A run folder, opened for looking. One thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open a run folder, be its `run.json` lost. Raises UnreadableLog for none, a newer one."""
        self.folder = _opened(path)
        self._ranks: dict[Place, _Rank] = {}
        self._main = 0
        self.refresh()

    def __enter__(self) -> Self:
        """Return the view."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the run's files."""
        self.close()

    def close(self) -> None:
        """Close the run's files."""
        for rank in self._ranks.values():
            rank.close()

    def refresh(self) -> None:
        """Take what was flushed since. Raises OSError, UnreadableLog."""
        for file in block_files(self.folder.path):
            place = file.attempt, file.rank
            self._ranks.setdefault(place, _Rank(file)).refresh(file)
        wrote = (rank for (_, rank), one in self._ranks.items() if next(one.names(), None))
        self._main = min(wrote, default=0)

    def keys(self) -> tuple[str, ...]:
        """Name the metrics, in the order they were first logged."""
        found: dict[str, None] = {}
        for (_, rank), one in self._ranks.items():
            found.update((reader.key_of(key, rank, self._main), None) for key in one.names())
        return tuple(found)

    def last(self) -> dict[str, Point]:
        """Return the newest point of every metric."""
        found: dict[str, Point] = {}
        for (_, rank), one in sorted(self._ranks.items()):
            for key, (_, point) in one.last().items():
                found[reader.key_of(key, rank, self._main)] = point
        return found

    def series(self, key: str) -> Series:
        """Return one metric, attempt after attempt; KeyError where it is not logged."""
        found = []
        for (_, rank), one in sorted(self._ranks.items()):
            prefix = reader.key_of("", rank, self._main)
            if key.startswith(prefix):
                part = one.series(key.removeprefix(prefix))
                found += [part] if part is not None else []
        if not found:
            raise KeyError(key)
        return columns.chained(found)

    def range(self, key: str, first: int, last: int) -> Series:
        """Return a metric's points at steps from `first` to `last`, both in; KeyError."""
        series = self.series(key)
        return series.where((series.steps >= first) & (series.steps <= last))

    def tail(self, since: RunCursor | None = None) -> tuple[Mapping[str, Series], RunCursor]:
        """Return what every metric got since a cursor, and the cursor to go on from.

        None: all there is. Raises UnreadableLog.
        """
        found = reader.read(self.folder.path, since)
        return reader.series(found.parts, reader.main_rank(found.parts)), found.cursor

    def m4(self, key: str, width: int, first: int | None = None, last: int | None = None) -> Points:
        """Return what `width` columns of pixels show of a metric; KeyError."""
        return downsample.points(self.series(key), width, first, last)


def _opened(path: Path) -> RunFolder:
    try:
        return RunFolder.open(path)
    except LostRun:
        if not block_files(path):
            raise
        return RunFolder(path, About())
