"""Logs packed with gzip or zstd, read as if they were not: what a file starts with decides.

    with inflated(file, kind, path) as plain: ...

The content is unpacked as a whole, into memory while it is small and a temporary file beyond.
A damaged stream is refused: its checksum comes last, so no byte before it can be trusted. One
that is cut short reads up to the cut. Formats: RFC 1952 (gzip), RFC 8878 (Zstandard).
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Protocol, cast

from rlvitals.errors import UnreadableLog

SUFFIXES = frozenset({".gz", ".zst", ".zstd"})
MAGIC_BYTES = 4
GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = (b"\x2a\x4d\x18", range(0x50, 0x60))  # a frame of remarks: last and first bytes
GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's way to say: with a gzip header
CHUNK_BYTES = 2**18  # of packed bytes
PIECE_BYTES = 2**20  # of unpacked bytes held at a time
IN_MEMORY_BYTES = 16 * 2**20
# Limits on what is unpacked. Deflate reaches 1032:1, a log that never changes about 200:1.
HARMLESS_BYTES = 256 * 2**20  # any ratio up to here
MAX_RATIO = 300
MAX_BYTES = 8 * 2**30
# A flipped bit near the end can make a whole member look cut short (at most 33 bytes were
# misread so in 12,000 trials): what the last bytes gave is left out then.
UNSURE_BYTES = 256
CUT = "the compressed file is cut short: read up to the cut, which no checksum covers"
GARBAGE = "bytes after the compressed content are left out"
COPY = "copy it again from where it was made"


class Unpacker(Protocol):
    """What gzip's and zstd's decompressors have in common, for one member or frame."""

    @property
    def eof(self) -> bool:
        """Whether the member is complete, its checksum verified."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What came after the member's end."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Unpack `max_length` bytes at most."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A way of packing: its decompressor, and the errors that it raises on damage."""

    name: str
    unpacker: Callable[[], Unpacker]
    errors: tuple[type[Exception], ...]


class _Gzip:
    """zlib's decompressor of one member, which keeps by itself what it was not asked for yet."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _zstd(where: Path) -> Kind:
    """Load the module that Python has from 3.14 on, before it its backport."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - only where a file needs it
        else:
            from backports import zstd  # noqa: PLC0415 - the same
    except ImportError:
        raise UnreadableLog(
            "packed with zstd, which this Python cannot unpack",
            where=str(where),
            hint="pip install backports.zstd",
        ) from None
    return Kind("zstd", zstd.ZstdDecompressor, (zstd.ZstdError, EOFError))


def kind_of(start: bytes, where: Path) -> Kind | None:
    """Return how a file is packed that starts with these bytes; None where it is not."""
    if start.startswith(GZIP_MAGIC):
        return Kind("gzip", _Gzip, (zlib.error, EOFError))
    if start.startswith(ZSTD_MAGIC) or _is_skippable(start):
        return _zstd(where)
    return None


def _is_skippable(start: bytes) -> bool:
    return start[1:MAGIC_BYTES] == SKIPPABLE[0] and start[0] in SKIPPABLE[1]


def bare(path: Path) -> Path:
    """Return a path without the suffix that says how the file is packed."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


class Unpacked:
    """The unpacked pieces of a file; `note` says afterwards what a person should know of it.

    Raises UnreadableLog where it is damaged.
    """

    def __init__(self, file: BinaryIO, kind: Kind, where: Path) -> None:
        """Unpack a file from its start."""
        self.note = ""
        self._file, self._kind, self._where = file, kind, where

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces, each PIECE_BYTES long at most."""
        try:
            yield from self._members()
        except self._kind.errors:
            raise UnreadableLog(
                f"the {self._kind.name} file is damaged: its content cannot be unpacked unharmed",
                where=str(self._where),
                hint=COPY,
            ) from None

    def _members(self) -> Iterator[bytes]:
        """Unpack member after member: a file may be several, one after another."""
        unpacker, data = None, b""
        for chunk, is_last in self._chunks():
            data += chunk
            while data:
                if unpacker is None:
                    if len(data) < MAGIC_BYTES and not is_last:
                        break
                    if not self._starts(data):
                        return
                    unpacker = self._kind.unpacker()
                pieces = _pieces(unpacker, data)
                if is_last:  # they count where they complete the member
                    pieces = iter(list(pieces))
                    if not unpacker.eof:
                        self.note = CUT
                        return
                yield from pieces
                data = unpacker.unused_data if unpacker.eof else b""
                unpacker = None if unpacker.eof else unpacker

    def _chunks(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the packed bytes, and whether they are the file's last, which come apart."""
        left = max(self._file.seek(0, 2) - UNSURE_BYTES, 0)
        self._file.seek(0)
        while left and (chunk := self._file.read(min(left, CHUNK_BYTES))):
            left -= len(chunk)
            yield chunk, False
        yield self._file.read(UNSURE_BYTES), True

    def _starts(self, data: bytes) -> bool:
        """Tell whether a member starts here; zeros pad a file, anything else is not ours."""
        start = data[:MAGIC_BYTES]
        kind = kind_of(start, self._where)
        if (kind and kind.name == self._kind.name) or GZIP_MAGIC.startswith(start):
            return True
        if data.strip(b"\0"):
            self.note = GARBAGE
        return False


def _pieces(unpacker: Unpacker, data: bytes) -> Iterator[bytes]:
    """Unpack all that some bytes give, in pieces."""
    while not unpacker.eof:
        piece = unpacker.decompress(data, PIECE_BYTES)
        data = b""
        if not piece:
            return
        yield piece


def beginning(file: BinaryIO, kind: Kind, where: Path, count: int) -> bytes:
    """Return the first `count` unpacked bytes. Raises UnreadableLog."""
    found = b""
    for piece in Unpacked(file, kind, where):
        found += piece
        if len(found) >= count:
            break
    return found[:count]


def note_on(file: BinaryIO, kind: Kind, where: Path) -> str:
    """Return what a person should know of a file's packing; "" where all is well."""
    unpacked = Unpacked(file, kind, where)
    for _ in unpacked:
        pass
    return unpacked.note


@contextmanager
def inflated(file: BinaryIO, kind: Kind, where: Path) -> Iterator[BinaryIO]:
    """Unpack a file as a whole. Raises UnreadableLog for damage and for a bomb."""
    packed = file.seek(0, 2)
    limit = min(MAX_BYTES, max(HARMLESS_BYTES, MAX_RATIO * packed))
    size = 0
    with SpooledTemporaryFile(IN_MEMORY_BYTES) as plain:
        for piece in Unpacked(file, kind, where):
            size += len(piece)
            if size > limit:
                raise UnreadableLog(
                    f"unpacks to more than {limit // 2**20:,} MiB from {packed:,} bytes",
                    where=str(where),
                    hint="unpack it yourself if you trust it, and point at the result",
                )
            plain.write(piece)
        plain.seek(0)
        yield cast("BinaryIO", plain)
