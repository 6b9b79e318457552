"""Read a large run block by block with its metrics thinned: no column is ever in memory.

The rows of a key lie under several tables of keys where other metrics are logged less often; they
are put in the order of their places before they are counted.
"""

import sys
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.storage import columns, downsample, frames, reader
from rlvitals.storage.blocks import BlockCursor, Scalars, Scan, ScanBuilder
from rlvitals.storage.compacted import Damaged, PackedFile
from rlvitals.storage.downsample import Points
from rlvitals.storage.frames import FRAME_HEADER_BYTES
from rlvitals.storage.reader import RankScan, RunCursor, RunScan
from rlvitals.storage.run_folder import BlockFile, block_files
from rlvitals.storage.thinner import Thinner
from rlvitals.types import Series

LARGE_RUN_BYTES = 16 << 20  # of block files: two million numbers
MAX_WHOLE_POINTS = 1 << 20  # of a range of steps: more are thinned

AddRows = Callable[[tuple[Scalars, ...]], None]
AtWindow = Callable[[BlockCursor], bool]  # after each window; whether the next one is read


class _ReadWholeError(Exception):
    """The run has to be read whole: it is damaged, or steps go back within an attempt."""


def read(folder: Path) -> tuple[RunScan, dict[str, Thinner]] | None:
    """Read a run's events and content, and its thinned metrics; None for one to be read whole.

    That is a run of less than LARGE_RUN_BYTES, a damaged one, or one whose steps go back within an
    attempt. Raises OSError, and UnreadableLog for a newer format.
    """
    if not is_large(folder):
        return None
    thinners = _RunThinner()
    try:
        contents = reader.read_files(folder, RunCursor(), thinners.read_part)
    except (_ReadWholeError, Damaged):
        return None
    return contents, thinners.by_key(reader.main_rank(contents.parts))


def is_large(folder: Path) -> bool:
    """Return whether a run's block files are too large to be held in memory. Raises OSError."""
    paths = (path for file in block_files(folder) for path in file.paths)
    return sum(path.stat().st_size for path in paths) >= LARGE_RUN_BYTES


class Places:
    """Places in growing files, and the last step of a metric before each.

    A range of steps is read from the last place before it on, and not from the file's start.
    """

    def __init__(self, window_bytes: int = 1 << 20) -> None:
        """Start without places; one is noted after each `window_bytes` of a growing file."""
        self.window_bytes = window_bytes
        self._places: dict[tuple[Path, str], list[tuple[int, BlockCursor]]] = {}
        self._lock = threading.Lock()

    def find(self, path: Path, key: str, step: int) -> tuple[int, BlockCursor]:
        """Return the last place before which all steps of a metric are lower, and their last."""
        with self._lock:
            places = self._places.get((path, key), [])
            index = bisect_left(places, step, key=lambda entry: entry[0])
            return places[index - 1] if index else (-sys.maxsize, BlockCursor())

    def add(self, path: Path, key: str, last_step: int, cursor: BlockCursor) -> None:
        """Note a place that lies behind the known ones."""
        with self._lock:
            places = self._places.setdefault((path, key), [])
            if not places or places[-1][1].offset < cursor.offset:
                places.append((last_step, cursor))

    def clear(self) -> None:
        """Forget the places: a file is another one."""
        with self._lock:
            self._places.clear()


def read_range(
    folder: Path, key: str, steps: tuple[int, int], places: Places | None = None
) -> Series:
    """Read a metric of the lowest rank at `steps`, both included, attempt after attempt.

    Only blocks with such steps are read of compacted files, and of growing ones only what lies
    between the nearest of `places`, which earlier calls have noted. More than MAX_WHOLE_POINTS
    points are thinned. The steps of the run do not go back within an attempt: `read` has read it.
    Raises OSError, and UnreadableLog for what cannot be read any more.
    """
    points = _RangePoints(steps)
    places = places or Places()
    files = block_files(folder)
    main = min((file.rank for file in files), default=0)
    try:
        for file in files:
            if file.rank == main:
                points.begin_attempt()
                start = _walk_blocks(file, key, steps, points.add)
                _walk_rows(file.path, key, points, start, places)
    except (_ReadWholeError, Damaged):
        places.clear()
        raise UnreadableLog("a block of it is damaged", where=str(folder)) from None
    return points.series()


