"""Read and write compacted files, whose few large blocks replace the beginning of a block file.

Its last frame but one says how far it reaches. A block of it begins with an index: each column's
own checksum and last value, so that one metric, or all last values, are read without the rest.

    payload: index | steps | times | places of the rows, where they are not in one piece | values
    index:   first row i8, last row i8, last step i8, last time f8, flags u8, last values f8 [k],
             checksums u4 [3 + k], filled up to 8 bytes | checksum of the index u4, 0 u4
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import IO, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import columns, frames, payloads
from rlvitals.storage.blocks import Scalars
from rlvitals.storage.frames import FRAME_HEADER_BYTES, Damage, Frame, Header, Kind, Tail
from rlvitals.storage.origin import Origin
from rlvitals.storage.tiers import Tier
from rlvitals.types import Series

INDEX_START = Struct("<qqqdQ")
INDEX_CHECKSUM = Struct("<II")
ORDERED_FLAG = 1  # flag: the rows' places are stored
STEP_STREAM, TIMES, PLACES, VALUE_STREAM = range(4)  # of the checksums


class Damaged(Exception):  # noqa: N818 - says what the file is
    """A part of the file does not match its checksum."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The index of a block."""

    keys: tuple[str, ...]
    rows: int
    first: int  # its first row's place in the attempt's file
    last_row: int
    last_step: int
    last_time: float
    ordered: bool
    lasts: NDArray[np.float64]  # [k]
    checks: NDArray[np.uint32]  # [3 + k]
    columns: int  # offset in the file


def index_size(count: int) -> int:
    """Count the bytes of the index of a block of `count` keys."""
    streams = 4 * (VALUE_STREAM + count)
    padding = -streams % frames.ALIGN_BYTES
    return INDEX_START.size + 8 * count + streams + padding + INDEX_CHECKSUM.size


def block(chunk: Scalars, table: int) -> list[bytes]:
    """Encode rows as a frame, in parts."""
    rows, count = len(chunk.steps), len(chunk.keys)
    order = columns.places(chunk)
    is_contiguous = bool(np.all(order[1:] == order[:-1] + 1))
    data = [chunk.steps.astype("<i8").tobytes(), chunk.times.astype("<f8").tobytes()]
    data.append(b"" if is_contiguous else order.astype("<i8").tobytes())
    data += [column.astype("<f8").tobytes() for column in chunk.values]
    checks = np.array([crc32(piece) for piece in data], "<u4").tobytes()
    start = INDEX_START.pack(
        order[0], order[-1], chunk.steps[-1], chunk.times[-1], 0 if is_contiguous else ORDERED_FLAG
    )
    index = start + chunk.values[:, -1].astype("<f8").tobytes() + checks
    index += bytes(-len(index) % frames.ALIGN_BYTES)
    data.insert(0, index + INDEX_CHECKSUM.pack(crc32(index), 0))
    check = 0
    for piece in data:
        check = crc32(piece, check)
    size = sum(map(len, data))
    return [frames.to_bytes(Header(Kind.PACKED, size, check, rows, count, table)), *data]


def parse(index: bytes | memoryview, header: Header, keys: tuple[str, ...], offset: int) -> Block:
    """Read a block's index; `at`: where its payload begins. Raises Damaged."""
    size, count = index_size(header.columns), header.columns
    if len(index) != size or len(keys) != count:
        raise Damaged
    if INDEX_CHECKSUM.unpack_from(index, size - INDEX_CHECKSUM.size)[0] != crc32(
        index[: size - INDEX_CHECKSUM.size]
    ):
        raise Damaged
    first, last, step, time, flags = INDEX_START.unpack_from(index)
    lasts = np.frombuffer(index, "<f8", count, INDEX_START.size)
    checks = np.frombuffer(index, "<u4", VALUE_STREAM + count, INDEX_START.size + 8 * count)
    ordered = bool(flags & ORDERED_FLAG)
    word_count = header.rows * (2 + ordered + count)
    if not header.rows or header.size != size + 8 * word_count:
        raise Damaged
    return Block(keys, header.rows, first, last, step, time, ordered, lasts, checks, offset + size)


