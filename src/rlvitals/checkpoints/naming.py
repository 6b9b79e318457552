"""What the folders of checkpoints are called.

checkpoint-<step>             sealed by its manifest, or not: then it is never resumed from
checkpoint-<step>.corrupt     set aside: it did not hold what its manifest says
checkpoint-<step>.other       not of this run, which had to put its own there
checkpoint-<step>.before-fresh    set aside, whole: the run was told to start at 0 (`--fresh`)
.checkpoint-<step>.<owner>    being written; gone once it is whole
latest                        a text file: the name of the newest that was sealed
"""

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4
from zlib import crc32

from rlvitals.storage import safe_files

MANIFEST = "manifest.json"
LATEST_FILE = "latest"
CHECKPOINT_PREFIX = "checkpoint-"
CORRUPT_SUFFIX, OTHER_RUN_SUFFIX, FRESH_START_SUFFIX = "corrupt", "other", "before-fresh"
CHECKPOINT_NAME = re.compile(r"checkpoint-(\d+)")
UNFINISHED_NAME = re.compile(r"\.checkpoint-(\d+)\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A folder that some process was writing, or still is."""

    path: Path
    step: int
    host: str  # of its writer, as `host()` tells it
    pid: int


def final(folder: Path, step: int) -> Path:
    """Return where a step's checkpoint lies."""
    return folder / f"{CHECKPOINT_PREFIX}{step}"


def step_of(path: Path) -> int:
    """Return the step of a folder with a checkpoint's name."""
    return int(path.name.removeprefix(CHECKPOINT_PREFIX))


def run_of(path: Path) -> Path:
    """Return the run's folder that a path means: of a checkpoint, the one it lies in."""
    return path.parent if CHECKPOINT_NAME.fullmatch(path.name) and path.is_dir() else path


def unfinished_path(folder: Path, step: int) -> Path:
    """Return a new name for a folder that is being written: beside the final one."""
    return folder / f".{CHECKPOINT_PREFIX}{step}.{host_id()}-{os.getpid()}-{uuid4().hex[:8]}"


def set_aside_path(folder: Path, step: int, suffix: str = CORRUPT_SUFFIX) -> Path:
    """Return a free name for a checkpoint that is refused, or gives its place to another."""
    return safe_files.free_name(final(folder, step), suffix)


def steps(folder: Path) -> dict[int, Path]:
    """Return the folders called like checkpoints by their step, ascending. OSError."""
    folders = {
        int(m[1]): path
        for path in _list_folders(folder)
        if (m := CHECKPOINT_NAME.fullmatch(path.name))
    }
    return dict(sorted(folders.items()))


def find_misplaced(folder: Path) -> tuple[Path, ...]:
    """Return what stands where a checkpoint would, or `latest`, and is not of its kind. OSError."""
    files = [
        path for path in folder.iterdir() if CHECKPOINT_NAME.fullmatch(path.name) and path.is_file()
    ]
    latest = folder / LATEST_FILE
    return (*sorted(files), latest) if latest.is_dir() else tuple(sorted(files))


def find_unfinished(folder: Path) -> tuple[Unfinished, ...]:
    """Return the folders that were being written. OSError."""
    folders = (path for path in _list_folders(folder) if not path.is_symlink())  # we make folders
    matches = ((path, UNFINISHED_NAME.fullmatch(path.name)) for path in folders)
    return tuple(Unfinished(path, int(m[1]), m[2], int(m[3])) for path, m in matches if m)


def host_id() -> str:
    """Tell this machine from others in eight characters."""
    return f"{crc32(socket.gethostname().encode()):08x}"


def _list_folders(folder: Path) -> tuple[Path, ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(folder / entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return ()
