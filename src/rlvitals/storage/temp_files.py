"""Name, lock and remove the temporary files of a run folder."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO

TEMP_NAME = re.compile(r"\..+\.[0-9a-f]{12}")  # what `temp_path` calls a file that is being written


def temp_path(path: Path) -> Path:
    """Return the temporary name of a file that is renamed to `path` once it is complete."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}")


def lock_temp_file(file: IO[bytes]) -> bool:
    """Lock an open file while it is open or its process lives. False where another process does.

    False as well without such locks.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or no locks here
        return False
    return True


def remove_stale(folder: Path, time: float) -> None:
    """Remove the temporary files of processes that no longer exist.

    `now`: by the file system's own clock, seconds since the epoch. Locked files stay, and so do
    all where locks are unknown.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if TEMP_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                # A new file may not be locked yet.
                _remove_if_stale(Path(entry.path), time - 2.0)


def _remove_if_stale(path: Path, cutoff: float) -> None:
    with suppress(OSError):
        if path.stat().st_mtime >= cutoff:
            return
        with path.open("r+b") as file:  # NFS locks what may be written
            if lock_temp_file(file):
                path.unlink()
