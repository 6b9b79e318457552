"""Write what a program prints into the run folder, until a tracker records a run there.

A training that only prints is read from this file as if its output had been saved by `| tee`.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from rlvitals.capture import calls

_folder: Path | None = None  # None: nothing is recorded
_descriptor: int | None = None
_line = ""  # printed so far
_bytes_written = 0


def follow(folder: Path) -> None:
    """Record the lines that this process prints from now on."""
    global _folder  # noqa: PLW0603 - one for the process
    _folder = folder
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the parent process
            calls.follow(stream, "write", _record)


def stop() -> None:
    """Record no more, and remove what was recorded: a tracker begins a run in the folder."""
    global _folder  # noqa: PLW0603 - as above
    if _folder is not None:
        remove(_folder)
    _folder = None


def file_in(folder: Path) -> Path:
    """Return the file of a run folder that gets what is printed."""
    return folder / "console.log"


def remove(folder: Path) -> None:
    """Remove what was printed, where a tracker recorded the run."""
    with suppress(OSError):  # there is none, or the folder cannot be written
        file_in(folder).unlink()


def _record(_: object, text: object) -> None:
    """Append whole lines. A progress bar, which goes back in its line, is left out."""
    global _folder, _descriptor, _line, _bytes_written  # noqa: PLW0603 - as above
    if _folder is None or not isinstance(text, str) or "\r" in text:
        return
    lines, newline, unfinished = text.rpartition("\n")
    if not newline:
        _line += text
        return
    data = f"{_line}{lines}\n".encode(errors="backslashreplace")
    _line, _bytes_written = unfinished, _bytes_written + len(data)
    if not data.strip() and _descriptor is None:
        return
    if (_folder / "run.json").exists() if _descriptor is None else _bytes_written > 64e6:
        _folder = None
        return
    if _descriptor is None:
        _folder.mkdir(parents=True, exist_ok=True)
        # The ranks of a launch and forked processes append to one file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        _descriptor = os.open(file_in(_folder), flags, 0o644)
    os.write(_descriptor, data)
