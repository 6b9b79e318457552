"""A packed file: few big blocks that stand for the beginning of an attempt's file, or all of it.

Its last frame but one says how far it reaches. A block of it begins with an index: each column's
own checksum and last value, so that one metric, or all last values, are read without the rest.

    payload: index | steps | times | places of the rows, where they are not in one piece | values
    index:   first row i8, last row i8, last step i8, last time f8, flags u8, last values f8 [k],
             checksums u4 [3 + k], filled up to 8 bytes | checksum of the index u4, 0 u4
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from types import MappingProxyType, TracebackType
from typing import IO, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.storage import columns, frames, payloads, typed
from rlvitals.storage.blocks import BlockCursor, Scalars
from rlvitals.storage.frames import SIZE, Damage, Frame, Header, Kind, Tail
from rlvitals.storage.typed import Fields, WrongTypeError
from rlvitals.types import Series

START = Struct("<qqqdQ")
CHECK = Struct("<II")
ORDERED = 1  # flag: the rows' places are stored
STEPS, TIMES, PLACES, VALUES = range(4)  # of the checksums


Words = NDArray[np.int64] | NDArray[np.float64]


class Damaged(Exception):  # noqa: N818 - says what the file is
    """A part of the file does not match its checksum."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Which part of which file a packed file stands for."""

    covers: int  # bytes of the attempt's file from its beginning
    rows: int
    others: int
    tables: Mapping[int, tuple[str, ...]]
    head: bytes  # the first header of that file
    ended: bool  # whether its writer closed it

    def cursor(self) -> BlockCursor:
        """Where to go on in the file that this one stands for."""
        tables = MappingProxyType(dict(self.tables))
        return BlockCursor(self.covers, self.rows, self.others, tables, self.head, self.ended)

    @classmethod
    def parse(cls, frame: Frame) -> Self:
        """Read it from its frame. Raises ValueError."""
        record = Fields(payloads.from_json(frame.payload), "origin")
        tables = record.values.get("tables")
        if not isinstance(tables, dict):
            raise WrongTypeError("it has no key tables")
        return cls(
            covers=typed.count(record.values.get("covers")),
            rows=typed.count(record.values.get("rows")),
            others=typed.count(record.values.get("others")),
            tables={int(number): typed.texts(keys) for number, keys in tables.items()},
            head=bytes.fromhex(typed.text(record.values.get("head"))),
            ended=record.values.get("ended") is True,
        )

    def frame(self) -> bytes:
        """Lay it out as a frame."""
        said = {
            "covers": self.covers,
            "rows": self.rows,
            "others": self.others,
            "tables": {str(number): keys for number, keys in self.tables.items()},
            "head": self.head.hex(),
            "ended": self.ended,
        }
        return frames.pack(Kind.ORIGIN, payloads.to_json(said))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One block's index."""

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
    return START.size + 8 * count + _up(4 * (VALUES + count)) + CHECK.size


def _up(size: int) -> int:
    return size + -size % frames.ALIGN


def block(part: Scalars, table: int) -> list[bytes]:
    """Lay out rows as a frame, in parts."""
    rows, count = len(part.steps), len(part.keys)
    order = columns.places(part)
    whole = bool(np.all(order[1:] == order[:-1] + 1))
    data = [part.steps.astype("<i8").tobytes(), part.times.astype("<f8").tobytes()]
    data.append(b"" if whole else order.astype("<i8").tobytes())
    data += [column.astype("<f8").tobytes() for column in part.values]
    checks = np.array([crc32(one) for one in data], "<u4").tobytes()
    start = START.pack(order[0], order[-1], part.steps[-1], part.times[-1], 0 if whole else ORDERED)
    index = start + part.values[:, -1].astype("<f8").tobytes() + checks
    index += bytes(-len(index) % frames.ALIGN)
    data.insert(0, index + CHECK.pack(crc32(index), 0))
    check = 0
    for one in data:
        check = crc32(one, check)
    size = sum(map(len, data))
    return [frames.to_bytes(Header(Kind.PACKED, size, check, rows, count, table)), *data]


def parse(index: bytes | memoryview, header: Header, keys: tuple[str, ...], at: int) -> Block:
    """Read a block's index; `at`: where its payload begins. Raises Damaged."""
    size, count = index_size(header.columns), header.columns
    if len(index) != size or len(keys) != count:
        raise Damaged
    if CHECK.unpack_from(index, size - CHECK.size)[0] != crc32(index[: size - CHECK.size]):
        raise Damaged
    first, last, step, time, flags = START.unpack_from(index)
    lasts = np.frombuffer(index, "<f8", count, START.size)
    checks = np.frombuffer(index, "<u4", VALUES + count, START.size + 8 * count)
    ordered = bool(flags & ORDERED)
    words = header.rows * (2 + ordered + count)
    if not header.rows or header.size != size + 8 * words:
        raise Damaged
    return Block(keys, header.rows, first, last, step, time, ordered, lasts, checks, at + size)


