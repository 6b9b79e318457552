"""Keep the folder of a run open: follow it when renamed, recreate it when removed."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from rlvitals.storage import frames, temp_files
from rlvitals.storage.run_folder import BLOCKS_FOLDER, RUN_FILE
from rlvitals.storage.safe_files import FILE_MODE


class OpenFolder:
    """Opens files of a run folder by the folder's descriptor: a rename of it changes nothing."""

    def __init__(self, path: Path) -> None:
        """Open a folder. OSError."""
        self.path = path.absolute()  # the program may change its working folder
        self._fd: int | None = _descriptor(path)
        self._run_file = b""
        self._run_file_age: tuple[int, int] | None = None
        self.remember()

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        """Open the file of a path's last name in this folder, as `os.open` does. OSError."""
        return self._open_file(Path(path).name, flags, mode)

    def close(self) -> None:
        """Let go of the folder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def remember(self) -> None:
        """Read `run.json` where it changed, to write it again should it be removed."""
        with suppress(OSError):
            status = os.stat(self._name(RUN_FILE), dir_fd=self._fd)
            if (age := (status.st_ino, status.st_mtime_ns)) != self._run_file_age:
                file = self._open_file(RUN_FILE, os.O_RDONLY)
                try:
                    self._run_file, self._run_file_age = _content(file), age
                finally:
                    os.close(file)

    def has(self, name: str, fd: int) -> bool:
        """Return whether a name in this folder still refers to an open file."""
        try:
            path_status, file_status = os.stat(self._name(name), dir_fd=self._fd), os.fstat(fd)
        except FileNotFoundError:
            return False
        # Some network file systems number files anew: one of our size is taken for ours.
        is_same = (path_status.st_dev, path_status.st_ino) == (
            file_status.st_dev,
            file_status.st_ino,
        )
        return is_same or (
            bool(file_status.st_nlink) and path_status.st_size == file_status.st_size
        )

    def restore(self) -> None:
        """Recreate the folder and `run.json` where they were removed.

        Raises OSError, also where another run has taken the folder's place.
        """
        try:
            self._make_blocks()
        except FileNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True)
            self.close()
            self._fd = _descriptor(self.path)
            self._make_blocks()
        try:
            file = self._open_file(RUN_FILE, os.O_RDONLY)
        except FileNotFoundError:
            self._write(RUN_FILE, self._run_file)
            return
        try:
            if _run_id(_content(file)) != _run_id(self._run_file):
                raise OSError(errno.ESTALE, "another run lies in the folder's place")
        finally:
            os.close(file)

    def copy(self, fd: int, name: str) -> int:
        """Write an open file again under its name; return the copy, open to append. OSError.

        A file of that name is replaced where it begins as the open one does, else that is an
        OSError: it is another process's.
        """
        with suppress(FileNotFoundError):
            existing = self._open_file(name, os.O_RDONLY)
            try:
                if os.pread(existing, frames.FRAME_HEADER_BYTES, 0) != os.pread(
                    fd, frames.FRAME_HEADER_BYTES, 0
                ):
                    raise OSError(errno.ESTALE, f"another process writes {name}")
            finally:
                os.close(existing)
        temp_name = temp_files.temp_path(Path(Path(name).name)).name
        copy = self._open_file(temp_name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        try:
            append_rest(fd, copy)
            os.replace(
                self._name(temp_name), self._name(name), src_dir_fd=self._fd, dst_dir_fd=self._fd
            )
        except BaseException:
            os.close(copy)
            with suppress(OSError):
                os.unlink(self._name(temp_name), dir_fd=self._fd)
            raise
        return copy

    def _make_blocks(self) -> None:
        with suppress(FileExistsError):
            os.mkdir(self._name(BLOCKS_FOLDER), dir_fd=self._fd)

    def _write(self, name: str, data: bytes) -> None:
        with suppress(FileExistsError):  # another rank of the run was faster
            file = self._open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                while data:
                    data = data[os.write(file, data) :]
            finally:
                os.close(file)

    def _open_file(self, name: str, flags: int, mode: int = FILE_MODE) -> int:
        return os.open(self._name(name), flags | getattr(os, "O_BINARY", 0), mode, dir_fd=self._fd)

    def _name(self, name: str) -> str:
        return name if self._fd is not None else str(self.path / name)


def append_rest(fd: int, copy: int) -> None:
    """Append to a copy what it lacks of an open file. OSError."""
    while data := os.pread(fd, 1 << 20, os.fstat(copy).st_size):  # 1 MiB at a time
        os.write(copy, data)


def _descriptor(path: Path) -> int | None:
    has_dir_fd = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")  # not on Windows
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY) if has_dir_fd else None


def _content(file: int) -> bytes:
    with open(os.dup(file), "rb") as copy:  # noqa: PTH123 - a descriptor, no path
        return copy.read()


def _run_id(data: bytes) -> object:
    try:
        return json.loads(data).get("id")
    except (ValueError, AttributeError):
        return None
