"""Legal hold: a mark on a run or on a checkpoint, below which nothing is removed or thinned.

The mark is a file, `hold.json`, in the folder of the run or of the checkpoint. Its presence counts,
not its content, so that a damaged mark still holds.
"""

import json
import os
import time as clock
from pathlib import Path

from rlvitals.storage import typed
from rlvitals.storage.safe_files import atomic_write, read_regular, sync

HOLD_FILE = "hold.json"


def add(folder: Path, reason: str = "") -> None:
    """Put a folder on hold; the reason of an earlier hold is replaced. Raises OSError."""
    with atomic_write(folder / HOLD_FILE) as file:
        record = {"placed": clock.time(), "reason": reason}
        file.write(json.dumps(record, indent=1).encode() + b"\n")


def release(folder: Path) -> bool:
    """Remove the hold of a folder; return whether there was one. Raises OSError."""
    try:
        (folder / HOLD_FILE).unlink()
    except FileNotFoundError:
        return False
    sync(folder)
    return True


def applies(folder: Path) -> bool:
    """Return whether a run or a checkpoint is on hold, by its own mark or by its run's."""
    return any(os.path.lexists(path / HOLD_FILE) for path in (folder, folder.parent))


def read_reason(folder: Path) -> str:
    """Return the reason of a folder's hold; "" where none was given or none can be read."""
    try:
        record = typed.load(read_regular(folder / HOLD_FILE))
    except (OSError, ValueError):
        return ""
    reason = record.get("reason") if isinstance(record, dict) else None
    return reason if isinstance(reason, str) else ""
