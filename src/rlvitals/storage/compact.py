"""Pack the many small blocks of a run into a few large ones.

A compacted file is written under a temporary name, synced, read back, compared value by value with
its source, and renamed; then the block file is removed. A crash at any byte leaves the block file
or both: the compacted one records how much of the other it replaces, so nothing is counted
twice.
"""

import os
import time as clock
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import blocks, columns, compacted, frames, holds, payloads, tail_index
from rlvitals.storage.blocks import Scalars, try_lock
from rlvitals.storage.compacted import Block, Damaged, PackedFile
from rlvitals.storage.frames import FRAME_HEADER_BYTES, Damage, Frame, Kind, Tail
from rlvitals.storage.origin import Origin
from rlvitals.storage.run_folder import BlockFile, block_files
from rlvitals.storage.safe_files import sync

PACKED_BLOCK_BYTES = (
    32 << 20
)  # of a packed block: a metric of a million points is in a few dozen places
MAX_BUFFERED_BYTES = 256 << 20  # bytes of rows that wait for their block to fill
Keys = tuple[str, ...]
MISMATCH = "what was packed differs from it"


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of compacting one file."""

    name: str
    before: int  # bytes
    after: int  # bytes; as before where it was left
    why: str = ""  # it was left


def compact(folder: Path) -> tuple[Packed, ...]:
    """Pack every file of a run folder that nobody writes to. Raises OSError, UnreadableLog."""
    reports = []
    for file in block_files(folder):
        for leftover in file.path.parent.glob(f".{file.path.stem}.packed.*"):
            leftover.unlink(missing_ok=True)  # of a compaction that was killed
        if file.path.exists():
            reports.append(_compact(file))
    return tuple(reports)


def _compact(file: BlockFile) -> Packed:
    name, size = file.path.name, file.path.stat().st_size
    if holds.applies(file.path.parent.parent):
        return Packed(name, size, size, "the run is on hold")
    with file.path.open("rb") as source:
        if not try_lock(source.fileno(), exclusive=True):
            return Packed(name, size, size, "it is still written to")
        quiet_seconds = clock.time() - file.path.stat().st_mtime
        if quiet_seconds < tail_index.QUIET_SECONDS and not tail_index.is_closed(file.path):
            return Packed(name, size, size, "it may still be written to")
        reason, target = pack(file)
    if reason:
        return Packed(name, size, size, reason)
    file.path.unlink()
    sync(file.path.parent)
    return Packed(name, size, target.stat().st_size)


def pack(file: BlockFile) -> tuple[str, Path]:
    """Write the compacted file of a rank. Return the reason if it was skipped. Raises OSError."""
    target = file.path.with_suffix(".packed.rlv")
    temp_path = target.with_name(f".{file.path.stem}.packed.{os.urandom(6).hex()}")
    try:
        with temp_path.open("xb") as temp_file:
            source = _Source(file)
            _Packer(temp_file).take(source)
            temp_file.flush()
            os.fsync(temp_file.fileno())
        _compare(_Source(file), temp_path, source.origin)
        temp_path.replace(target)
        sync(target.parent)
    except _SkipFile as error:
        return str(error), target
    except Damaged:
        return f"{MISMATCH}: its checksums", target
    finally:
        temp_path.unlink(missing_ok=True)
    return "", target


class _SkipFile(Exception):  # noqa: N818 - what becomes of the file
    """A file cannot be compacted; the message is the reason."""


class _Source:
    """The rows and other frames of one rank in order, in bounded memory."""

    def __init__(self, file: BlockFile) -> None:
        """Begin before the first part. OSError."""
        self._file = file
        self.origin = Origin(0, 0, 0, {}, b"", ended=False)  # how far `read` came

    def read(self) -> Iterator[Scalars | Frame]:
        """Yield the compacted frames, then those of the growing file. Raises OSError, _SkipFile."""
        with self._file.path.open("rb", buffering=0) as growing_file:
            head = growing_file.read(FRAME_HEADER_BYTES)
            if frames.parse(head) is None:
                raise _SkipFile("no block of it is whole")
            self.origin = replace(self.origin, head=head)
            if self._file.packed is not None:
                yield from self._read_packed_file(self._file.packed)
            yield from self._read_growing_file(growing_file)

    def _read_packed_file(self, path: Path) -> Iterator[Scalars | Frame]:
        with PackedFile(path) as packed_file:
            if packed_file.damage or packed_file.origin is None:
                raise _SkipFile(f"{path.name} is damaged")
            if packed_file.origin.head != self.origin.head:
                raise _SkipFile(f"{path.name} stands for another file")
            if packed_file.tiers:
                raise _SkipFile(f"{path.name} was thinned")
            for block in packed_file.blocks:
                yield packed_file.scalars(block)
            yield from packed_file.others
            self.origin = packed_file.origin

    def _read_growing_file(self, source: IO[bytes]) -> Iterator[Scalars | Frame]:
        start = self.origin
        tables, rows, other_count = dict(start.tables), start.rows, start.others
        for item in frames.stream(source, start.covers):
            if isinstance(item, Damage):
                raise _SkipFile(f"it is damaged: {item}")
            if isinstance(item, Tail):  # the process was killed while it wrote
                break
            header = item.header
            if header.kind == Kind.KEYS:
                tables[header.table] = _parse(item)
            elif header.kind == Kind.SCALARS:
                if len(tables.get(header.table, ())) != header.columns:
                    raise _SkipFile(f"the key table of the rows at offset {item.offset:,} is lost")
                yield blocks.to_scalars(item, tables[header.table], rows)
                rows += header.rows
            elif header.kind in {Kind.HISTOGRAM, Kind.TEXT, Kind.TABLE, Kind.SETTINGS}:
                _parse(item)
                yield item
                other_count += 1
            is_closed = header.kind == Kind.END
            self.origin = Origin(item.end, rows, other_count, tables, start.head, is_closed)


def _parse(frame: Frame) -> Any:  # noqa: ANN401 - whatever the frame holds
    """Parse a frame; a frame that no reader can parse is not packed. Raises _SkipFile."""
    try:
        return payloads.PARSERS[frame.header.kind](frame.payload)
    except ValueError as error:
        raise _SkipFile(f"it is damaged: the block at offset {frame.offset:,}: {error}") from None


def _compare(source: _Source, path: Path, origin: Origin) -> None:
    """Read a packed file as readers do and compare it bit by bit. Raises OSError, _SkipFile."""
    with PackedFile(path) as packed_file:
        copies = iter(packed_file.others)
        written = _PackedRows(packed_file)
        for item in source.read():
            if isinstance(item, Scalars):
                alike = written.has(item)
            else:
                copy = next(copies, None)
                alike = copy is not None and _content(copy) == _content(item)
            if not alike:
                text = (
                    f"rows of {', '.join(item.keys[:3])} from step {item.steps[0]:,} on"
                    if isinstance(item, Scalars)
                    else f"the block at offset {item.offset:,}"
                )
                raise _SkipFile(f"{MISMATCH}: {text}")
        if packed_file.damage or next(copies, None) is not None or written.has_more():
            raise _SkipFile(f"{MISMATCH}: it holds more")
        if not packed_file.origin == source.origin == origin:
            raise _SkipFile(f"{MISMATCH}: its reach")


def _content(frame: Frame) -> tuple[int, memoryview]:
    return frame.header.kind, frame.payload


class _PackedRows:
    """The rows of a packed file, read block by block for each key table."""

    def __init__(self, packed_file: PackedFile) -> None:
        self._file = packed_file
        self._blocks: dict[Keys, list[Block]] = defaultdict(list)
        for block in packed_file.blocks:
            self._blocks[block.keys].append(block)
        self._remaining: dict[Keys, Scalars] = {}  # read, not compared yet

    def has(self, chunk: Scalars) -> bool:
        """Compare rows with the next ones under their keys: bits and places. OSError, Damaged."""
        while len(chunk.steps):
            remaining = self._remaining.pop(chunk.keys, None)
            if remaining is None or not len(remaining.steps):
                if not self._blocks[chunk.keys]:
                    return False
                remaining = self._file.scalars(self._blocks[chunk.keys].pop(0))
            size = min(len(remaining.steps), len(chunk.steps))
            if _to_bytes(columns.select_rows(remaining, slice(size))) != _to_bytes(
                columns.select_rows(chunk, slice(size))
            ):
                return False
            self._remaining[chunk.keys] = columns.select_rows(remaining, slice(size, None))
            chunk = columns.select_rows(chunk, slice(size, None))
        return True

    def has_more(self) -> bool:
        """Return whether rows are left that nothing was compared with."""
        has_rows = any(len(rows.steps) for rows in self._remaining.values())
        return has_rows or any(self._blocks.values())


def _to_bytes(chunk: Scalars) -> tuple[bytes, ...]:
    return tuple(
        column.tobytes()
        for column in (chunk.steps, chunk.times, chunk.values, columns.places(chunk))
    )


class _Packer:
    """A buffer that collects rows by key table until they fill a block."""

    def __init__(self, into: IO[bytes]) -> None:
        self._into = into
        self._pending: dict[Keys, list[Scalars]] = defaultdict(list)
        self._sizes: Counter[Keys] = Counter()  # bytes of the rows that wait
        self._numbers: dict[Keys, int] = {}

    def take(self, source: _Source) -> None:
        """Write the content of a source, packed. Raises OSError, _SkipFile."""
        for item in source.read():
            if isinstance(item, Scalars):
                self._add(item)
            else:
                self._copy(item)
        for keys in list(self._pending):
            self._write(keys)
        self._into.write(source.origin.frame() + frames.pack(Kind.END, b""))

    def _copy(self, frame: Frame) -> None:
        self._into.write(frames.to_bytes(frame.header) + frame.payload)

    def _add(self, chunk: Scalars) -> None:
        self._pending[chunk.keys].append(chunk)
        self._sizes[chunk.keys] += 8 * len(chunk.steps) * (2 + len(chunk.keys))
        if self._sizes[chunk.keys] >= PACKED_BLOCK_BYTES:
            self._write(chunk.keys)
        elif self._sizes.total() > MAX_BUFFERED_BYTES:
            self._write(self._sizes.most_common(1)[0][0])

    def _write(self, keys: Keys) -> None:
        """Write the buffered rows of a key table."""
        merged = columns.concatenate(self._pending.pop(keys))
        del self._sizes[keys]
        if keys not in self._numbers:
            self._numbers[keys] = len(self._numbers)
            names = payloads.encode_json(keys)
            table = frames.pack(Kind.KEYS, names, len(keys), self._numbers[keys])
            self._into.write(table)
        max_rows = max(1, PACKED_BLOCK_BYTES // (8 * (2 + len(keys))))
        for begin in range(0, len(merged.steps), max_rows):
            chunk = columns.select_rows(merged, slice(begin, begin + max_rows))
            self._into.writelines(compacted.block(chunk, self._numbers[keys]))
