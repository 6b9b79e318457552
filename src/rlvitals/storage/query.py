"""Look into a run, finished or growing, without reading all of it.

view = store.open("runs/my_run")
view.last()                     # the newest point of every metric
view.series("train/loss")       # one metric
new, cursor = view.tail(cursor) # what came since
view.m4("train/loss", 800)      # what a plot 800 pixels wide shows
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Self

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import blocks, columns, downsample, reader, thin_read
from rlvitals.storage.blocks import BlockCursor, Scalars
from rlvitals.storage.compacted import Damaged, PackedFile
from rlvitals.storage.downsample import Points
from rlvitals.storage.reader import Place, RunCursor
from rlvitals.storage.run_folder import About, BlockFile, LostRun, RunFolder, block_files
from rlvitals.storage.run_query import Point
from rlvitals.types import Series


@dataclass(slots=True)
class _Rank:
    """The files of one rank of an attempt. Compacted blocks stay on the disk."""

    file: BlockFile
    packed: PackedFile | None = None
    packed_as: tuple[int, int] | None = None
    cursor: BlockCursor | None = None
    rows: list[Scalars] = field(default_factory=list)  # behind what is packed

    def refresh(self, file: BlockFile) -> None:
        """Read the complete blocks that were appended since the last call."""
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
            scan = blocks.scan(file.path, self.cursor)
        except FileNotFoundError:  # packed
            return
        if scan.replaced or (self.packed is not None and self.packed.origin is None):
            self.close()
            self.rows = []
        self.rows += scan.scalars
        self.cursor = scan.cursor

    def close(self) -> None:
        if self.packed is not None:
            self.packed.close()
        self.packed = None

    def names(self) -> Iterator[str]:
        for block in self.packed.blocks if self.packed else ():
            yield from block.keys
        for chunk in self.rows:
            yield from chunk.keys

    def last(self) -> dict[str, tuple[int, Point]]:
        """Return the newest point of each key, with the position of its row."""
        points: dict[str, tuple[int, Point]] = {}
        for block in self.packed.blocks if self.packed else ():
            step, time = block.last_step, block.last_time
            for key, value in zip(block.keys, block.lasts.tolist(), strict=True):
                if key not in points or points[key][0] < block.last_row:
                    points[key] = block.last_row, Point(step, time, value)
        for chunk in self.rows:
            if len(chunk.steps):
                row, step, time = chunk.first, int(chunk.steps[-1]), float(chunk.times[-1])
                values = chunk.values[:, -1].tolist()
                points.update(
                    (key, (row, Point(step, time, value)))
                    for key, value in zip(chunk.keys, values, strict=True)
                )
        return points

    def series(self, key: str) -> Series | None:
        packed = self.packed.series(key) if self.packed else None
        rows = columns.one_series(self.rows, key)
        pieces = [piece for piece in (packed, rows) if piece is not None]
        return columns.concatenate_series(pieces) if pieces else None

    def pieces(self, key: str) -> Iterator[Series]:
        """Yield the points of a key in the order of their places. Raises Damaged."""
        for _, series in thin_read.walk_blocks(self.packed, key) if self.packed else ():
            yield series
        for chunk in self.rows:
            rows = columns.one_series([chunk], key)
            if rows is not None:
                yield rows


class View:
    """A run folder, opened for reading. One thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open a run folder, be its `run.json` lost. Raises UnreadableLog for none, a newer one."""
        self.folder = open_folder(path)
        self._ranks: dict[Place, _Rank] = {}
        self._main = 0
        self.refresh()

    def __enter__(self) -> Self:
        """Return the view."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the run's files."""
        self.close()

    def close(self) -> None:
        """Close the run's files."""
        for rank in self._ranks.values():
            rank.close()

    def refresh(self) -> None:
        """Read what was flushed since the last call. Raises OSError, UnreadableLog."""
        for file in block_files(self.folder.path):
            key = file.attempt, file.rank
            self._ranks.setdefault(key, _Rank(file)).refresh(file)
        wrote = (rank for (_, rank), state in self._ranks.items() if next(state.names(), None))
        self._main = min(wrote, default=0)

    def keys(self) -> tuple[str, ...]:
        """Name the metrics, in the order they were first logged."""
        names: dict[str, None] = {}
        for (_, rank), state in self._ranks.items():
            names.update((reader.key_of(key, rank, self._main), None) for key in state.names())
        return tuple(names)

    def last(self) -> dict[str, Point]:
        """Return the newest point of every metric."""
        points: dict[str, Point] = {}
        for (_, rank), state in sorted(self._ranks.items()):
            for key, (_, point) in state.last().items():
                points[reader.key_of(key, rank, self._main)] = point
        return points

    def series(self, key: str) -> Series:
        """Return one metric, attempt after attempt; KeyError where it is not logged."""
        series = (state.series(rank_key) for rank_key, state in self._states(key))
        pieces = [piece for piece in series if piece is not None]
        if not pieces:
            raise KeyError(key)
        return columns.concatenate_series(pieces)

    def _states(self, key: str) -> Iterator[tuple[str, _Rank]]:
        """Yield the ranks that may hold a metric, attempt after attempt, with its name there."""
        for (_, rank), state in sorted(self._ranks.items()):
            prefix = reader.key_of("", rank, self._main)
            if key.startswith(prefix):
                yield key.removeprefix(prefix), state

    def range(self, key: str, first: int, last: int) -> Series:
        """Return a metric's points at steps from `first` to `last`, both in; KeyError."""
        series = self.series(key)
        return series.where((series.steps >= first) & (series.steps <= last))

    def tail(self, since: RunCursor | None = None) -> tuple[Mapping[str, Series], RunCursor]:
        """Return the new points of every metric since a cursor, and the next cursor.

        None: all there is. Raises UnreadableLog.
        """
        scan = reader.read(self.folder.path, since)
        return reader.series(scan.parts, reader.main_rank(scan.parts)), scan.cursor

    def m4(self, key: str, width: int, first: int | None = None, last: int | None = None) -> Points:
        """Return what `width` columns of pixels show of a metric; KeyError."""

        def walk(add: Callable[[Series], None]) -> None:
            for rank_key, state in self._states(key):
                for piece in state.pieces(rank_key):
                    add(piece)

        try:
            points = downsample.points_of_pieces(walk, width, first, last)
        except Damaged:
            return downsample.points(self.series(key), width, first, last)
        if points is None:
            raise KeyError(key)
        return points


def open_folder(path: Path) -> RunFolder:
    """Open a run folder, be its `run.json` lost. Raises UnreadableLog for none, a newer one."""
    try:
        return RunFolder.open(path)
    except LostRun:
        if not block_files(path):
            raise
        return RunFolder(path, About())
