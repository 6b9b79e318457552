"""The owner of checkpoints: a recorded run, or a folder."""

import os
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Protocol

from rlvitals.checkpoints import naming, provenance
from rlvitals.errors import UsageError, harmless
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import make_folders

Tell = Callable[[str], None]


class RecordedRun(Protocol):
    """The attributes used of a run that `rlvitals.start()` returned."""

    folder: Path
    id: str
    attempt: int
    world_size: int

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the run."""

    def note(self, text: str) -> None:
        """Count a message for the user."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The run or folder that the checkpoints belong to."""

    folder: Path
    run_id: str
    attempt: int  # 0: to be counted
    rank: int
    world_size: int
    settings: str  # their hash
    note: Tell | None
    mirror: str = ""  # URL that a recorded run is uploaded to


def find_owner(
    folder_or_run: str | PathLike[str] | RecordedRun,
    settings: Mapping[str, object] | None,
    world_size: int,
) -> Owner:
    """Return the owner for a run or a folder. Raises UsageError if it cannot be used."""
    if isinstance(folder_or_run, str | PathLike):
        settings_hash = provenance.hash_settings(settings) if settings else ""
        result = Owner(Path(folder_or_run), "", 0, 0, world_size, settings_hash, None)
    else:
        settings_hash = provenance.hash_settings(
            folder_or_run.settings if settings is None else settings
        )
        rank = int(getattr(folder_or_run, "rank", 0))
        result = Owner(
            folder_or_run.folder,
            folder_or_run.id,
            folder_or_run.attempt,
            rank,
            folder_or_run.world_size,
            settings_hash,
            folder_or_run.note,
            str(getattr(folder_or_run, "mirror", "")),
        )
    if result.folder.exists() and not result.folder.is_dir():
        raise UsageError("the run's folder is a file", where=str(result.folder))
    try:
        make_folders(result.folder)
        misplaced = naming.find_misplaced(result.folder)
    except OSError as error:
        problem = f"the run's folder cannot be made: {error.strerror}"
        raise UsageError(problem, where=str(result.folder)) from None
    if misplaced:
        kind = "folder" if misplaced[0].is_dir() else "file"
        raise UsageError(
            f"{misplaced[0].name} is a {kind}: its name is taken by checkpoints",
            where=str(misplaced[0]),
            hint="move it away, or give another folder",
        )
    return result


def check_writable(folder: Path) -> None:
    """Check that a checkpoint can be written to the run folder. Raises UsageError."""
    if not os.access(folder, os.W_OK):
        raise UsageError("the run's folder cannot be written to", where=str(folder))


def print_stderr(text: str) -> None:
    """Print a message for the user, without control characters."""
    sys.stderr.write(f"rlvitals: {harmless(text)}\n")
