"""Names of the checkpoint folders of a run.

checkpoint-<step>             a checkpoint; without a manifest it is never resumed from
checkpoint-<step>.corrupt     set aside: its files differ from its manifest
checkpoint-<step>.other       of another run, renamed to make room for this run's checkpoint
checkpoint-<step>.before-fresh    set aside intact: the run was started at step 0 (`--fresh`)
.checkpoint-<step>.<owner>    being written; renamed when it is complete
latest                        a text file: the name of the newest sealed checkpoint
"""

import os
import re
import socket
from pathlib import Path
from uuid import uuid4
from zlib import crc32

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import safe_files

MANIFEST_FILE = "manifest.json"
LATEST_FILE = "latest"
CHECKPOINT_PREFIX = "checkpoint-"
CORRUPT_SUFFIX, OTHER_RUN_SUFFIX, FRESH_START_SUFFIX = "corrupt", "other", "before-fresh"
CHECKPOINT_NAME = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A folder that a process is writing, or was writing when it ended."""

    path: Path
    step: int
    host: str  # of its writer, as `host_id()` returns it
    pid: int


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the path of a step's checkpoint."""
    return folder / f"{CHECKPOINT_PREFIX}{step}"


def step_of(path: Path) -> int:
    """Return the step of a folder with a checkpoint's name."""
    return int(path.name.removeprefix(CHECKPOINT_PREFIX))


def run_of(path: Path) -> Path:
    """Return the run folder of a path: the parent of a checkpoint, else the path itself."""
    return path.parent if CHECKPOINT_NAME.fullmatch(path.name) and path.is_dir() else path


def unfinished_path(folder: Path, step: int) -> Path:
    """Return a new name, next to the final one, for a folder that is being written."""
    return folder / f".{CHECKPOINT_PREFIX}{step}.{host_id()}-{os.getpid()}-{uuid4().hex[:8]}"


def set_aside_path(folder: Path, step: int, suffix: str = CORRUPT_SUFFIX) -> Path:
    """Return a free name for a checkpoint that is set aside."""
    return safe_files.free_name(checkpoint_path(folder, step), suffix)


def find_checkpoints(folder: Path) -> dict[int, Path]:
    """Return the folders named like checkpoints by their step, ascending. Raises OSError."""
    folders = {
        int(m[1]): path
        for path in _list_folders(folder)
        if (m := CHECKPOINT_NAME.fullmatch(path.name))
    }
    return dict(sorted(folders.items()))


def find_misplaced(folder: Path) -> tuple[Path, ...]:
    """Return files named like checkpoints, and a folder named `latest`. Raises OSError."""
    files = [
        path for path in folder.iterdir() if CHECKPOINT_NAME.fullmatch(path.name) and path.is_file()
    ]
    latest = folder / LATEST_FILE
    return (*sorted(files), latest) if latest.is_dir() else tuple(sorted(files))


def find_unfinished(folder: Path) -> tuple[Unfinished, ...]:
    """Return the folders that were being written. Raises OSError."""
    folders = (path for path in _list_folders(folder) if not path.is_symlink())  # we make folders
    matches = (
        (path, re.fullmatch(r"\.checkpoint-(\d+)\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}", path.name))
        for path in folders
    )
    return tuple(Unfinished(path, int(m[1]), m[2], int(m[3])) for path, m in matches if m)


def host_id() -> str:
    """Return eight characters that identify this machine."""
    return f"{crc32(socket.gethostname().encode()):08x}"


def _list_folders(folder: Path) -> tuple[Path, ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(folder / entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return ()
