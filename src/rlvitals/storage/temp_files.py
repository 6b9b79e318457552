"""Half-written files that a killed process left in a run's folder: nobody will ever rename them."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO

HALF = re.compile(r"\..+\.[0-9a-f]{12}")  # what `half` calls a file that is being written
MIN_STALE_SECONDS = 2.0  # seconds: one that was just made may not be held yet


def half(path: Path) -> Path:
    """Name a file that will be renamed to `path` once all of it is written."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}")


def lock_temp_file(file: IO[bytes]) -> bool:
    """Hold an open file for as long as it is open, or its process lives; False: another does.

    Where there are no such locks, nobody is known to hold it.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or there are no locks here
        return False
    return True


def remove_stale(folder: Path, time: float) -> None:
    """Remove what was being written to a folder by processes that are gone.

    `now`: by the file system's own clock, seconds since the epoch. What is held stays, and so does
    all of it where nobody can tell.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if HALF.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_stale(Path(entry.path), time - MIN_STALE_SECONDS)


def _remove_if_stale(path: Path, cutoff: float) -> None:
    with suppress(OSError):
        if path.stat().st_mtime >= cutoff:
            return
        with path.open("r+b") as file:  # NFS locks what may be written
            if lock_temp_file(file):
                path.unlink()