def check(frame: Frame, keys: tuple[str, ...]) -> Block:
    """Read the index of a block and compare it with each of its columns. Raises Damaged."""
    payload, rows = frame.payload, frame.header.rows
    index = payload[: index_size(len(keys))]
    result = parse(index, frame.header, keys, frame.offset + FRAME_HEADER_BYTES)
    matrix = np.frombuffer(payload[len(index) :], "<i8").reshape(-1, rows or 1)
    present = [
        STEP_STREAM,
        TIMES,
        *([PLACES] if result.ordered else []),
        *range(VALUE_STREAM, len(result.checks)),
    ]
    if any(crc32(matrix[row].data) != result.checks[column] for row, column in enumerate(present)):
        raise Damaged
    places = matrix[PLACES] if result.ordered else (result.first, result.first + rows - 1)
    lasts = matrix[-len(keys) :, -1] if keys else matrix[:0, -1]
    ends = (matrix[STEP_STREAM][-1], matrix[TIMES].view("<f8")[-1].tobytes(), places[0], places[-1])
    claim = (
        result.last_step,
        np.float64(result.last_time).tobytes(),
        result.first,
        result.last_row,
    )
    if ends != claim or lasts.tobytes() != result.lasts.tobytes():
        raise Damaged
    return result


class PackedFile:
    """An open compacted file: indices are read at once, columns on demand.

    Raises OSError, and UnreadableLog for a newer format. What does not match its checksum is
    left out and named in `damage`.
    """

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        """Open the file, or take the open one, and read its indices."""
        self.path = path
        self.origin: Origin | None = None  # None where the frame that says so is damaged
        self.blocks: list[Block] = []
        self.others: list[Frame] = []  # histograms, texts, tables, settings
        self.tiers: dict[str, Tier] = {}  # by metric: what was thinned
        self.damage: list[Damage] = []
        self._tables: dict[int, tuple[str, ...]] = {}
        self._file: IO[bytes] = file or path.open("rb", buffering=0)
        try:
            self._walk()
        except Damaged:
            self._repair()
        except UnreadableLog as error:
            raise UnreadableLog(error.problem, where=str(path), hint=error.hint) from None

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _walk(self) -> None:
        """Go from header to header. Raises Damaged."""
        offset, end = 0, self._file.seek(0, os.SEEK_END)
        kind = 0
        while offset < end:
            header = frames.parse(self._read(offset, FRAME_HEADER_BYTES))
            if header is None or offset + FRAME_HEADER_BYTES + header.size > end:
                raise Damaged
            kind = header.kind
            if kind == Kind.PACKED:
                index = self._read(offset + FRAME_HEADER_BYTES, index_size(header.columns))
                keys = self._tables.get(header.table, ())
                self.blocks.append(parse(index, header, keys, offset + FRAME_HEADER_BYTES))
            else:
                payload = self._read(offset + FRAME_HEADER_BYTES, header.size)
                if crc32(payload) != header.crc:
                    raise Damaged
                try:
                    self._small(Frame(offset, header, memoryview(payload)))
                except ValueError:
                    raise Damaged from None
            offset += FRAME_HEADER_BYTES + header.size
        if kind != Kind.END or self.origin is None:
            raise Damaged

    def _repair(self) -> None:
        """Read the complete file and keep the frames with valid checksums."""
        self.blocks, self.others, self.damage = [], [], []
        self.origin, self.tiers = None, {}
        self._file.seek(0)
        data = self._file.read()
        for item in frames.walk(data):
            if isinstance(item, Damage):
                self.damage.append(item)
            elif isinstance(item, Tail):
                self.damage.append(Damage(item.offset, item.size, "the end of the file is torn"))
            else:
                self._take(item)

    def _take(self, frame: Frame) -> None:
        """Keep a frame whose content parses."""
        problem = f"{quantity(frame.header.rows, 'row')} whose key table is lost"
        try:
            if frame.header.kind != Kind.PACKED:
                self._small(frame)
                return
            keys = self._tables.get(frame.header.table, ())
            if len(keys) == frame.header.columns:
                self.blocks.append(check(frame, keys))
                return
        except ValueError as error:
            problem = f"a block that makes no sense: {error}"
        except Damaged:
            problem = "its index does not match its columns"
        self.damage.append(Damage(frame.offset, frame.end - frame.offset, problem))

    def _small(self, frame: Frame) -> None:
        kind = frame.header.kind
        if kind == Kind.KEYS:
            self._tables[frame.header.table] = payloads.decode_keys(frame.payload)
        elif kind == Kind.ORIGIN:
            self.origin = Origin.parse(frame)
        elif kind == Kind.TIER:
            tier = Tier.parse(frame)
            self.tiers[tier.key] = tier
        elif kind != Kind.END:
            self.others.append(frame)

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def series(self, key: str) -> Series | None:
        """Read one metric; None where it is not in the file."""
        column = self.placed_series(key)
        return None if column is None else column[0]

    def placed_series(self, key: str) -> tuple[Series, NDArray[np.int64]] | None:
        """Read one metric [n] and the places of its rows [n]; None where it is not in the file."""
        try:
            return self._placed_series(key)
        except Damaged:
            self._repair()
            return self._placed_series(key)

    def _placed_series(self, key: str) -> tuple[Series, NDArray[np.int64]] | None:
        blocks = sorted((b for b in self.blocks if key in b.keys), key=lambda block: block.first)
        if not blocks:
            return None
        count = sum(block.rows for block in blocks)
        steps, order = np.empty(count, "<i8"), np.empty(count, "<i8")
        times, values = np.empty(count, "<f8"), np.empty(count, "<f8")
        begin = 0
        for block in blocks:
            rows = slice(begin, begin + block.rows)
            begin += block.rows
            self._column(block, STEP_STREAM, steps[rows])
            self._column(block, TIMES, times[rows])
            self._column(block, VALUE_STREAM + block.keys.index(key), values[rows])
            if block.ordered:
                self._column(block, PLACES, order[rows])
            else:
                order[rows] = np.arange(block.first, block.first + block.rows)
        series = Series(steps, times, values)
        if not any(block.ordered for block in blocks):  # pieces in one piece each: order the pieces
            return series, order
        by_place = np.argsort(order, kind="stable")
        return series.where(by_place), order[by_place]

    def _column(self, block: Block, column: int, into: columns.Words) -> None:
        """Read a column into an array. Raises Damaged."""
        row = column if block.ordered or column < PLACES else column - 1
        self._file.seek(block.columns + 8 * block.rows * row)
        view = memoryview(into.view(np.uint8))  # type: ignore[arg-type]
        size = 0
        while size < len(view):
            count = self._file.readinto(view[size:])  # type: ignore[attr-defined]
            if not count:
                raise Damaged
            size += count
        if crc32(view) != block.checks[column]:
            raise Damaged

    def scalars(self, block: Block) -> Scalars:
        """Read a block's rows. Raises Damaged."""
        return self._read_rows([block], columns.allocate(block.keys, block.rows))

    def first_step(self, block: Block) -> int:
        """Read the step of a block's first row; no checksum is compared."""
        return int.from_bytes(self._read(block.columns, 8), "little", signed=True)

    def metrics(self, block: Block, keys: Sequence[str]) -> Iterator[Scalars]:
        """Read the rows of a block, one metric after another. Raises Damaged."""
        steps, times = np.empty(block.rows, "<i8"), np.empty(block.rows, "<f8")
        self._column(block, STEP_STREAM, steps)
        self._column(block, TIMES, times)
        order = None
        if block.ordered:
            order = np.empty(block.rows, "<i8")
            self._column(block, PLACES, order)
        for key in keys:
            values = np.empty((1, block.rows), "<f8")
            self._column(block, VALUE_STREAM + block.keys.index(key), values[0])
            yield Scalars((key,), steps, times, values, block.first, order)

    def all_scalars(self) -> list[Scalars]:
        """Read all rows that match their checksums; rows without a gap between them as one."""
        try:
            return self._read_groups()
        except Damaged:
            self._repair()
            return self._read_groups()

    def _read_groups(self) -> list[Scalars]:
        """Read the rows of each key table into one set of arrays. Raises Damaged.

        The rows of a group are a part of them, so that groups are joined without a copy.
        """
        counts: Counter[tuple[str, ...]] = Counter()
        for block in self.blocks:
            counts[block.keys] += block.rows
        arrays = {keys: columns.allocate(keys, count) for keys, count in counts.items()}
        begins: Counter[tuple[str, ...]] = Counter()
        chunks = []
        groups: list[list[Block]] = []
        open_groups: dict[tuple[str, ...], list[Block]] = {}
        for block in self.blocks:
            group = open_groups.get(block.keys)
            is_next = group is not None and group[-1].first + group[-1].rows == block.first
            if group is not None and is_next and not (group[-1].ordered or block.ordered):
                group.append(block)
            else:
                open_groups[block.keys] = [block]
                groups.append(open_groups[block.keys])
        for group in groups:
            keys, count = group[0].keys, sum(block.rows for block in group)
            rows = slice(begins[keys], begins[keys] + count)
            begins[keys] += count
            steps, times, values = arrays[keys]
            chunks.append(self._read_rows(group, (steps[rows], times[rows], values[:, rows])))
        return chunks

    def _read_rows(self, blocks: Sequence[Block], arrays: columns.Arrays) -> Scalars:
        """Read the rows of adjacent blocks, each column into its place. Raises Damaged."""
        keys = blocks[0].keys
        steps, times, values = arrays
        begin = 0
        for block in blocks:
            rows = slice(begin, begin + block.rows)
            begin += block.rows
            self._column(block, STEP_STREAM, steps[rows])
            self._column(block, TIMES, times[rows])
            for index in range(len(keys)):
                self._column(block, VALUE_STREAM + index, values[index, rows])
        order = None
        if blocks[0].ordered:
            order = np.empty(len(steps), "<i8")
            self._column(blocks[0], PLACES, order)
        return Scalars(keys, steps, times, values, blocks[0].first, order)
