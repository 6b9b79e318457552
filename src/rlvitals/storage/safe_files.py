"""Write files safely under predictable names: no links followed, no partial content.

The path of a run is the user's, and may be a link. The names that this package derives below it
(`events.jsonl`, `life/`, `latest`) must be regular files and folders: through a symbolic link, a
second hard link, a pipe or a device planted there, a file elsewhere would be changed.
"""

import errno
import os
import shutil
import stat
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import IO

from rlvitals.storage import temp_files

# Refuse a link, do not wait for the other end of a pipe, keep line ends.
STRICT_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
FILE_MODE = 0o644
Opener = Callable[[str, int, int], int]


class NotAFile(OSError):  # noqa: N818 - the name says what is wrong
    """Under the name of a file lies a link, a folder, a pipe or a device."""

    def __init__(self, path: Path, kind: str) -> None:
        """Name the path and the kind of what lies there."""
        super().__init__(errno.EINVAL, f"{path.name} is a {kind}, a regular file is needed")
        self.filename = str(path)


def open_append(
    path: Path, access: int = os.O_WRONLY, mode: int = FILE_MODE, opener: Opener = os.open
) -> int:
    """Open a regular file to append to; make it where it is missing. Returns a descriptor.

    A file with several hard links is replaced by a copy first: the other links keep their bytes.
    `opener` is as `os.open`. Raises NotAFile, OSError.
    """
    descriptor = _open_regular(path, access | os.O_CREAT | os.O_APPEND, mode, opener)
    if os.fstat(descriptor).st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    with path.open("rb") as source, atomic_write(path) as copy:
        shutil.copyfileobj(source, copy)
    return _open_regular(path, access | os.O_APPEND, mode, opener)


def open_new(path: Path) -> int:
    """Make an empty file, replacing what has this name. Return a descriptor. Raises OSError.

    A link is removed; what it points to is left.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | STRICT_FLAGS, FILE_MODE)


def remove_link(path: Path) -> None:
    """Remove a link, a pipe or a hard link, for a library that then writes the path.

    Raises OSError.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
        path.unlink()


def read_regular(path: Path) -> bytes:
    """Read a regular file, or one that a link points to. Raises NotAFile, OSError."""
    with open_regular(path) as file:
        return file.readall()


def open_regular(path: Path) -> FileIO:
    """Open a regular file, or one that a link points to, to read. Raises NotAFile, OSError."""
    no_wait = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | no_wait)
    try:
        _check(descriptor, path)
    except NotAFile:
        os.close(descriptor)
        raise
    return FileIO(descriptor)


def make_folder(path: Path) -> Path:
    """Make a folder where none is, in a folder that is there. Raises OSError for a link."""
    try:
        path.mkdir()
        sync(path.parent)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            kind = "symbolic link" if path.is_symlink() else "file"
            problem = f"{path.name} is a {kind}, a folder is needed"
            raise NotADirectoryError(errno.ENOTDIR, problem, str(path)) from None
    return path


def inside(root: Path, name: str) -> Path:
    """Return the path of a name below a folder. Raises OSError where a part of it is a link."""
    path = root
    for component in Path(name).parts:
        path /= component
        if path.is_symlink():
            problem = f"{path.relative_to(root)} is a symbolic link"
            raise OSError(errno.ELOOP, problem, str(path))
    return path


def make_folders(path: Path) -> None:
    """Make a folder and those above it, links allowed, and sync their names. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync(folder.parent)


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's list of names, written to the disk. Raises OSError."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) if path.is_dir() else os.O_RDONLY
    try:
        handle = os.open(path, flags)
    except PermissionError:
        return  # Windows opens no folders
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to wait for
            raise
    finally:
        os.close(handle)


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically: readers find the old content or the new. Raises OSError.

    Once the block has ended, the new one is there after a power cut too.
    """
    temp_path = temp_files.temp_path(path)
    try:
        with temp_path.open("xb") as file:
            temp_files.lock_temp_file(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temp_path.replace(path)
        sync(path.parent)
    finally:
        temp_path.unlink(missing_ok=True)


def free_name(path: Path, suffix: str = "corrupt") -> Path:
    """Return an unused name to set a file or folder aside under."""
    target, count = path.with_name(f"{path.name}.{suffix}"), 1
    while os.path.lexists(target):
        target, count = path.with_name(f"{path.name}.{suffix}-{count}"), count + 1
    return target


def checksum(data: bytes) -> bytes:
    """Return a checksum of a small file, as 32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest().encode()


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Let one process at a time rewrite; without locks of the file system, do nothing."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    file = open_append(folder / ".run.lock", mode=0o666)  # shared by users, less the umask
    try:
        # A rewrite takes milliseconds, and a start must not hang on a dead disk.
        deadline = clock.monotonic() + 2.0
        while clock.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                clock.sleep(0.005)
            except OSError:  # no locks here
                break
        yield
    finally:
        os.close(file)


def _open_regular(path: Path, flags: int, mode: int, opener: Opener) -> int:
    try:
        descriptor = opener(str(path), flags | STRICT_FLAGS, mode)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK} and path.is_symlink():  # EMLINK: FreeBSD
            raise NotAFile(path, "symbolic link") from None
        if error.errno == errno.ENXIO:  # nobody reads from it
            raise NotAFile(path, "pipe or device") from None
        raise
    try:
        _check(descriptor, path)
    except NotAFile:
        os.close(descriptor)
        raise
    return descriptor


def _check(descriptor: int, path: Path) -> None:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise NotAFile(path, "folder" if stat.S_ISDIR(mode) else "pipe or device")
