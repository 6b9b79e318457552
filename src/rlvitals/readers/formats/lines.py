"""Read complete lines of a growing text log from the last position.

    with opened(path) as file:
        lines = Lines(file, since)          # since: a Position, or None for the start
        for line in lines:                  # Line(number, start, end, text)
            ...
        cursor = lines.position(line)       # go on after this line; position() is the last one

A last line without its newline is still being written ("20480" may read "20") and is left
for the next call. Lines over 16 MB are skipped and counted, in bounded memory.
"""

import codecs
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, NamedTuple, cast

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import compressed
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.missing_path import missing_path

HEAD_BYTES = 65536  # what `claims` gets to see
MAX_LINE_BYTES = 16 * 2**20
LINE_CHUNK_BYTES = 2**20
FINGERPRINT_BYTES = 256
BOM = b"\xef\xbb\xbf"
REPLACED_NOTE = "the file was replaced since the last reading: read again from its start"
REREAD_NOTE = "new rows show how the table is to be read: read again from its start"
REWRITTEN_NOTE = "the file is being rewritten: left for the next reading"
TORN_NOTE = "the last line is not complete: left for the next reading"


@contextmanager
def open_log(path: Path) -> Iterator[BinaryIO]:
    """Open a log for reading bytes: gzip and zstd are unpacked, UTF-16 is written as UTF-8.

    Raises what `stored` raises, and UnreadableLog for a damaged file and for a bomb.
    """
    with open_stored(path) as file:
        start = file.read(compressed.MAGIC_LENGTH)
        kind = compressed.kind_of(start, path)
        file.seek(0)
        if kind is not None:
            with compressed.inflate(file, kind, path) as plain:
                yield plain
        elif _is_utf16(start):
            with _recode(file) as plain:
                yield plain
        else:
            yield file


def _is_utf16(start: bytes) -> bool:
    """Return True for text as PowerShell redirects it; its mark and two zeros are UTF-32's."""
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and start[2:] != b"\0\0"


@contextmanager
def _recode(file: BinaryIO) -> Iterator[BinaryIO]:
    """Write UTF-16 as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    with SpooledTemporaryFile(compressed.MAX_IN_MEMORY_BYTES) as plain:
        while chunk := file.read(LINE_CHUNK_BYTES):
            plain.write(decoder.decode(chunk).encode(errors="replace"))
        plain.seek(0)
        yield cast("BinaryIO", plain)


@contextmanager
def open_stored(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading its bytes as they are stored.

    Raises UnreadableLog where there is no such file, no permission, a folder, a pipe or a
    device (which would hang), and for any error of the file system while reading.
    """
    if "\0" in str(path):
        raise UnreadableLog("a path that no file can have", where=repr(str(path)))
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            problem = "a folder, not a log file" if stat.S_ISDIR(mode) else "not a regular file"
            raise UnreadableLog(problem, where=str(path), hint=f"ls -l {path}")
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        if path.is_symlink():
            raise UnreadableLog(
                "a link to a file that does not exist", where=str(path), hint=f"ls -l {path}"
            ) from None
        raise missing_path(path) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableLog(
            f"cannot read the log: {reason}", where=str(path), hint=f"ls -l {path}"
        ) from None


def read_head(path: Path) -> bytes:
    """Return a file's first 64 KiB, unpacked, for `claims`. Raises UnreadableLog."""
    with open_stored(path) as file:
        start = file.read(compressed.MAGIC_LENGTH)
        kind = compressed.kind_of(start, path)
        if kind is not None:
            return compressed.beginning(file, kind, path, HEAD_BYTES)
        head = start + file.read(HEAD_BYTES - len(start))
        return head.decode("utf-16", "replace").encode() if _is_utf16(start) else head


def is_packed(path: Path) -> bool:
    """Return True if a file is packed with gzip or zstd, or UTF-16. Raises UnreadableLog."""
    with open_stored(path) as file:
        start = file.read(compressed.MAGIC_LENGTH)
        return compressed.kind_of(start, path) is not None or _is_utf16(start)