def read_pixels(
    folder: Path, key: str, width: int, first: int | None = None, last: int | None = None
) -> Points | None:
    """Return what `width` columns of pixels show of a metric; None where `View` has to look.

    It has to for a damaged run, and for a metric that is not found. Raises OSError, UnreadableLog.
    """
    files = block_files(folder)
    main = min((file.rank for file in files), default=0)
    rank, _, rank_key = key.removeprefix("rank/").partition("/")
    if not (key.startswith("rank/") and rank.isdecimal() and int(rank) != main):
        rank, rank_key = str(main), key

    def walk(add: Callable[[Series], None]) -> None:
        def add_rows(chunks: tuple[Scalars, ...]) -> None:
            series = columns.one_series(chunks, rank_key)
            if series is not None:
                add(series)

        for file in files:
            if file.rank == int(rank):
                start = _walk_blocks(file, rank_key, None, add)
                if file.path.exists():
                    with file.path.open("rb", buffering=0) as source:
                        _read_growing(source, start, add_rows)

    try:
        return downsample.points_of_pieces(walk, width, first, last)
    except (_ReadWholeError, Damaged):
        return None


def _walk_blocks(
    file: BlockFile, key: str, steps: tuple[int, int] | None, add: Callable[[Series], None]
) -> BlockCursor:
    """Add the rows of a compacted file; return where the growing one continues."""
    if file.packed is None:
        return BlockCursor()
    with PackedFile(file.packed) as packed:
        for _, series in walk_blocks(packed, key, steps):
            add(series)
        return packed.origin.cursor() if packed.origin else BlockCursor()


def _walk_rows(
    path: Path, key: str, points: "_RangePoints", start: BlockCursor, places: Places
) -> None:
    """Add the rows of a growing file that lie within a range, and note places in it."""
    if not path.exists():
        return
    first_step, end_step = points.steps
    last_step, nearest = places.find(path, key, first_step)
    if nearest.offset > start.offset:
        start = nearest

    def add_rows(chunks: tuple[Scalars, ...]) -> None:
        nonlocal last_step
        series = columns.one_series(chunks, key)
        if series is not None and len(series):
            last_step = max(last_step, int(series.steps[-1]))
            points.add(series)

    def at_window(cursor: BlockCursor) -> bool:
        places.add(path, key, last_step, cursor)
        return last_step <= end_step

    with path.open("rb", buffering=0) as source:
        _read_growing(source, start, add_rows, places.window_bytes, at_window)


class _RangePoints:
    """The points of a metric within a range of steps."""

    def __init__(self, steps: tuple[int, int]) -> None:
        self.steps = steps
        self._attempts: list[list[Series]] = []
        self._count = 0
        self._thinner: Thinner | None = None

    def begin_attempt(self) -> None:
        self._attempts.append([])
        if self._thinner is not None:
            self._thinner.begin_attempt()

    def add(self, series: Series) -> None:
        """Add rows in ascending order of their steps; those outside of the range are left out."""
        first, last = self.steps
        begin, end = series.steps.searchsorted(first), series.steps.searchsorted(last, side="right")
        inside = series.where(np.arange(begin, end))  # a copy: no view holds the block
        if self._thinner is not None:
            self._thinner.add(inside)
            return
        self._attempts[-1].append(inside)
        self._count += len(inside)
        if self._count > MAX_WHOLE_POINTS:
            self._thinner = Thinner()
            for pieces in self._attempts:
                self._thinner.begin_attempt()
                for piece in pieces:
                    self._thinner.add(piece)
            self._attempts = []

    def series(self) -> Series:
        if self._thinner is not None:
            return self._thinner.series()
        empty = Series(np.empty(0, np.int64), np.empty(0), np.empty(0))
        return columns.concatenate_series(
            [empty, *(piece for pieces in self._attempts for piece in pieces)]
        )


class _RunThinner:
    """The thinned metrics of all ranks."""

    def __init__(self) -> None:
        self._thinners: dict[tuple[int, str], Thinner] = {}

    def by_key(self, main: int) -> dict[str, Thinner]:
        """Return the thinned metrics of all attempts and ranks."""
        return {
            reader.key_of(key, rank, main): thinner
            for (rank, key), thinner in self._thinners.items()
        }

    def read_part(self, file: BlockFile, _: BlockCursor | None) -> RankScan:
        """Read a rank of an attempt. Raises _ReadWholeError, Damaged, OSError, UnreadableLog."""
        file_thinner = _PartThinner(self._thinners, file.rank)
        scan: Scan | None = None
        if file.packed is not None:
            with PackedFile(file.packed) as packed:
                if packed.damage or packed.origin is None:
                    raise _ReadWholeError
                end = packed.origin.cursor()
                for key, series in walk_blocks(packed):
                    file_thinner.add(key, series)
                scan = reader.build_scan(packed, (), 0, end, replaced=False)
        if file.path.exists():
            with file.path.open("rb", buffering=0) as source:
                start = scan.cursor if scan else BlockCursor()
                remainder = _read_growing(source, start, file_thinner.add_rows)
            scan = remainder if scan is None else reader.concatenate_scans(scan, remainder)
        if scan is None or scan.damage:
            raise _ReadWholeError
        return RankScan(file, scan, file_thinner.span)


