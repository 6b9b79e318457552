"""Find the run folders below a path."""

import os
from collections.abc import Iterator
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.storage import tail_index
from rlvitals.storage.missing_path import missing_path
from rlvitals.storage.run_folder import BLOCKS_FOLDER, RUN_COPY, RUN_FILE


def iter_run_folders(root: Path) -> Iterator[Path]:
    """Yield the run folders under a root, itself among them, in order of their names."""
    base = len(root.parts)
    for name, inner, files in os.walk(root):
        folder = Path(name)
        if any(
            entry in files and tail_index.is_ours(folder / entry) for entry in (RUN_FILE, RUN_COPY)
        ):
            inner.clear()
            yield folder
            continue
        deep = len(folder.parts) - base >= 12
        inner[:] = [] if deep else sorted(entry for entry in inner if not entry.startswith("."))


def run_folders(root: Path) -> tuple[Path, ...]:
    """Return the run folders at a path. Raises UnreadableLog where there is none."""
    if (root / BLOCKS_FOLDER).is_dir():  # whatever became of its run.json
        return (root,)
    folders = tuple(iter_run_folders(root))
    if not folders and not os.path.lexists(root):
        raise missing_path(root)
    if not folders:
        hint = "rlvitals diagnose PATH reads logs of all tools; a run folder holds run.json"
        raise UnreadableLog("no run folder of rlvitals here", where=str(root), hint=hint)
    return folders
