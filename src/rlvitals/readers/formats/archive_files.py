"""Unpack the logs in an archive: `.zip`, `.tar`, and a tar that gzip, bzip2 or xz packed."""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from rlvitals.errors import UnreadableLog

MAX_ARCHIVE_FILES = 20_000
MAX_ARCHIVE_BYTES = 2**31  # of the files, unpacked
ARCHIVE_BLOCK_BYTES = 2**20
# What a damaged or encrypted archive raises in zipfile, tarfile and the decompressors.
UNPACK_ERRORS = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, OSError),
    *(RuntimeError, NotImplementedError, ValueError),
)


def unpack(path: Path, folder: Path) -> Path:
    """Unpack an archive's files below `folder`; return the folder they lie in.

    Links, devices and files with a path out of the folder are left out. Raises UnreadableLog for
    an archive that is damaged, encrypted or larger than MAX_ARCHIVE_BYTES.
    """
    target = folder / path.name.split(".")[0]
    while target.exists():  # two archives of one name
        target = target.with_name(f"{target.name} again")
    target.mkdir(parents=True)
    size = count = 0
    try:
        for name, file in _files(path):
            inside = PurePosixPath(name)
            count += 1
            if count > MAX_ARCHIVE_FILES:
                raise _error(path, f"an archive of more than {MAX_ARCHIVE_FILES:,} files")
            if inside.is_absolute() or ".." in inside.parts:
                continue
            destination = target.joinpath(*inside.parts)
            destination.parent.mkdir(parents=True, exist_ok=True)
            with file, destination.open("wb") as copy:
                while block := file.read(ARCHIVE_BLOCK_BYTES):
                    size += len(block)
                    if size > MAX_ARCHIVE_BYTES:
                        raise _error(path, f"an archive of over {MAX_ARCHIVE_BYTES >> 30} GiB")
                    copy.write(block)
    except UNPACK_ERRORS as error:
        shutil.rmtree(target, ignore_errors=True)
        raise _error(path, f"an archive that cannot be unpacked: {error}") from error
    return target


def _files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the content of each file of an archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    yield info.filename, packed.open(info)
        return
    with tarfile.open(path) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file


def _error(path: Path, problem: str) -> UnreadableLog:
    return UnreadableLog(problem, where=str(path), hint="unpack it, and name its folder")