class _PartThinner:
    """Hands the rows of one file to the thinners of its rank."""

    def __init__(self, thinners: dict[tuple[int, str], Thinner], rank: int) -> None:
        self._thinners, self._rank = thinners, rank
        self._seen: set[str] = set()
        self.span: tuple[int, int] | None = None

    def add_rows(self, chunks: tuple[Scalars, ...]) -> None:
        """Add the rows that follow in the file. Raises _ReadWholeError."""
        for key, series in columns.series(chunks).items():
            self.add(key, series)

    def add(self, key: str, series: Series) -> None:
        """Add the rows of a key that follow in the file. Raises _ReadWholeError."""
        thinner = self._thinners.setdefault((self._rank, key), Thinner())
        if key not in self._seen:
            self._seen.add(key)
            thinner.begin_attempt()
        thinner.add(series)
        if not thinner.is_ascending:
            raise _ReadWholeError
        if len(series):
            first, last = int(series.steps[0]), int(series.steps[-1])
            self.span = (first, last) if self.span is None else (
                min(self.span[0], first), max(self.span[1], last)
            )  # fmt: skip


def _read_growing(
    source: IO[bytes],
    start: BlockCursor,
    add_rows: AddRows,
    window_bytes: int = 8 << 20,
    at_window: AtWindow = lambda _: True,
) -> Scan:
    """Read the file that an attempt is written to, `window_bytes` at once.

    Raises _ReadWholeError, UnreadableLog.
    """
    head = source.read(FRAME_HEADER_BYTES)
    if start.head and head != start.head:  # another file than the compacted one stands for
        raise _ReadWholeError
    if not start.head and len(head) == FRAME_HEADER_BYTES:
        start = replace(start, head=head)
    builder = ScanBuilder(start)
    size = 0
    for item in frames.stream(source, start.offset, window_bytes):
        builder.take(item)
        size += item.header.size if isinstance(item, frames.Frame) else 0
        if size >= window_bytes:
            add_rows(builder.take_scalars())
            size = 0
            if not at_window(builder.cursor()):
                break
    add_rows(builder.take_scalars())
    return builder.scan(replaced=False)


def walk_blocks(
    packed: PackedFile, only: str | None = None, steps: tuple[int, int] | None = None
) -> Iterator[tuple[str, Series]]:
    """Yield the rows of each key in the order of their places. Raises Damaged.

    `only`: the key that is read, `steps`: of the blocks that are read; None: all.
    """
    blocks = sorted(packed.blocks, key=lambda block: block.first)
    if only is not None:
        blocks = [block for block in blocks if only in block.keys]
    if steps is not None:
        first, last = steps
        blocks = [b for b in blocks if b.last_step >= first and packed.first_step(b) <= last]
    waiting: dict[str, list[Scalars]] = defaultdict(list)
    firsts: dict[str, int] = {}
    bounds: list[Mapping[str, int]] = []
    for block in reversed(blocks):
        bounds.append({key: firsts.get(key, sys.maxsize) for key in block.keys})
        firsts.update(dict.fromkeys(block.keys, block.first))
    for block, following in zip(blocks, bounds[::-1], strict=True):
        for piece in packed.metrics(block, block.keys if only is None else (only,)):
            (key,) = piece.keys
            complete, remainder = _split([*waiting.pop(key, ()), piece], following[key])
            if len(remainder.steps):
                waiting[key] = [remainder]
            yield key, Series(complete.steps, complete.times, complete.values[0])


def _split(pieces: list[Scalars], end: int) -> tuple[Scalars, Scalars]:
    """Return the rows before a place, in the order of their places, and the rows from it on."""
    rows = columns.concatenate(pieces)
    if rows.order is None and rows.first + len(rows.steps) <= end:
        return rows, columns.select_rows(rows, slice(0))
    order = columns.places(rows)
    if not (order[1:] > order[:-1]).all():
        by_place = np.argsort(order, kind="stable")
        rows = Scalars(
            rows.keys, rows.steps[by_place], rows.times[by_place], rows.values[:, by_place],
            0, order[by_place],
        )  # fmt: skip
        order = order[by_place]
    split = int(order.searchsorted(end))
    return columns.select_rows(rows, slice(split)), columns.select_rows(rows, slice(split, None))
