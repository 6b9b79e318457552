"""Append complete pieces to a file; undo a write that a full disk cut off."""

import errno
import os
from pathlib import Path
from typing import Self

from rlvitals.storage.safe_files import NotAFile, open_append

try:
    import fcntl
except ImportError:  # Windows: only the attempt separates two processes on one folder
    fcntl = None  # type: ignore[assignment]


class AppendFile:
    """A file that is written by one process at a time, at its end."""

    def __init__(self, descriptor: int) -> None:
        """Take over an open file."""
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size

    @classmethod
    def new(cls, path: Path) -> Self:
        """Create a file. Raises FileExistsError where there is one."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o644)
        _lock(descriptor)
        return cls(descriptor)

    @classmethod
    def lines(cls, path: Path) -> Self | None:
        """Continue a file of lines after its last complete one.

        None where another process writes it, and for a link or what else is no regular file.
        """
        try:
            descriptor = open_append(path, os.O_RDWR)
        except NotAFile:
            return None
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        size = os.fstat(descriptor).st_size
        end = _end_of_lines(descriptor, size)
        if end < size:
            os.ftruncate(descriptor, end)
        return cls(descriptor)

    def write(self, data: bytes) -> None:
        """Append bytes, all or none. Raises OSError, also where the file was removed."""
        if not os.fstat(self._descriptor).st_nlink:
            raise OSError(errno.ENOENT, "its file was removed: what is written is lost")
        remaining = memoryview(data)
        try:
            while remaining:
                remaining = remaining[os.write(self._descriptor, remaining) :]
        except OSError:
            os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(data)

    def close(self) -> None:
        """Close it; once more does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def _lock(descriptor: int) -> bool:
    """Keep other processes from appending; False where one does already."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: attempts follow each other all the same
            return True
    return True


def _end_of_lines(descriptor: int, size: int) -> int:
    """Return the offset at which the last complete line ends."""
    end = size
    while end > 0:
        start = max(end - 2**16, 0)
        os.lseek(descriptor, start, os.SEEK_SET)
        newline = os.read(descriptor, end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
