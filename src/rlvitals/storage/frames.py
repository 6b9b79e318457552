"""Read and write the frames of a block file: a header with a checksum, and a payload.

A frame is 32 bytes of header and a payload whose length is a multiple of 8, little-endian:

    magic "RLVB" | kind u1 | format u1 | reserved u2 | payload bytes u4 | payload CRC-32 u4
    | rows u4 | columns u4 | key table u4 | CRC-32 of the 28 bytes before u4

Reading continues after a damaged frame at the next valid header.
"""

import os
from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import IO
from zlib import crc32

from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass

BLOCK_MAGIC = b"RLVB"
BLOCK_FORMAT = 1
FRAME_HEADER = Struct("<4sBBHIIIII")
FRAME_CHECKSUM = Struct("<I")
FRAME_HEADER_BYTES = FRAME_HEADER.size + FRAME_CHECKSUM.size
ALIGN_BYTES = 8  # bytes: columns can be read without a copy


class Kind(IntEnum):
    """The kind of a frame's payload."""

    START = 1  # JSON: what file this is
    KEYS = 2  # JSON: the names of a key table's columns
    SCALARS = 3  # columns: steps, times, then one for each key
    HISTOGRAM = 4
    TEXT = 5  # JSON
    TABLE = 6  # JSON
    SETTINGS = 7  # JSON
    END = 8  # the writer closed the file: nothing follows
    PACKED = 9  # columns, each with its own checksum
    ORIGIN = 10  # JSON: the part of a block file that a compacted file replaces
    TIER = 11  # counts: the points of a thinned metric's buckets before and after


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of a frame's header, 32 bytes."""

    kind: int
    size: int  # of the payload, bytes
    crc: int  # of the payload
    rows: int
    columns: int
    table: int  # the key table's number


@dataclass(frozen=True, slots=True)
class Damage:
    """Damaged bytes of a file that are followed by a valid frame."""

    offset: int
    size: int  # bytes
    why: str

    def __str__(self) -> str:
        """Name the place."""
        return f"{self.size:,} bytes at offset {self.offset:,}: {self.why}"


@dataclass(frozen=True, slots=True)
class Frame:
    """A complete frame with valid checksums, and its offset in the file."""

    offset: int
    header: Header
    payload: memoryview

    @property
    def end(self) -> int:
        """The offset of what follows."""
        return self.offset + FRAME_HEADER_BYTES + self.header.size


@dataclass(frozen=True, slots=True)
class Tail:
    """Bytes at the end that are no complete frame: still being written, or torn."""

    offset: int
    size: int


Part = Frame | Damage | Tail


def pack(kind: Kind, payload: bytes, columns: int = 0, table: int = 0, rows: int = 0) -> bytes:
    """Frame a payload; its length must be a multiple of 8 bytes."""
    header = Header(kind, len(payload), crc32(payload), rows, columns, table)
    return to_bytes(header) + payload


def to_bytes(header: Header) -> bytes:
    """Encode a header as 32 bytes."""
    head = FRAME_HEADER.pack(
        BLOCK_MAGIC,
        header.kind,
        BLOCK_FORMAT,
        0,
        header.size,
        header.crc,
        header.rows,
        header.columns,
        header.table,
    )
    return head + FRAME_CHECKSUM.pack(crc32(head))


def pad(text: bytes) -> bytes:
    """Pad JSON with spaces to a multiple of 8 bytes."""
    return text + b" " * (-len(text) % ALIGN_BYTES)


def parse(buffer: bytes | memoryview, offset: int = 0) -> Header | None:
    """Read the header at an offset; None where there is none that checks.

    Raises UnreadableLog for a frame of a newer format.
    """
    head = bytes(buffer[offset : offset + FRAME_HEADER_BYTES])
    if len(head) < FRAME_HEADER_BYTES or not head.startswith(BLOCK_MAGIC):
        return None
    if FRAME_CHECKSUM.unpack_from(head, FRAME_HEADER.size)[0] != crc32(head[: FRAME_HEADER.size]):
        return None
    _, kind, version, _, size, crc, rows, columns, table = FRAME_HEADER.unpack_from(head)
    if version > BLOCK_FORMAT:
        raise UnreadableLog(
            f"blocks of format {version}, written by a newer rlvitals",
            hint=f"this one reads formats up to {BLOCK_FORMAT}: pip install --upgrade rlvitals",
        )
    return Header(kind, size, crc, rows, columns, table)


def walk(buffer: bytes, begin: int = 0) -> Iterator[Part]:
    """Iterate over the frames of a buffer; `begin` is the offset of its first byte in the file.

    Damage is yielded once a valid header follows it; a Tail comes last, if at all.
    """
    view = memoryview(buffer)
    offset, end = 0, len(buffer)
    while offset < end:
        header = parse(buffer, offset)
        stop = end if header is None else offset + FRAME_HEADER_BYTES + header.size
        if header is not None and stop <= end:
            payload = view[offset + FRAME_HEADER_BYTES : stop]
            if crc32(payload) == header.crc:
                yield Frame(begin + offset, header, payload)
                offset = stop
                continue
        next_offset = _find_header(buffer, offset + 1)
        if next_offset is None:
            yield Tail(begin + offset, end - offset)
            return
        problem = "no header" if header is None else "the content does not match its checksum"
        yield Damage(begin + offset, next_offset - offset, problem)
        offset = next_offset


def stream(file: IO[bytes], begin: int = 0, window: int = 64 << 20) -> Iterator[Part]:
    """Iterate over the frames of a file in bounded memory, starting at a frame's offset."""
    end = file.seek(0, os.SEEK_END)
    offset, size = begin, window
    while offset < end:
        file.seek(offset)
        data = read(file, min(size, end - offset))
        last, start = offset + len(data) >= end or not data, offset
        for item in walk(data, offset):
            if isinstance(item, Tail) and not last:
                break
            yield item
            offset = item.end if isinstance(item, Frame) else item.offset + item.size
        if last:
            return
        size = window if offset > start else 4 * size  # one frame is larger than the window


def read(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, fewer where the file ends: one call may return less."""
    chunks = []
    while size > 0 and (chunk := file.read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _find_header(buffer: bytes, offset: int) -> int | None:
    """Return the offset of the next valid header."""
    while (offset := buffer.find(BLOCK_MAGIC, offset)) >= 0:
        if parse(buffer, offset) is not None:
            return offset
        offset += 1
    return None
