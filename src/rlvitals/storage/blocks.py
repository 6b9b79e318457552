"""Read and write column blocks: an append-only file for each attempt and rank.

`Writer` buffers blocks and writes them with one call of the system at each flush. `scan` reads
the complete blocks since a cursor, reports damage by offset, and leaves a torn tail for the
next call.
"""

import os
import time as clock
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import frames, payloads
from rlvitals.storage.frames import Damage, Frame, Header, Kind, Tail
from rlvitals.storage.payloads import Changed
from rlvitals.storage.safe_files import open_append
from rlvitals.storage.sync_row_file import RowFile
from rlvitals.storage.tiers import Tier
from rlvitals.storage.write_buffer import Budget, WriteBuffer
from rlvitals.types import Histogram, Table, Text

MAX_KEY_TABLES = 10_000  # key tables that a writer remembers: a script may make new names for ever
KEY_TABLE_INTERVAL = 64  # blocks after which a key table is repeated: one lost is not all lost


Columns = Sequence[NDArray[np.float64]] | NDArray[np.float64]  # [k, n]


@dataclass(frozen=True, slots=True, eq=False)
class Scalars:
    """Rows with the same keys: `steps` int64 [n], `times` and each of k `values` float64 [n]."""

    keys: tuple[str, ...]
    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]  # [k, n]
    first: int = 0  # rows of the file before these, where they were written one after another
    order: NDArray[np.int64] | None = None  # [n], each row's place in the file, where they were not


