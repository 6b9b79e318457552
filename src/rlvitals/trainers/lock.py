"""Allow one training at a time in a folder: two would resume from each other's checkpoints."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rlvitals

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def check(folder: Path) -> None:
    """Raise UsageError if a training is known to run in a folder."""
    if not (folder / "run.json").exists():
        return
    try:
        life = rlvitals.trace(folder).lifecycle
    except rlvitals.VitalsError:
        return  # what nobody can read, nobody is known to write
    # Not `over`: a run that a person marked as --finished may still be alive.
    if life.alive and not life.ended and life.exit_code is None:
        raise rlvitals.UsageError(
            "another training goes on here",
            where=str(folder),
            hint=f"another --output-dir, or first: rlvitals ask {folder} stop",
        )


@contextmanager
def acquire(folder: Path) -> Iterator[None]:
    """Check the folder, and lock it until this training has started to record.

    Two that are started at the same moment would both find an empty folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        check(folder)
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # for as long as the other needs to begin
        check(folder)
        yield
    finally:
        os.close(descriptor)
