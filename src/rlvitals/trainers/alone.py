"""One training in a folder at a time: two would resume from each other's checkpoints."""

from pathlib import Path

import rlvitals

RECORD = "run.json"  # of a folder that something was recorded in


def check(folder: Path) -> None:
    """Raise UsageError where a training goes on in a folder, as far as can be told."""
    if not (folder / RECORD).exists():
        return
    try:
        life = rlvitals.trace(folder).lifecycle
    except rlvitals.VitalsError:
        return  # what nobody can read, nobody is known to write
    if life.alive and not life.over:
        raise rlvitals.UsageError(
            "another training goes on here",
            where=str(folder),
            hint=f"another --output-dir, or first: rlvitals ask {folder} stop",
        )