def check(frame: Frame, keys: tuple[str, ...]) -> Block:
    """Read a whole block's index and compare it with each of the columns. Raises Damaged."""
    payload, rows = frame.payload, frame.header.rows
    index = payload[: index_size(len(keys))]
    result = parse(index, frame.header, keys, frame.offset + SIZE)
    words = np.frombuffer(payload[len(index) :], "<i8").reshape(-1, rows or 1)
    present = [
        STEPS,
        TIMES,
        *([PLACES] if result.ordered else []),
        *range(VALUES, len(result.checks)),
    ]
    if any(crc32(words[at].data) != result.checks[which] for at, which in enumerate(present)):
        raise Damaged
    places = words[PLACES] if result.ordered else (result.first, result.first + rows - 1)
    lasts = words[-len(keys) :, -1] if keys else words[:0, -1]
    ends = (words[STEPS][-1], words[TIMES].view("<f8")[-1].tobytes(), places[0], places[-1])
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
    """A packed file, opened: its indices are read, its columns when they are asked for.

    Raises OSError, and UnreadableLog for a newer format. What does not match its checksum is
    left out and named in `damage`.
    """

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        """Open the file, or take the open one, and read its indices."""
        self.path = path
        self.origin: Origin | None = None  # None where the frame that says so is damaged
        self.blocks: list[Block] = []
        self.others: list[Frame] = []  # histograms, texts, tables, settings
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _walk(self) -> None:
        """Go from header to header. Raises Damaged."""
        at, end = 0, self._file.seek(0, os.SEEK_END)
        kind = 0
        while at < end:
            header = frames.parse(self._read(at, SIZE))
            if header is None or at + SIZE + header.size > end:
                raise Damaged
            kind = header.kind
            if kind == Kind.PACKED:
                index = self._read(at + SIZE, index_size(header.columns))
                keys = self._tables.get(header.table, ())
                self.blocks.append(parse(index, header, keys, at + SIZE))
            else:
                payload = self._read(at + SIZE, header.size)
                if crc32(payload) != header.crc:
                    raise Damaged
                try:
                    self._small(Frame(at, header, memoryview(payload)))
                except ValueError:
                    raise Damaged from None
            at += SIZE + header.size
        if kind != Kind.END or self.origin is None:
            raise Damaged

    def _repair(self) -> None:
        """Read the whole file, and keep the frames that match their checksums."""
        self.blocks, self.others, self.damage = [], [], []
        self.origin = None
        self._file.seek(0)
        data = self._file.read()
        for part in frames.walk(data):
            if isinstance(part, Damage):
                self.damage.append(part)
            elif isinstance(part, Tail):
                self.damage.append(Damage(part.offset, part.size, "the end of the file is torn"))
            else:
                self._take(part)

    def _take(self, frame: Frame) -> None:
        """Keep a frame whose content parses."""
        why = f"{frame.header.rows:,} rows whose key table is lost"
        try:
            if frame.header.kind != Kind.PACKED:
                self._small(frame)
                return
            keys = self._tables.get(frame.header.table, ())
            if len(keys) == frame.header.columns:
                self.blocks.append(check(frame, keys))
                return
        except ValueError as error:
            why = f"a block that makes no sense: {error}"
        except Damaged:
            why = "its index does not match its columns"
        self.damage.append(Damage(frame.offset, frame.end - frame.offset, why))

    def _small(self, frame: Frame) -> None:
        kind = frame.header.kind
        if kind == Kind.KEYS:
            self._tables[frame.header.table] = payloads.to_keys(frame.payload)
        elif kind == Kind.ORIGIN:
            self.origin = Origin.parse(frame)
        elif kind != Kind.END:
            self.others.append(frame)

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def series(self, key: str) -> Series | None:
        """Read one metric; None where it is not in the file."""
        try:
            return self._series(key)
        except Damaged:
            self._repair()
            return self._series(key)

    def _series(self, key: str) -> Series | None:
        found = sorted((b for b in self.blocks if key in b.keys), key=lambda one: one.first)
        if not found:
            return None
        count = sum(one.rows for one in found)
        steps, order = np.empty(count, "<i8"), np.empty(count, "<i8")
        times, values = np.empty(count, "<f8"), np.empty(count, "<f8")
        begin = 0
        for one in found:
            part = slice(begin, begin + one.rows)
            begin += one.rows
            self._column(one, STEPS, steps[part])
            self._column(one, TIMES, times[part])
            self._column(one, VALUES + one.keys.index(key), values[part])
            if one.ordered:
                self._column(one, PLACES, order[part])
        if not any(one.ordered for one in found):  # pieces in one piece each: order the pieces
            return Series(steps, times, values)
        begin = 0
        for one in found:
            if not one.ordered:
                order[begin : begin + one.rows] = np.arange(one.first, one.first + one.rows)
            begin += one.rows
        by = np.argsort(order, kind="stable")
        return Series(steps[by], times[by], values[by])

    def _column(self, one: Block, which: int, into: Words) -> None:
        """Read one column into its place. Raises Damaged."""
        place = which if one.ordered or which < PLACES else which - 1
        self._file.seek(one.columns + 8 * one.rows * place)
        room = memoryview(into.view(np.uint8))  # type: ignore[arg-type]
        done = 0
        while done < len(room):
            got = self._file.readinto(room[done:])  # type: ignore[attr-defined]
            if not got:
                raise Damaged
            done += got
        if crc32(room) != one.checks[which]:
            raise Damaged

    def scalars(self, one: Block) -> Scalars:
        """Read a block's rows. Raises Damaged."""
        steps, times = np.empty(one.rows, "<i8"), np.empty(one.rows, "<f8")
        values = np.empty((len(one.keys), one.rows), "<f8")
        self._column(one, STEPS, steps)
        self._column(one, TIMES, times)
        for at in range(len(one.keys)):
            self._column(one, VALUES + at, values[at])
        order = None
        if one.ordered:
            order = np.empty(one.rows, "<i8")
            self._column(one, PLACES, order)
        return Scalars(one.keys, steps, times, values, one.first, order)

    def all_scalars(self) -> list[Scalars]:
        """Read all rows that match their checksums."""
        try:
            return [self.scalars(one) for one in self.blocks]
        except Damaged:
            self._repair()
            return [self.scalars(one) for one in self.blocks]
