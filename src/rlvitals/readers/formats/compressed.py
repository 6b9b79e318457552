"""Decompress gzip and zstd logs, recognised by their first bytes.

    with inflated(file, kind, path) as plain: ...

The content is unpacked as a whole, into memory while it is small and a temporary file beyond.
A damaged stream is refused: its checksum comes last, so no byte before it can be trusted. One
that is cut short reads up to the cut. Formats: RFC 1952 (gzip), RFC 8878 (Zstandard).
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Protocol, cast

from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass

MAGIC_LENGTH = 4
GZIP_MAGIC = b"\x1f\x8b\x08"
PACKED_CHUNK_BYTES = 2**18  # of packed bytes
MAX_IN_MEMORY_BYTES = 16 * 2**20
# Limits on what is unpacked. Deflate reaches 1032:1, a log that never changes about 200:1.
MAX_UNCHECKED_BYTES = 256 * 2**20  # any ratio up to here
MAX_UNPACK_RATIO = 300
# A flipped bit near the end can make a whole member look cut short (at most 33 bytes were
# misread so in 12,000 trials): what the last bytes gave is left out then.
UNSURE_BYTES = 256
CUT_NOTE = "the compressed file is cut short: read up to the cut, which no checksum covers"


class Unpacker(Protocol):
    """The common interface of gzip's and zstd's decompressors, for one member or frame."""

    @property
    def eof(self) -> bool:
        """True if the member is complete, its checksum verified."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the member."""
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
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)  # 16: a gzip header

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def kind_of(start: bytes, path: Path) -> Kind | None:
    """Return how a file is packed that starts with these bytes; None where it is not."""
    if start.startswith(GZIP_MAGIC):
        return Kind("gzip", _Gzip, (zlib.error, EOFError))
    # A frame, or one of remarks: any of 16 first bytes, then three.
    if start.startswith(b"\x28\xb5\x2f\xfd") or (
        start[1:MAGIC_LENGTH] == b"\x2a\x4d\x18" and start[0] in range(0x50, 0x60)
    ):
        try:
            if sys.version_info >= (3, 14):
                from compression import zstd  # noqa: PLC0415 - only where a file needs it
            else:
                from backports import zstd  # noqa: PLC0415 - the same
        except ImportError:
            raise UnreadableLog(
                "packed with zstd, which this Python cannot unpack",
                where=str(path),
                hint="pip install backports.zstd",
            ) from None
        return Kind("zstd", zstd.ZstdDecompressor, (zstd.ZstdError, EOFError))
    return None


def bare(path: Path) -> Path:
    """Return a path without the suffix that says how the file is packed."""
    return path.with_suffix("") if path.suffix.lower() in {".gz", ".zst", ".zstd"} else path


class Unpacked:
    """The unpacked pieces of a file; `note` says afterwards what a person should know of it.

    Raises UnreadableLog where it is damaged.
    """

    def __init__(self, file: BinaryIO, kind: Kind, path: Path) -> None:
        """Unpack a file from its start."""
        self.note = ""
        self._file, self._kind, self._where = file, kind, path

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces, each PIECE_BYTES long at most."""
        try:
            yield from self._members()
        except self._kind.errors:
            raise UnreadableLog(
                f"the {self._kind.name} file is damaged: its content cannot be unpacked unharmed",
                where=str(self._where),
                hint="copy it again from where it was made",
            ) from None

    def _members(self) -> Iterator[bytes]:
        """Unpack member after member: a file may be several, one after another."""
        unpacker, data = None, b""
        for chunk, is_last in self._chunks():
            data += chunk
            while data:
                if unpacker is None:
                    if len(data) < MAGIC_LENGTH and not is_last:
                        break
                    if not self._starts(data):
                        return
                    unpacker = self._kind.unpacker()
                pieces = _pieces(unpacker, data)
                if is_last:  # they count where they complete the member
                    pieces = iter(list(pieces))
                    if not unpacker.eof:
                        self.note = CUT_NOTE
                        return
                yield from pieces
                data = unpacker.unused_data if unpacker.eof else b""
                unpacker = None if unpacker.eof else unpacker

    def _chunks(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the packed bytes, and whether they are the file's last, which come apart."""
        remaining = max(self._file.seek(0, 2) - UNSURE_BYTES, 0)
        self._file.seek(0)
        while remaining and (chunk := self._file.read(min(remaining, PACKED_CHUNK_BYTES))):
            remaining -= len(chunk)
            yield chunk, False
        yield self._file.read(UNSURE_BYTES), True

    def _starts(self, data: bytes) -> bool:
        """Return True if a member starts here; zeros pad a file, anything else is not ours."""
        start = data[:MAGIC_LENGTH]
        kind = kind_of(start, self._where)
        if (kind and kind.name == self._kind.name) or GZIP_MAGIC.startswith(start):
            return True
        if data.strip(b"\0"):
            self.note = "bytes after the compressed content are left out"
        return False


def _pieces(unpacker: Unpacker, data: bytes) -> Iterator[bytes]:
    """Unpack all that some bytes give, in pieces."""
    while not unpacker.eof:
        piece = unpacker.decompress(data, 2**20)  # bytes held at a time
        data = b""
        if not piece:
            return
        yield piece


def beginning(file: BinaryIO, kind: Kind, path: Path, count: int) -> bytes:
    """Return the first `count` unpacked bytes. Raises UnreadableLog."""
    content = b""
    for piece in Unpacked(file, kind, path):
        content += piece
        if len(content) >= count:
            break
    return content[:count]


def unpack_note(file: BinaryIO, kind: Kind, path: Path) -> str:
    """Return a note on a file's packing; "" where all is well."""
    unpacked = Unpacked(file, kind, path)
    for _ in unpacked:
        pass
    return unpacked.note


@contextmanager
def inflate(file: BinaryIO, kind: Kind, path: Path) -> Iterator[BinaryIO]:
    """Unpack a file as a whole. Raises UnreadableLog for damage and for a bomb."""
    packed = file.seek(0, 2)
    limit = min(8 * 2**30, max(MAX_UNCHECKED_BYTES, MAX_UNPACK_RATIO * packed))
    size = 0
    with SpooledTemporaryFile(MAX_IN_MEMORY_BYTES) as plain:
        for piece in Unpacked(file, kind, path):
            size += len(piece)
            if size > limit:
                raise UnreadableLog(
                    f"unpacks to more than {limit // 2**20:,} MiB from {packed:,} bytes",
                    where=str(path),
                    hint="unpack it yourself if you trust it, and point at the result",
                )
            plain.write(piece)
        plain.seek(0)
        yield cast("BinaryIO", plain)
