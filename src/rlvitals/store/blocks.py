"""Column blocks: one append-only file for each attempt and rank, whole block by whole block.

`Writer` buffers blocks and writes them with one call to the system at each flush. `scan` reads
what is whole since a cursor, names what is damaged by its offset, and leaves a torn tail for the
next call.
"""

import errno
import os
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UnreadableLog
from rlvitals.records import Histogram, Table, Text
from rlvitals.store import frames, payloads
from rlvitals.store.frames import Damage, Frame, Header, Kind, Tail

REPEAT = 64  # a key table is written again after so many blocks of its: one lost is not all lost
MAX_PENDING = 256 << 20  # bytes kept while the disk takes none; the oldest blocks go first


Columns = Sequence[NDArray[np.float64]] | NDArray[np.float64]  # [k, n]


@dataclass(frozen=True, slots=True, eq=False)
class Scalars:
    """Rows under the same keys: `steps` int64 [n], `times` and each of k `values` float64 [n]."""

    keys: tuple[str, ...]
    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]  # [k, n]


@dataclass(frozen=True, slots=True)
class Changed:
    """Settings as they were given at a step."""

    step: int
    time: float  # seconds since the epoch
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class BlockCursor:
    """Where to go on in a file of blocks."""

    offset: int = 0
    rows: int = 0  # of scalars before the offset
    tables: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    head: bytes = b""  # the file's first header: a file that begins otherwise is another one
    ended: bool = False  # the writer closed the file


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What a file of blocks holds since a cursor, in the order it was written."""

    scalars: tuple[Scalars, ...]
    histograms: tuple[tuple[str, Histogram], ...]
    texts: tuple[tuple[str, Text], ...]
    tables: tuple[tuple[str, Table], ...]
    settings: tuple[Changed, ...]
    damage: tuple[Damage, ...]
    torn: int  # bytes at the end that are no whole block, or none yet
    replaced: bool  # the cursor was of another file: this is read from its beginning
    cursor: BlockCursor


class Writer:
    """Appends blocks to one file. One thread at a time; a forked child's copy writes nothing.

    Where the disk takes no more, `flush` raises OSError, what is pending stays, and the next
    flush goes on at the byte where this one stopped.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        """Open a file to append to. `durable` hands each block to the system at once. OSError."""
        self.path = path
        self.durable = durable
        self.dropped = 0  # rows that were given up because the disk took nothing for too long
        self._pid = os.getpid()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, 0o644)
        self._tables: dict[tuple[str, ...], tuple[int, int]] = {}  # number, blocks so far
        self._pending: list[tuple[bytes, int]] = []  # blocks, with their rows
        self._size = 0
        self._begun = False  # whether the first pending block is partly written
        # Numbers that another writer of this file has used must not be used again.
        found = os.fstat(self._fd).st_size
        tables = scan(path).cursor.tables if found else {}
        self._next = max(tables, default=-1) + 1
        start = {"format": frames.FORMAT, "id": uuid4().hex, "created": clock.time()}
        self._add(Kind.START, payloads.to_json(start))

    def scalars(
        self,
        keys: tuple[str, ...],
        steps: NDArray[np.int64],
        times: NDArray[np.float64],
        values: Columns,
    ) -> None:
        """Append n rows: `steps` int64 [n], `times` float64 [n], `values` float64 [k, n]."""
        number, count = self._tables.get(keys, (self._next, 0))
        if count % REPEAT == 0:
            names = payloads.to_json(keys)
            self._append(frames.pack(Kind.KEYS, names, columns=len(keys), table=number), 0)
        if not count:
            self._next += 1
        self._tables[keys] = (number, count + 1)
        data, rows = payloads.columns(steps, times, values).tobytes(), len(steps)
        said = Header(Kind.SCALARS, len(data), crc32(data), rows, len(keys), number)
        self._append(frames.to_bytes(said) + data, rows)
        self._through()

    def histogram(self, key: str, one: Histogram) -> None:
        """Append a histogram."""
        self._add(Kind.HISTOGRAM, payloads.histogram(key, one))
        self._through()

    def text(self, key: str, one: Text) -> None:
        """Append a text."""
        self._add(Kind.TEXT, payloads.text(key, one))
        self._through()

    def table(self, key: str, one: Table) -> None:
        """Append a table's rows."""
        self._add(Kind.TABLE, payloads.table(key, one))
        self._through()

    def settings(self, step: int, time: float, mapping: Mapping[str, object]) -> None:
        """Append settings that hold from a step on."""
        said = {"step": step, "time": time, "settings": dict(mapping)}
        self._add(Kind.SETTINGS, payloads.to_json(said))
        self._through()

    def flush(self) -> None:
        """Hand what is pending to the system, in one write. OSError where it takes none."""
        if not self._pending or os.getpid() != self._pid:
            return
        data = b"".join([block for block, _ in self._pending])
        done = 0
        try:
            while done < len(data):  # once, unless the disk fills up or a signal comes
                wrote = os.write(self._fd, memoryview(data)[done:])
                if not wrote:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                done += wrote
        finally:
            self._wrote(done)

    def close(self) -> None:
        """Flush, say that the file is whole, and close it; twice is once. OSError."""
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

    def _through(self) -> None:
        if self.durable:
            self.flush()

    def _add(self, kind: Kind, payload: bytes) -> None:
        self._append(frames.pack(kind, payload), 0)

    def _append(self, block: bytes, rows: int) -> None:
        self._pending.append((block, rows))
        self._size += len(block)
        if self._size > MAX_PENDING:
            self._give_up()

    def _give_up(self) -> None:
        """Drop the older half of the rows that wait; key tables stay, for those that follow."""
        kept = self._pending[: int(self._begun)]
        excess = self._size - MAX_PENDING // 2
        for block, rows in self._pending[int(self._begun) :]:
            if rows and excess > 0:
                excess -= len(block)
                self._size -= len(block)
                self.dropped += rows
            else:
                kept.append((block, rows))
        self._pending = kept

    def _wrote(self, done: int) -> None:
        """Forget what is written, to the byte."""
        self._size -= done
        if self._size == 0:
            self._pending.clear()
            self._begun = False
            return
        while done and done >= len(self._pending[0][0]):
            done -= len(self._pending.pop(0)[0])
            self._begun = False
        if done:
            block, rows = self._pending[0]
            self._pending[0] = (block[done:], rows)
            self._begun = True


