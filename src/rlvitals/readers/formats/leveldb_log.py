"""Read LevelDB's log framing, as W&B and SwanLab use it, with verified checksums.

After a header of 7 bytes (`ident | u16 magic | u8 version`) the file is blocks of 32 KiB, the
header being part of the first. A piece is `u32 CRC | u16 length | u8 kind | data` and never
crosses a block's end; a record is one FULL piece, or FIRST, any number of MIDDLE, and LAST. The
rest of a block that is too short for a piece is zeros. The checksum is zlib's CRC-32 of the kind
and the data, not masked. Source: github.com/google/leveldb/blob/main/doc/log_format.md.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.damage import Damage
from rlvitals.readers.formats.lines import Position, position_at
from rlvitals.startup.fast_dataclass import dataclass

LEVELDB_HEADER = struct.Struct("<4sHB")
PIECE_HEADER = struct.Struct("<IHB")
BLOCK_BYTES = 32768
MAX_LEVELDB_RECORD_BYTES = 64 * 2**20  # longer ones are passed over, not held
FULL_PIECE, FIRST_PIECE, MIDDLE_PIECE, LAST_PIECE = range(1, 5)
CRC_SEEDS = tuple(zlib.crc32(bytes([kind])) for kind in range(5))


@dataclass(frozen=True, slots=True)
class Format:
    """Header of a format."""

    title: str  # whose format it is
    ident: bytes
    magic: int
    versions: tuple[int, ...]
    peer: str  # the command that reads what we do not

    def begins(self, head: bytes) -> bool:
        """Return True if a file's first bytes are, or may become, this format's header."""
        start = self.ident + self.magic.to_bytes(2, "little")
        return head[: len(start)] == start[: len(head)]

    def check(self, file: BinaryIO, path: Path) -> None:
        """Raise UnreadableLog where a file's header, whole or cut, is not this format's."""
        file.seek(0)
        head = file.read(LEVELDB_HEADER.size)
        if not self.begins(head):
            problem = f"not a {self.title} file: its header says something else"
            raise UnreadableLog(
                problem, where=str(path), hint=f"head -c {LEVELDB_HEADER.size} {path}"
            )
        if len(head) == LEVELDB_HEADER.size and (version := head[-1]) not in self.versions:
            problem = f"version {version} of {self.title}'s file format is not known"
            raise UnreadableLog(problem, where=str(path), hint=self.peer)


class Records:
    """Iterates over the intact records of a file from a byte offset on.

    A torn tail ends the iteration before it: it is still being written. Damage is passed over up
    to the next intact piece, at the place that the damaged one names or at the start of a later
    block; damage that reaches the file's end is left for the next reading, as bytes may also
    arrive out of order. `offset` is where to go on: the end of the last whole record.
    """

    def __init__(self, file: BinaryIO, offset: int = 0) -> None:
        """Start at a byte offset, which must be the start of a record; 0 is before the first."""
        self.offset = max(offset, LEVELDB_HEADER.size)
        self.damage = Damage()
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self._chunk = b""
        self._base = 0
        self._parts: list[bytes] = []  # of a record in several pieces
        self._held = 0  # bytes of the pieces so far
        self._start = -1  # where those pieces begin; -1: none are open

    @property
    def unsure(self) -> int:
        """Bytes at the end that are damaged, or not written yet."""
        return max(self._size - self.offset, 0)

    def position(self) -> Position:
        """Return the position to resume from: the start of a file whose header is not whole yet."""
        written = self._file.seek(0, os.SEEK_END) >= LEVELDB_HEADER.size
        return position_at(self._file, self.offset if written else 0)

    def notes(self) -> list[str]:
        """Return notes for the user; empty without problems."""
        return self.damage.notes(MAX_LEVELDB_RECORD_BYTES, self.unsure)

    def __iter__(self) -> Iterator[bytes]:
        """Yield every intact payload once, in order."""
        crc, unpack, size = zlib.crc32, PIECE_HEADER.unpack_from, PIECE_HEADER.size
        seed = CRC_SEEDS[FULL_PIECE]
        offset: int | None = self.offset
        while offset is not None:
            if BLOCK_BYTES - offset % BLOCK_BYTES < size:
                offset += BLOCK_BYTES - offset % BLOCK_BYTES
            self._load(offset)
            chunk, base = self._chunk, self._base
            begin, block = offset - base, offset - offset % BLOCK_BYTES + BLOCK_BYTES - base
            stop = min(block, len(chunk))
            while begin + size <= stop:
                check, length, kind = unpack(chunk, begin)
                end = begin + size + length
                data = chunk[begin + size : end]
                if kind != FULL_PIECE or end > stop or crc(data, seed) != check or self._start >= 0:
                    break
                begin = end
                self.offset = base + end
                yield data
            else:
                offset = base + begin
                if stop < block:  # the file ends in this block
                    return
                continue
            offset = base + begin
            if end > block or not FULL_PIECE <= kind <= LAST_PIECE:
                offset = self._resume(offset, None)
            elif end > len(chunk):
                return
            elif crc(data, CRC_SEEDS[kind]) != check:
                offset = self._resume(offset, base + end)
            else:
                record = self._assemble(kind, offset, data)
                offset = base + end
                if record is not None:
                    self.offset = offset
                    yield record

    def _load(self, offset: int) -> None:
        """Have the block that holds an offset in memory, and those after it."""
        if not self._base <= offset < self._base + len(self._chunk):
            self._base = offset - offset % BLOCK_BYTES
            self._file.seek(self._base)
            self._chunk = self._file.read(128 * BLOCK_BYTES)

    def _assemble(self, kind: int, offset: int, data: bytes) -> bytes | None:
        """Take a piece; return the record that it completes, None where it completes none."""
        if (
            kind in (FULL_PIECE, FIRST_PIECE) and self._start >= 0
        ):  # the one before was never completed
            self._lose(self._start, offset)
        if kind == FULL_PIECE:
            return data
        if kind == FIRST_PIECE:
            self._start, self._parts, self._held = offset, [data], len(data)
            return None
        if self._start < 0:  # its beginning was lost
            self._lose(offset, offset + PIECE_HEADER.size + len(data))
            if kind == LAST_PIECE:
                self.offset = offset + PIECE_HEADER.size + len(data)
            return None
        self._held += len(data)
        if self._held <= MAX_LEVELDB_RECORD_BYTES:
            self._parts.append(data)
        if kind == MIDDLE_PIECE:
            return None
        pieces, fits = self._parts, self._held <= MAX_LEVELDB_RECORD_BYTES
        self._start, self._parts = -1, []
        if fits:
            return b"".join(pieces)
        self.damage.oversized += 1
        self.offset = offset + PIECE_HEADER.size + len(data)
        return None

    def _lose(self, start: int, end: int) -> None:
        self.damage.add(start, end)
        self._start, self._parts = -1, []

    def _resume(self, offset: int, stated: int | None) -> int | None:
        """Return where the next intact piece after damage is; None where there is none (yet)."""
        next_piece = stated if stated is not None and self._intact(stated) else None
        block = offset - offset % BLOCK_BYTES + BLOCK_BYTES
        while next_piece is None and block < self._size:
            next_piece = block if self._intact(block) else None
            block += BLOCK_BYTES
        if next_piece is not None:
            self._lose(offset if self._start < 0 else self._start, next_piece)
        return next_piece

    def _intact(self, offset: int) -> bool:
        remaining = BLOCK_BYTES - offset % BLOCK_BYTES
        offset = offset if remaining >= PIECE_HEADER.size else offset + remaining
        self._load(offset)
        begin = offset - self._base
        if begin + PIECE_HEADER.size > len(self._chunk):
            return False
        check, length, kind = PIECE_HEADER.unpack_from(self._chunk, begin)
        end = begin + PIECE_HEADER.size + length
        if not FULL_PIECE <= kind <= LAST_PIECE or end > len(self._chunk):
            return False
        return bool(
            zlib.crc32(self._chunk[begin + PIECE_HEADER.size : end], CRC_SEEDS[kind]) == check
        )