@dataclass(frozen=True, slots=True)
class BlockCursor:
    """The position in a block file."""

    offset: int = 0
    rows: int = 0  # of scalars before the offset
    others: int = 0  # histograms, texts, tables and settings before it
    tables: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    head: bytes = b""  # the file's first header: a file that begins otherwise is another one
    ended: bool = False  # the writer closed the file


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The new content of a block file since a cursor, in the order it was written."""

    scalars: tuple[Scalars, ...]
    histograms: tuple[tuple[str, Histogram], ...]
    texts: tuple[tuple[str, Text], ...]
    tables: tuple[tuple[str, Table], ...]
    settings: tuple[Changed, ...]
    damage: tuple[Damage, ...]
    torn: int  # bytes of an incomplete block at the end
    replaced: bool  # the cursor was of another file: this is read from its beginning
    cursor: BlockCursor
    tiers: tuple[Tier, ...] = ()  # of metrics that were thinned


class Writer:
    """Appends blocks to one file. One thread at a time; a forked child's copy writes nothing.

    Where the disk takes no more, `flush` raises OSError, what is pending stays, and the next
    flush continues at the byte where this one stopped.
    """

    def __init__(self, path: Path, *, durable: bool = False, budget: Budget | None = None) -> None:
        """Open a file to append to. `durable` hands each block to the system at once. OSError."""
        self.path = path
        self.durable = durable
        self._pid = os.getpid()
        # Read as well: what was written can be copied after the file's name is removed.
        self._fd = open_append(path, os.O_RDWR)
        self._tables: dict[tuple[str, ...], tuple[int, int]] = {}  # number, blocks so far
        self._out = WriteBuffer(self._fd, budget)
        self._is_locked = try_lock(self._fd)
        # Numbers that another writer of this file has used must not be used again.
        size = os.fstat(self._fd).st_size
        tables = scan(path).cursor.tables if size else {}
        self._numbers = count(max(tables, default=-1) + 1)
        start = {"format": frames.BLOCK_FORMAT, "id": os.urandom(16).hex(), "created": clock.time()}
        self._add(Kind.START, payloads.encode_json(start))

    def scalars(
        self,
        keys: tuple[str, ...],
        steps: NDArray[np.int64],
        times: NDArray[np.float64],
        values: Columns,
    ) -> None:
        """Append n rows: `steps` int64 [n], `times` float64 [n], `values` float64 [k, n]."""
        if keys not in self._tables and len(self._tables) >= MAX_KEY_TABLES:
            self._tables.clear()  # those that come again get another number
        number, blocks = self._tables.get(keys) or (next(self._numbers), 0)
        if blocks % KEY_TABLE_INTERVAL == 0 or number in self._out.lost_tables:
            self._out.lost_tables.discard(number)
            frame = frames.pack(Kind.KEYS, payloads.encode_json(keys), len(keys), number)
            self._out.add(Kind.KEYS, frame, table=number)
        self._tables[keys] = (number, blocks + 1)
        array = payloads.encode_columns(steps, times, values)
        data, rows = memoryview(array.reshape(-1).view(np.uint8)), len(steps)  # type: ignore[arg-type]
        header = Header(Kind.SCALARS, len(data), crc32(data), rows, len(keys), number)
        self._out.add(Kind.SCALARS, frames.to_bytes(header), data, rows=rows, table=number)
        self._flush_if_durable()

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Append a histogram."""
        self._add(Kind.HISTOGRAM, payloads.encode_histogram(key, histogram))
        self._flush_if_durable()

    def text(self, key: str, text: Text) -> None:
        """Append a text."""
        self._add(Kind.TEXT, payloads.encode_text(key, text))
        self._flush_if_durable()

    def table(self, key: str, table: Table) -> None:
        """Append a table's rows."""
        self._add(Kind.TABLE, payloads.encode_table(key, table))
        self._flush_if_durable()

    def settings(self, step: int, time: float, mapping: Mapping[str, object]) -> None:
        """Append settings that hold from a step on."""
        record = {"step": step, "time": time, "settings": dict(mapping)}
        self._add(Kind.SETTINGS, payloads.encode_json(record))
        self._flush_if_durable()

    def rows(self) -> RowFile:
        """Open this file for rows that any thread writes when it logs them. Raises OSError."""
        return RowFile(self.path, self._numbers, KEY_TABLE_INTERVAL, MAX_KEY_TABLES)

    @property
    def pending(self) -> int:
        """Bytes that the system has not taken yet."""
        return len(self._out)

    @property
    def fd(self) -> int:
        """The file's descriptor, open for reading too; -1 once it is closed."""
        return self._fd

    @property
    def dropped(self) -> Counter[Kind]:
        """Rows and other blocks that were given up because too many waited."""
        return self._out.dropped

    @property
    def waiting(self) -> Counter[Kind]:
        """Rows and other blocks that the system has not taken yet."""
        return self._out.waiting

    def replace(self, path: Path, fd: int) -> None:
        """Continue in another file with the same content, open to append. Raises OSError."""
        os.close(self._fd)
        self.path, self._fd, self._out.fd = path, fd, fd
        self._is_locked = try_lock(fd)

    def flush(self) -> None:
        """Write what is pending in one call of the system. Raises OSError."""
        if os.getpid() == self._pid:
            self._is_locked = self._is_locked or try_lock(
                self._fd
            )  # someone was just asking who writes it
            self._out.write()

    def close(self) -> None:
        """Flush, mark the file as complete and close it; a second call does nothing. OSError."""
        if self._fd < 0:
            return
        try:
            if os.getpid() == self._pid:
                self._add(Kind.END, b"")
                self.flush()
                os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1

    def abandon(self) -> None:
        """Close the file without writing what is pending."""
        os.close(self._fd)
        self._fd = -1

    def _flush_if_durable(self) -> None:
        if self.durable:
            self.flush()

    def _add(self, kind: Kind, payload: bytes) -> None:
        self._out.add(kind, frames.pack(kind, payload))