_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows would turn line ends


def scan(path: Path, cursor: BlockCursor | None = None) -> Scan:
    """Read the whole blocks since a cursor.

    Raises OSError, and UnreadableLog for a file that is not ours or of a newer format.
    """
    since = cursor or BlockCursor()
    with path.open("rb", buffering=0) as file:
        head = file.read(frames.SIZE)
        size = os.fstat(file.fileno()).st_size
        replaced = bool(since.head) and (size < since.offset or head != since.head)
        if replaced:
            since = BlockCursor()
        file.seek(since.offset)
        data = file.readall() or b""
    if len(head) == frames.SIZE and not since.head:
        since = BlockCursor(since.offset, since.rows, since.tables, head)
    found = _Found(since)
    try:
        for part in frames.walk(data, since.offset):
            found.take(part)
    except UnreadableLog as error:
        raise UnreadableLog(error.problem, where=str(path), hint=error.hint) from None
    return found.scan(replaced=replaced)


class _Found:
    """Collects what the frames of one reading hold."""

    def __init__(self, since: BlockCursor) -> None:
        self.since = since
        self.named = dict(since.tables)
        self.frames: list[Frame] = []  # of scalars
        self.histograms: list[tuple[str, Histogram]] = []
        self.texts: list[tuple[str, Text]] = []
        self.tables: list[tuple[str, Table]] = []
        self.settings: list[Changed] = []
        self.damage: list[Damage] = []
        self.offset, self.rows, self.torn = since.offset, since.rows, 0
        self.ended = since.ended

    def take(self, part: Frame | Damage | Tail) -> None:
        """Take the next part of the file."""
        if isinstance(part, Tail):
            self.torn = part.size
        elif isinstance(part, Damage):
            self.damage.append(part)
            self.offset = part.offset + part.size
        else:
            self.offset = part.end
            try:
                self._frame(part)
            except (ValueError, KeyError, TypeError) as error:
                self._damaged(part, f"a block that makes no sense: {error}")

    def _frame(self, frame: Frame) -> None:
        header, payload = frame.header, frame.payload
        self.ended = header.kind == Kind.END
        if header.kind == Kind.SCALARS:
            if header.size != 8 * header.rows * (header.columns + 2):
                raise ValueError("its length is not that of its rows")
            self.frames.append(frame)
            self.rows += header.rows
        elif header.kind == Kind.KEYS:
            self.named[header.table] = tuple(map(str, payloads.from_json(payload)))
        elif header.kind == Kind.HISTOGRAM:
            self.histograms.append(payloads.to_histogram(payload))
        elif header.kind == Kind.TEXT:
            self.texts.append(payloads.to_text(payload))
        elif header.kind == Kind.TABLE:
            self.tables.append(payloads.to_table(payload))
        elif header.kind == Kind.SETTINGS:
            self.settings.append(Changed(**payloads.from_json(payload)))

    def _damaged(self, frame: Frame, why: str) -> None:
        self.damage.append(Damage(frame.offset, frame.end - frame.offset, why))

    def _scalars(self, frame: Frame) -> Scalars | None:
        header = frame.header
        keys = self.named.get(header.table)
        if keys is None or len(keys) != header.columns:
            self._damaged(frame, f"{header.rows:,} rows whose key table is lost")
            return None
        words = np.frombuffer(frame.payload, "<f8").reshape(header.columns + 2, header.rows)
        return Scalars(keys, words[0].view("<i8"), words[1], words[2:])

    def scan(self, *, replaced: bool) -> Scan:
        """Return what was found; a key table that comes late names the rows before it too."""
        scalars = tuple(filter(None, map(self._scalars, self.frames)))
        tables = MappingProxyType(self.named)
        cursor = BlockCursor(self.offset, self.rows, tables, self.since.head, self.ended)
        self.damage.sort(key=lambda one: one.offset)
        return Scan(
            scalars,
            tuple(self.histograms),
            tuple(self.texts),
            tuple(self.tables),
            tuple(self.settings),
            tuple(self.damage),
            self.torn,
            replaced,
            cursor,
        )
