"""Unpack the logs in an archive: `.zip`, `.tar`, and a tar that gzip, bzip2 or xz packed."""

import bz2
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rlvitals.errors import UnreadableLog

MAX_ARCHIVE_FILES = 20_000
MAX_ARCHIVE_BYTES = 2**31  # of the files, unpacked
ARCHIVE_BLOCK_BYTES = 2**20


def unpack(path: Path, folder: Path) -> Path:
    """Unpack an archive's files below `folder`; return the folder they lie in.

    Links, devices and files with a path out of the folder are left out. Raises UnreadableLog for
    an archive that is damaged, encrypted or larger than MAX_ARCHIVE_BYTES.
    """
    target = folder / (path.name.split(".")[0] or "archive")  # of a hidden file, ".zip"
    while target.exists():  # two archives of one name
        target = target.with_name(f"{target.name} again")
    target.mkdir(parents=True)
    size = count = 0
    try:
        for name, file in _members(path):
            inside = PurePosixPath(name)
            count += 1
            if count > MAX_ARCHIVE_FILES:
                raise _error(path, f"an archive of more than {MAX_ARCHIVE_FILES:,} files")
            if file is None or inside.is_absolute() or ".." in inside.parts:
                continue
            destination = target.joinpath(*inside.parts)
            destination.parent.mkdir(parents=True, exist_ok=True)
            with file, destination.open("wb") as copy:
                while block := file.read(ARCHIVE_BLOCK_BYTES):
                    size += len(block)
                    if size > MAX_ARCHIVE_BYTES:
                        raise _error(path, f"an archive of over {MAX_ARCHIVE_BYTES >> 30} GiB")
                    copy.write(block)
    except (
        *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError),
        *(RuntimeError, NotImplementedError, ValueError),
    ) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise _error(path, f"an archive that cannot be unpacked: {error}") from error
    return target


def _members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the name and the content of each member of an archive; None for what is no file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                yield info.filename, None if info.is_dir() else packed.open(info)
        return
    with _open_tar(path) as stream:
        bounded: Any = _Bounded(stream)
        tar = tarfile.open(fileobj=bounded, mode="r:")  # noqa: SIM115 - the stream is closed
        for member in tar:
            yield member.name, tar.extractfile(member) if member.isfile() else None


def _open_tar(path: Path) -> BufferedIOBase:
    """Open a tar file to read what is packed in it."""
    with path.open("rb") as file:
        head = file.read(6)  # the longest of these
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(path)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(path)
    return lzma.LZMAFile(path) if head == b"\xfd7zXZ\x00" else path.open("rb")


class _Bounded:
    """What `tarfile` reads: a member's headers are read at once, its other blocks passed over."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        if size > 4 * ARCHIVE_BLOCK_BYTES:
            raise ValueError("a header of over 4 MiB")
        return self._stream.read(size)

    def seek(self, position: int) -> int:
        if position > MAX_ARCHIVE_BYTES:
            raise ValueError(f"it unpacks to over {MAX_ARCHIVE_BYTES >> 30} GiB")
        return self._stream.seek(position)


def _error(path: Path, problem: str) -> UnreadableLog:
    return UnreadableLog(problem, where=str(path), hint="unpack it, and name its folder")
