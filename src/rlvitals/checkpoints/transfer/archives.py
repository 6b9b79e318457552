"""Read and write archives as streams of files: tar (zstd, gzip, plain) and zip, reproducibly."""

import gzip
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedIOBase, RawIOBase
from pathlib import Path
from typing import IO, Protocol, cast

from rlvitals.checkpoints.transfer.copy_files import Piece
from rlvitals.checkpoints.transfer.filesystems import COPY_CHUNK_BYTES
from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import FILE_MODE

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError


class ArchiveRefused(Exception):  # noqa: N818 - what happened to it
    """An archive that is not unpacked; the message states the problem."""


@dataclass(frozen=True, slots=True)
class Member:
    """One regular file of an archive; its content can be read once, in order."""

    name: str
    size: int  # bytes, as declared
    chunks: Callable[[int], Iterator[bytes]]  # once, from 0


class ArchiveWriter(Protocol):
    """Writer of one file after another."""

    def add(self, name: str, piece: Piece, chunks: Iterator[bytes]) -> None:
        """Add one file. Raises OSError."""


class _Tar:
    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(  # noqa: SIM115 - closed by who made it
            fileobj=file, mode="w|", format=tarfile.PAX_FORMAT
        )

    def add(self, name: str, piece: Piece, chunks: Iterator[bytes]) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = piece.size, FILE_MODE
        self._tar.addfile(entry, cast("IO[bytes]", _ChunkReader(chunks)))
        for _ in chunks:  # the last step compares the hash
            pass

    def close(self) -> None:
        self._tar.close()


class _Zip:
    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w")

    def add(self, name: str, piece: Piece, chunks: Iterator[bytes]) -> None:
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the earliest time of the format
        entry.compress_type, entry.create_system = (
            zipfile.ZIP_DEFLATED,
            3,
        )  # 3: Unix, on every machine
        entry.external_attr = (stat.S_IFREG | FILE_MODE) << 16
        with self._zip.open(entry, "w", force_zip64=piece.size > 1 << 30) as file:
            for data in chunks:
                file.write(data)

    def close(self) -> None:
        self._zip.close()


class _ChunkReader(RawIOBase):
    """File interface of an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._buffer = chunks, memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        chunks, remaining = [], size
        while remaining:
            if not self._buffer:
                self._buffer = memoryview(next(self._chunks, b""))
            if not self._buffer:
                break
            chunk = self._buffer[:remaining] if remaining > 0 else self._buffer
            self._buffer = self._buffer[len(chunk) :]
            chunks.append(chunk)
            remaining -= len(chunk)
        return b"".join(chunks)


@contextmanager
def open_archive(name: str, file: IO[bytes]) -> Iterator[ArchiveWriter]:
    """Write an archive of the kind given by its name's suffix. Raises UsageError for others."""
    kind = archive_kind(name)
    if kind == "zip":
        archive = _Zip(file)
        yield archive
        archive.close()
        return
    with _compress(kind, file) as stream:
        tar = _Tar(stream)
        yield tar
        tar.close()


def archive_kind(name: str) -> str:
    """Return the kind of archive given by a name's suffix. Raises UsageError for others."""
    for kind, suffixes in ARCHIVE_SUFFIXES.items():
        if name.lower().endswith(suffixes):
            return kind
    endings = ", ".join(suffix for suffixes in ARCHIVE_SUFFIXES.values() for suffix in suffixes)
    raise UsageError(
        "the archive's name does not say its kind", where=name, hint=f"one of {endings}"
    )


ARCHIVE_SUFFIXES = {
    "zstd": (".tar.zst", ".tzst"),
    "gzip": (".tar.gz", ".tgz"),
    "tar": (".tar",),
    "zip": (".zip",),
}