def packing_note(path: Path) -> str:
    """Return a note on how a file is packed: that it is cut short.

    "" where all is well. Unpacks the whole file. Raises UnreadableLog.
    """
    with open_stored(path) as file:
        kind = compressed.kind_of(file.read(compressed.MAGIC_LENGTH), path)
        return compressed.unpack_note(file, kind, path) if kind else ""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, and a fingerprint of what came before it."""

    offset: int = 0  # bytes
    line: int = 0  # lines before it
    mark: int = 0  # CRC-32 of the first and the last bytes before `offset`


def position_at(file: BinaryIO, offset: int, line: int = 0) -> Position:
    """Return a Position at a byte offset. Moves the file's own position."""
    file.seek(0)
    mark = zlib.crc32(file.read(min(FINGERPRINT_BYTES, offset)))
    file.seek(max(offset - FINGERPRINT_BYTES, 0))
    mark = zlib.crc32(file.read(min(FINGERPRINT_BYTES, offset)), mark)
    return Position(offset, line, mark)


def is_replaced(file: BinaryIO, position: Position) -> bool:
    """Return True if the file before a Position is no longer what it was. Moves the position."""
    return position_at(file, position.offset, position.line) != position


class Line(NamedTuple):
    """One complete line, without its line break, decoded as UTF-8 with replacement."""

    number: int  # from 1
    start: int  # byte offset of its first byte
    end: int  # byte offset after its newline
    text: str


class Lines:
    """Iterates over the complete lines after a Position; see the module for its use."""

    def __init__(self, file: BinaryIO, previous: Position | None = None) -> None:
        """Go to `since`; to the start where the file before it is no longer the same.

        `replaced` says that the latter happened.
        """
        previous = previous or Position()
        self.replaced = is_replaced(file, previous)
        start = Position() if self.replaced else previous
        self.skipped = 0  # lines over MAX_LINE_BYTES
        self.first_skipped = 0  # number of the first one
        self.torn = False  # the file ends in the middle of a line (known after iterating)
        self._file = file
        self._offset, self._number = start.offset, start.line

    def position(self, after: Line | None = None) -> Position:
        """Return the position to resume from: after a line, or after the last complete one."""
        if after is not None:
            return position_at(self._file, after.end, after.number)
        return position_at(self._file, self._offset, self._number)

    def notes(self) -> list[str]:
        """Return notes for the user; empty without problems."""
        notes = [REPLACED_NOTE] if self.replaced else []
        if self.skipped:
            some = "1 line" if self.skipped == 1 else f"{self.skipped} lines"
            limit = MAX_LINE_BYTES // 2**20
            notes.append(f"{some} over {limit} MiB skipped: the first is line {self.first_skipped}")
        if self.torn:
            notes.append(TORN_NOTE)
        return notes

    def __iter__(self) -> Iterator[Line]:
        """Yield every complete line once, in order."""
        end = self._offset
        for number, size, raw in self._raw_lines():
            start, end = end, end + size
            self._offset, self._number = end, number
            if raw is None:
                self.skipped += 1
                self.first_skipped = self.first_skipped or number
                continue
            text = (raw.removeprefix(BOM) if start == 0 else raw).rstrip(b"\r")
            yield Line(number, start, end, text.decode(errors="replace"))

    def _raw_lines(self) -> Iterator[tuple[int, int, bytes | None]]:
        """Yield (number, bytes with the newline, line); None for a line that is too long."""
        number = self._number
        offset = self._offset
        pieces: list[bytes] = []  # the pieces of an unfinished line
        size = 0
        # For the first line, or the last: more is read at once after it.
        at_once = 2**14
        while True:
            self._file.seek(offset)
            chunk = self._file.read(at_once)
            at_once = LINE_CHUNK_BYTES
            if not chunk:
                break
            offset += len(chunk)
            first, *lines = chunk.split(b"\n")
            size += len(first)
            pieces = [*pieces, first] if size <= MAX_LINE_BYTES else []
            for piece in lines:
                number += 1
                yield number, size + 1, b"".join(pieces) if size <= MAX_LINE_BYTES else None
                pieces, size = [piece], len(piece)
        self.torn = size > 0
