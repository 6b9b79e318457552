"""The frames of a block file: a header that checks itself, and a payload that it checks.

A frame is 32 bytes of header and a payload whose length is a multiple of 8, little-endian:

    magic "RLVB" | kind u1 | format u1 | reserved u2 | payload bytes u4 | payload CRC-32 u4
    | rows u4 | columns u4 | key table u4 | CRC-32 of the 28 bytes before u4

What follows a damaged frame is found again by the next header that checks.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import IO
from zlib import crc32

from rlvitals.errors import UnreadableLog

MAGIC = b"RLVB"
FORMAT = 1
HEADER = Struct("<4sBBHIIIII")
CHECK = Struct("<I")
SIZE = HEADER.size + CHECK.size
ALIGN = 8  # bytes: columns of a payload can be looked at where they lie
WINDOW = 64 << 20  # bytes of a file that are held at a time


class Kind(IntEnum):
    """What a frame holds."""

    START = 1  # JSON: what file this is
    KEYS = 2  # JSON: the names of a key table's columns
    SCALARS = 3  # columns: steps, times, then one for each key
    HISTOGRAM = 4
    TEXT = 5  # JSON
    TABLE = 6  # JSON
    SETTINGS = 7  # JSON
    END = 8  # the writer closed the file: nothing follows
    PACKED = 9  # columns, each with a check of its own
    ORIGIN = 10  # JSON: which part of which file a packed file stands for


@dataclass(frozen=True, slots=True)
class Header:
    """What the first 32 bytes of a frame say."""

    kind: int
    size: int  # of the payload, bytes
    crc: int  # of the payload
    rows: int
    columns: int
    table: int  # the key table's number


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a file that are no whole frame, though whole ones follow."""

    offset: int
    size: int  # bytes
    why: str

    def __str__(self) -> str:
        """Name the place."""
        return f"{self.size:,} bytes at offset {self.offset:,}: {self.why}"


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame, checked: where it begins in its file, and its payload."""

    offset: int
    header: Header
    payload: memoryview

    @property
    def end(self) -> int:
        """The offset of what follows."""
        return self.offset + SIZE + self.header.size


@dataclass(frozen=True, slots=True)
class Tail:
    """Bytes at the end that are no whole frame: still being written, or torn."""

    offset: int
    size: int


Part = Frame | Damage | Tail


def pack(kind: Kind, payload: bytes, columns: int = 0, table: int = 0, rows: int = 0) -> bytes:
    """Frame a payload; its length must be a multiple of 8 bytes."""
    said = Header(kind, len(payload), crc32(payload), rows, columns, table)
    return to_bytes(said) + payload


def to_bytes(said: Header) -> bytes:
    """Make the 32 bytes that stand before a payload."""
    head = HEADER.pack(
        MAGIC, said.kind, FORMAT, 0, said.size, said.crc, said.rows, said.columns, said.table
    )
    return head + CHECK.pack(crc32(head))


def padded(text: bytes) -> bytes:
    """Lengthen JSON with spaces to a multiple of 8 bytes."""
    return text + b" " * (-len(text) % ALIGN)


def parse(buffer: bytes | memoryview, at: int = 0) -> Header | None:
    """Read the header at an offset; None where there is none that checks.

    Raises UnreadableLog for a frame of a newer format.
    """
    head = bytes(buffer[at : at + SIZE])
    if len(head) < SIZE or not head.startswith(MAGIC):
        return None
    if CHECK.unpack_from(head, HEADER.size)[0] != crc32(head[: HEADER.size]):
        return None
    _, kind, version, _, size, crc, rows, columns, table = HEADER.unpack_from(head)
    if version > FORMAT:
        raise UnreadableLog(
            f"blocks of format {version}, written by a newer rlvitals",
            hint=f"this one reads formats up to {FORMAT}: pip install --upgrade rlvitals",
        )
    return Header(kind, size, crc, rows, columns, table)


def walk(buffer: bytes, begin: int = 0) -> Iterator[Part]:
    """Go through the frames of a file's bytes; `begin` is the offset of the first in the file.

    Damage is told once a whole header follows it; a Tail comes last, if at all.
    """
    view = memoryview(buffer)
    at, end = 0, len(buffer)
    while at < end:
        found = parse(buffer, at)
        stop = end if found is None else at + SIZE + found.size
        if found is not None and stop <= end:
            payload = view[at + SIZE : stop]
            if crc32(payload) == found.crc:
                yield Frame(begin + at, found, payload)
                at = stop
                continue
        after = _next(buffer, at + 1)
        if after is None:
            yield Tail(begin + at, end - at)
            return
        why = "no header" if found is None else "the content does not match its checksum"
        yield Damage(begin + at, after - at, why)
        at = after


def stream(file: IO[bytes], begin: int = 0, window: int = WINDOW) -> Iterator[Part]:
    """Go through the frames of a file in bounded memory, from the offset of one on."""
    end = file.seek(0, os.SEEK_END)
    at, size = begin, window
    while at < end:
        file.seek(at)
        data = read(file, min(size, end - at))
        last, start = at + len(data) >= end or not data, at
        for part in walk(data, at):
            if isinstance(part, Tail) and not last:
                break
            yield part
            at = part.end if isinstance(part, Frame) else part.offset + part.size
        if last:
            return
        size = window if at > start else 4 * size  # one frame is larger than the window


def read(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, fewer where the file ends: one call may return less."""
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _next(buffer: bytes, at: int) -> int | None:
    """Find the next header that checks."""
    while (at := buffer.find(MAGIC, at)) >= 0:
        if parse(buffer, at) is not None:
            return at
        at += 1
    return None