@contextmanager
def _compress(kind: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if kind == "tar":
        yield file
    elif kind == "gzip":
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    else:
        options: dict[int, int] = {
            zstd.CompressionParameter.compression_level: 3,  # weights hardly shrink, logs do
            zstd.CompressionParameter.checksum_flag: 1,
        }
        with zstd.ZstdFile(file, "wb", options=options) as stream:
            yield cast("IO[bytes]", stream)


@dataclass(slots=True)
class Limit:
    """Maximum number of unpacked bytes; increased once the header has been read."""

    max_bytes: int


def iter_members(path: Path, limit: Limit) -> Generator[Member, None, None]:
    """Yield an archive's files in order. Raises ArchiveRefused, and what unpackers raise."""
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        kind = next(
            (
                magic_kind
                for start, magic_kind in {
                    b"\x28\xb5\x2f\xfd": "zstd",
                    b"\x1f\x8b": "gzip",
                    b"PK": "zip",
                }.items()
                if magic.startswith(start)
            ),
            "tar",
        )
        if not magic:
            raise ArchiveRefused("it is empty")
        if kind == "zip":
            yield from _zip_members(file)
        elif kind == "zstd":
            with zstd.ZstdFile(file) as stream:
                yield from _tar_members(_LimitedReader(stream, limit))
        elif kind == "gzip":
            with gzip.GzipFile(fileobj=file) as stream:
                yield from _tar_members(_LimitedReader(stream, limit))
        else:
            yield from _tar_members(_LimitedReader(file, limit))


class _LimitedReader(RawIOBase):
    """Reader that raises ArchiveRefused after a maximum of unpacked bytes, headers included."""

    def __init__(self, file: "BufferedIOBase | IO[bytes]", limit: Limit) -> None:
        self._file, self._limit, self._count = file, limit, 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(COPY_CHUNK_BYTES if size < 0 else size)
        self._count += len(data)
        if self._count > self._limit.max_bytes:
            raise ArchiveRefused("more comes out of it than it announces")
        return data


def _tar_members(file: _LimitedReader) -> Iterator[Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r|", bufsize=1 << 20) as tar:
        for entry in tar:
            tar.members.clear()  # type: ignore[attr-defined] # else it keeps every header
            if entry.type not in {tarfile.REGTYPE, tarfile.AREGTYPE} or entry.issparse():
                raise ArchiveRefused(f"{entry.name!r} is not a regular file: {_entry_kind(entry)}")
            content = tar.extractfile(entry)
            if content is None:
                raise ArchiveRefused(f"{entry.name!r} has no content")
            yield Member(entry.name, entry.size, partial(_iter_chunks, content))


def _entry_kind(entry: tarfile.TarInfo) -> str:
    if entry.issym() or entry.islnk():
        return "a link"
    if entry.isdir():
        return "a folder"
    return "a device" if entry.isdev() else "of an unusual kind"


def _zip_members(file: IO[bytes]) -> Iterator[Member]:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if entry.is_dir() or (stat.S_IFMT(mode) not in {0, stat.S_IFREG}):
                kind = "a link" if stat.S_ISLNK(mode) else "a folder or a device"
                raise ArchiveRefused(f"{entry.filename!r} is not a regular file: {kind}")
            if entry.flag_bits & 1 or entry.compress_type not in {
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            }:
                raise ArchiveRefused(f"{entry.filename!r} is encrypted or packed in an unusual way")
            if entry.header_offset < 0:
                raise ArchiveRefused("its table of files is damaged")
            name = entry.orig_filename  # the stored name: `filename` ends at a zero byte
            yield Member(name, entry.file_size, partial(_zip_chunks, archive, entry))


def _zip_chunks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, start: int) -> Iterator[bytes]:
    with archive.open(entry) as content:
        yield from _iter_chunks(content, start)


def _iter_chunks(content: IO[bytes], start: int) -> Iterator[bytes]:
    if start:
        raise ValueError("an archive is read in order, once")
    while data := content.read(COPY_CHUNK_BYTES):
        yield data
