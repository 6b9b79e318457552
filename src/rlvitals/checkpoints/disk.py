"""File system operations of checkpoints: sync to disk, replace files, measure space."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rlvitals.storage.safe_files import atomic_write, sync

FREE_SPACE_FACTOR = 1.2  # times the newest checkpoint: what must be free before the next one


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, sorted; links are not followed.

    Raises OSError for a folder that cannot be listed; a missing folder has no files.
    """
    for root, folders, names in os.walk(folder, onerror=_raise_unless_missing):
        folders.sort()
        yield from (Path(root) / name for name in sorted(names))


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def count_bytes(folder: Path) -> int:
    """Return the size of a folder's files in bytes. Raises OSError."""
    return sum(path.lstat().st_size for path in walk_files(folder))


def count_free_bytes(folder: Path) -> int:
    """Return the free space for a folder in bytes. Raises OSError."""
    return shutil.disk_usage(folder).free


def sync_tree(folder: Path) -> None:
    """Sync every file of a folder, and the folders themselves, to disk. Raises OSError."""
    for path in walk_files(folder):
        if not path.is_symlink():
            sync(path)
    sync_folders(folder)


def sync_folders(folder: Path) -> None:
    """Sync the entries of a folder and its subfolders to disk. Raises OSError."""
    for root, _, _ in os.walk(folder, topdown=False):
        sync(Path(root))


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk. Raises OSError."""
    sync(folder)


def replace_text(path: Path, text: str) -> None:
    """Replace a file by one rename, and sync its name to disk. Raises OSError."""
    with atomic_write(path) as file:
        file.write(text.encode())


def disk_is_full(error: BaseException) -> bool:
    """Return whether an error means that the disk is full, whatever raised it.

    Recognised are those of Python (a full disk, a quota, a limit on a file's size), of torch and of
    safetensors, and exceptions raised from them.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            return True
        # What torch and safetensors say, who raise errors of their own around a write that failed.
        messages = (
            "No space left", "Disk quota exceeded", "File too large", "write failed",
            "failed writing",
            # torch's archive is shorter than what it wrote: all that is left of ENOSPC.
            "unexpected pos",
        )  # fmt: skip
        if any(text in str(cause) for text in messages):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