def try_lock(fd: int, *, exclusive: bool = False) -> bool:
    """Mark a file as being written, or test that nobody does (`exclusive`); True without locks."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def scan(path: Path, cursor: BlockCursor | None = None) -> Scan:
    """Read the complete blocks since a cursor.

    Raises OSError, and UnreadableLog for a file of a newer format.
    """
    with path.open("rb", buffering=0) as file:
        return scan_file(file, path, cursor)


def scan_file(file: IO[bytes], path: Path, cursor: BlockCursor | None = None) -> Scan:
    """Read an open file as `scan` does; `path` is what errors call it."""
    start = cursor or BlockCursor()
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(frames.FRAME_HEADER_BYTES)
    replaced = bool(start.head) and (size < start.offset or head != start.head)
    if replaced:
        start = BlockCursor()
    file.seek(start.offset)
    data = frames.read(file, size - start.offset)
    if len(head) == frames.FRAME_HEADER_BYTES and not start.head:
        start = replace(start, head=head)
    builder = ScanBuilder(start)
    try:
        for item in frames.walk(data, start.offset):
            builder.take(item)
    except UnreadableLog as error:
        raise UnreadableLog(error.problem, where=str(path), hint=error.hint) from None
    return builder.scan(replaced=replaced)


class ScanBuilder:
    """Collects the content of the frames of one scan."""

    def __init__(self, start: BlockCursor) -> None:
        self.start = start
        self.key_tables = dict(start.tables)
        self.frames: list[tuple[Frame, int]] = []  # of scalars, with the rows before them
        self.histograms: list[tuple[str, Histogram]] = []
        self.texts: list[tuple[str, Text]] = []
        self.tables: list[tuple[str, Table]] = []
        self.settings: list[Changed] = []
        self.damage: list[Damage] = []
        self.offset, self.rows, self.torn = start.offset, start.rows, 0
        self.others = start.others
        self.ended = start.ended

    def take(self, item: Frame | Damage | Tail) -> None:
        """Add the next item of the file."""
        if isinstance(item, Tail):
            self.torn = item.size
        elif isinstance(item, Damage):
            self.damage.append(item)
            self.offset = item.offset + item.size
        else:
            self.offset = item.end
            try:
                self._frame(item)
            except ValueError as error:
                self.add_damage(item, f"a block that makes no sense: {error}")

    def _frame(self, frame: Frame) -> None:
        header, payload = frame.header, frame.payload
        self.ended = header.kind == Kind.END
        if header.kind == Kind.SCALARS:
            if header.size != 8 * header.rows * (header.columns + 2):
                raise ValueError("its length is not that of its rows")
            self.frames.append((frame, self.rows))
            self.rows += header.rows
        elif header.kind == Kind.KEYS:
            self.key_tables[header.table] = payloads.decode_keys(payload)
        else:
            self.add_content(frame)

    def add_content(self, frame: Frame) -> None:
        """Add a frame other than rows; what does not parse is damage."""
        lists: dict[int, list[Any]] = {
            Kind.HISTOGRAM: self.histograms,
            Kind.TEXT: self.texts,
            Kind.TABLE: self.tables,
            Kind.SETTINGS: self.settings,
        }
        kind = frame.header.kind
        if kind not in lists:
            return
        self.others += 1
        try:
            content = payloads.PARSERS[kind](frame.payload)
        except ValueError as error:
            self.add_damage(frame, f"a block that makes no sense: {error}")
            return
        lists[kind].append(content)
        for wrong in content.wrong if isinstance(content, Changed) else ():
            self.add_damage(frame, wrong)

    def add_damage(self, frame: Frame, problem: str) -> None:
        """Name a frame that is not read, or not wholly."""
        self.damage.append(Damage(frame.offset, frame.end - frame.offset, problem))

    def _scalars(self, frame: Frame, first: int) -> Scalars | None:
        keys = self.key_tables.get(frame.header.table)
        if keys is None or len(keys) != frame.header.columns:
            self.add_damage(frame, f"{quantity(frame.header.rows, 'row')} whose key table is lost")
            return None
        return to_scalars(frame, keys, first)

    def take_scalars(self) -> tuple[Scalars, ...]:
        """Return the rows since the last call: a later key table names the rows before it too."""
        pairs, self.frames = self.frames, []
        return tuple(filter(None, (self._scalars(*pair) for pair in pairs)))

    def scan(self, *, replaced: bool) -> Scan:
        """Return the content of the frames, less the rows that were taken before."""
        scalars = self.take_scalars()
        self.damage.sort(key=lambda damage: damage.offset)
        return Scan(
            scalars,
            tuple(self.histograms),
            tuple(self.texts),
            tuple(self.tables),
            tuple(self.settings),
            tuple(self.damage),
            self.torn,
            replaced,
            self.cursor(),
        )

    def cursor(self) -> BlockCursor:
        """Return the position after the last frame."""
        tables = MappingProxyType(self.key_tables)
        return BlockCursor(self.offset, self.rows, self.others, tables, self.start.head, self.ended)


def to_scalars(frame: Frame, keys: tuple[str, ...], first: int) -> Scalars:
    """Return a frame's rows as views of its payload; `first` counts the rows before them."""
    header = frame.header
    columns = np.frombuffer(frame.payload, "<f8").reshape(header.columns + 2, header.rows)
    return Scalars(keys, columns[0].view("<i8"), columns[1], columns[2:], first)
