"""File stores of backups: the common interface, and a local folder."""

import os
import shutil
import time as clock
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rlvitals.checkpoints import disk
from rlvitals.checkpoints.recovery import ABANDONED_SECONDS
from rlvitals.errors import UsageError
from rlvitals.storage.safe_files import atomic_write, inside, make_folders, open_append
from rlvitals.storage.temp_files import TEMP_NAME

COPY_CHUNK_BYTES = 4 << 20  # bytes that are read and written at once


class RemoteFiles(Protocol):
    """Files by name below one root; names are joined by "/"."""

    name: str  # for messages: without secrets

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes; empty if the root does not exist yet."""

    def read(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Read a file from an offset, in chunks."""

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a complete file; if `chunks` raises, the previous content stays."""

    def append(self, name: str, chunks: Iterable[bytes]) -> None:
        """Append to a file. Raises NotImplementedError if unsupported."""

    def remove(self, names: Collection[str]) -> None:
        """Delete files, in this order, and folders that become empty."""

    def begin(self, folder: str, *, replaces: bool) -> str:
        """Return the folder to write a checkpoint into, before it has its final name."""

    def settle(
        self, work_folder: str, folder: str, names: Sequence[str], old: Sequence[str]
    ) -> None:
        """Move a written checkpoint to its final name, replacing `old`. Manifests are last."""

    def drop(self, folder: str, names: Sequence[str]) -> None:
        """Delete a checkpoint, and remains of earlier ones; the last of `names` is the manifest."""

    def room(self) -> int | None:
        """Return the free space in bytes; None if unknown."""

    def tidy(self) -> None:
        """Delete old partial files of killed processes."""


def partial_name(folder: str) -> str:
    """Return the name of the folder of a checkpoint that is being copied."""
    return f".{folder}.partial"


def deleted_name(folder: str) -> str:
    """Return the name of the folder of a checkpoint that is being deleted."""
    return f".{folder}.gone"


class LocalFolder:
    """A local or mounted folder."""

    def __init__(self, path: Path) -> None:
        """Store the path; it need not exist yet."""
        self.path = path
        self.name = str(path)

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes. Raises OSError."""
        if not self.path.exists():
            return {}
        if not self.path.is_dir():
            raise UsageError("this is a file, a folder is needed", where=self.name)
        entries = (
            (path, path.lstat()) for path in disk.walk_files(self.path) if not path.is_symlink()
        )
        return {path.relative_to(self.path).as_posix(): status.st_size for path, status in entries}

    def read(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Read a file from an offset. Raises OSError."""
        with inside(self.path, name).open("rb", buffering=0) as file:
            _drop_cache(file.fileno())
            file.seek(start)
            while data := file.read(COPY_CHUNK_BYTES):
                yield data
            _drop_cache(file.fileno())

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a temporary file and rename it. Raises OSError."""
        path = inside(self.path, str(Path(name).parent)) / Path(name).name
        make_folders(path.parent)
        with atomic_write(path) as file:
            for data in chunks:
                file.write(data)

    def append(self, name: str, chunks: Iterable[bytes]) -> None:
        """Append to a file. Raises OSError."""
        with os.fdopen(open_append(inside(self.path, name)), "ab") as file:
            for data in chunks:
                file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, names: Collection[str]) -> None:
        """Delete files in this order, then folders that are empty. Raises OSError."""
        for name in names:  # of a link the link alone goes
            folder = inside(self.path, str(Path(name).parent))
            (folder / Path(name).name).unlink(missing_ok=True)
        parents = {parent for name in names for parent in Path(name).parents if parent.name}
        for folder in sorted(parents, key=lambda path: -len(path.parts)):
            with suppress(OSError):  # something else lies in it
                (self.path / folder).rmdir()

    def begin(self, folder: str, *, replaces: bool) -> str:
        """Return a hidden folder next to the final one."""
        del replaces
        return partial_name(folder)

    def settle(
        self, work_folder: str, folder: str, names: Sequence[str], old: Sequence[str]
    ) -> None:
        """Rename the folder; hide an existing one of that name first. Raises OSError."""
        del names
        target = self.path / folder
        if target.exists() and not (self.path / work_folder).exists():
            return  # done before the error
        disk.sync_tree(inside(self.path, work_folder))
        if target.exists():
            self._hide(folder)
        (self.path / work_folder).rename(target)
        disk.sync_folder(self.path)
        self.remove([f"{deleted_name(folder)}/{name}" for name in reversed(old)])

    def drop(self, folder: str, names: Sequence[str]) -> None:
        """Rename the folder, then delete its files; files of others stay. Raises OSError."""
        if (self.path / folder).exists():
            self._hide(folder)
        shutil.rmtree(self.path / partial_name(folder), ignore_errors=True)
        self.remove([f"{deleted_name(folder)}/{name}" for name in reversed(names)])
        self._close(deleted_name(folder))
        remainder = self.path / deleted_name(folder)
        if remainder.exists() and not (self.path / folder).exists():
            remainder.rename(self.path / folder)

    def _hide(self, folder: str) -> None:
        hidden = deleted_name(folder)
        self.remove([f"{hidden}/{name}" for name in LocalFolder(self.path / hidden).sizes()])
        self._close(hidden)
        (self.path / folder).rename(self.path / hidden)

    def _close(self, hidden: str) -> None:
        """Delete the empty folders that a killed process left."""
        for root, _, _ in os.walk(inside(self.path, hidden), topdown=False):
            with suppress(OSError):  # something else lies in it
                Path(root).rmdir()

    def room(self) -> int | None:
        """Return the free space in bytes. Raises OSError."""
        ancestor = next(
            path for path in (self.path, *self.path.absolute().parents) if path.exists()
        )
        return disk.count_free_bytes(ancestor)

    def tidy(self) -> None:
        """Delete partial files of killed processes a day after the last write. Raises OSError."""
        time_s = clock.time()
        for name in self.sizes():
            path = self.path / name
            if HALF.fullmatch(path.name) and path.stat().st_mtime < time_s - ABANDONED_SECONDS:
                path.unlink(missing_ok=True)


def _drop_cache(handle: int) -> None:
    """Drop the file from the page cache: later reads come from the disk."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
