"""What a checkpoint needs of a file system: that bytes are there, and that there is room."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rlvitals.storage.safe_files import beside, sync

FREE_SPACE_FACTOR = 1.2  # times the newest checkpoint: what must be free before the next one
FULL_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What torch and safetensors say, who raise errors of their own around a write that failed.
FULL_DISK_MESSAGES = (
    "No space left", "Disk quota exceeded", "File too large", "write failed", "failed writing",
    "unexpected pos",  # torch's archive is shorter than what it wrote: all that is left of ENOSPC
)  # fmt: skip


def files(folder: Path) -> Iterator[Path]:
    """Go through the files of a folder and its folders, sorted; links are given as they are.

    Raises OSError for a folder that cannot be listed; one that is gone has none.
    """
    for root, folders, names in os.walk(folder, onerror=_raise_unless_missing):
        folders.sort()
        yield from (Path(root) / name for name in sorted(names))


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def count_bytes(folder: Path) -> int:
    """Count the bytes of a folder's files. OSError."""
    return sum(path.lstat().st_size for path in files(folder))


def free(folder: Path) -> int:
    """Count the bytes that may be written to a folder. OSError."""
    return shutil.disk_usage(folder).free


def settle(folder: Path) -> None:
    """Have every file of a folder and the folders themselves written to the disk. OSError."""
    for path in files(folder):
        if not path.is_symlink():
            sync(path)
    sync_folders(folder)


def sync_folders(folder: Path) -> None:
    """Have the lists of names of a folder and of those in it written to the disk. OSError."""
    for root, _, _ in os.walk(folder, topdown=False):
        sync(Path(root))


def sync_folder(folder: Path) -> None:
    """Have a folder's list of names written to the disk. OSError."""
    sync(folder)


def write_whole(path: Path, text: str) -> None:
    """Replace a file by one rename, and have its name on the disk. OSError."""
    with beside(path) as file:
        file.write(text.encode())


def disk_is_full(error: BaseException) -> bool:
    """Tell whether an error means that the disk takes no more, whoever raised it.

    Known are those of Python (a full disk, a quota, a limit on a file's size), of torch and of
    safetensors, and what was raised from them.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in FULL_DISK_ERRNOS:
            return True
        if any(text in str(cause) for text in FULL_DISK_MESSAGES):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
