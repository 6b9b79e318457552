"""Report a full disk as one error, and keep logging from failing because of it."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

import rlvitals

DISK_FULL_HINT = (
    "free some space, and run the same command again: it goes on from the newest checkpoint"
)


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Raise VitalsError, naming the folder, for whatever Python, torch or safetensors raise."""
    try:
        yield
    except rlvitals.VitalsError:
        raise  # it already has its place and hint
    except Exception as raised:
        if not rlvitals.lab.disk_is_full(raised):
            raise
        raise error(folder) from raised


def error(folder: Path, problem: str = "the training cannot go on") -> rlvitals.VitalsError:
    """Return the VitalsError for a full disk."""
    return rlvitals.VitalsError(
        f"the disk is full: {problem}", where=str(folder), hint=DISK_FULL_HINT
    )


def is_saved(checkpoints: rlvitals.Checkpoints, step: int, *, last: bool) -> bool:
    """Return True if a step's checkpoint was saved; `Checkpoints` has reported it if not.

    The last one of a training is what it was for: without it VitalsError is raised.
    """
    try:
        stands = any(checkpoint.step == step for checkpoint in checkpoints.all())
    except rlvitals.CannotResume:  # an older one cannot be read: no reason to end a training
        return True
    if last and not stands:
        raise error(checkpoints.folder, "what was trained last is not saved")
    return stands


class LogFile(logging.FileHandler):
    """A file of log lines; what a full disk does not take is left out, without a word."""

    def _open(self) -> TextIOWrapper:
        """Open the file to append; a link or a pipe in its place is an OSError."""
        strict = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | strict
        file = os.fdopen(os.open(self.baseFilename, flags, 0o666), "ab")
        return TextIOWrapper(file, encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """Print a traceback, as logging does, for anything but a full disk."""
        raised = sys.exception()
        if raised is None or not rlvitals.lab.disk_is_full(raised):
            super().handleError(record)

    def close(self) -> None:
        """Close the file; buffered lines may not fit on the disk."""
        with suppress(OSError):
            super().close()
