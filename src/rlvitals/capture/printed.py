"""Write what a program prints into the run folder, until a tracker records a run there.

A training that only prints is read from this file as if its output had been saved by `| tee`, less
the secrets in it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from rlvitals.capture import calls

_folder: Path | None = None  # None: nothing is recorded
_descriptor: int | None = None
_line = ""  # printed so far
_bytes_left = 0


def follow(folder: Path, max_bytes: int = 64_000_000) -> None:
    """Record the lines that this process prints from now on, up to `max_bytes`."""
    global _folder, _bytes_left
    _folder, _bytes_left = folder, max_bytes
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
    """Append whole lines without secrets. A progress bar, which goes back in its line, is left out.

    Raises OSError.
    """
    global _folder, _descriptor, _line, _bytes_left  # noqa: PLW0603 - as above
    if _folder is None or not isinstance(text, str) or "\r" in text:
        return
    lines, newline, unfinished = text.rpartition("\n")
    if not newline:
        _line += text
        return
    from rlvitals.storage import redact  # noqa: PLC0415 - a process that prints nothing needs none

    text, _line = redact.text(f"{_line}{lines}\n"), unfinished
    if not text.strip() and _descriptor is None:
        return
    if _descriptor is None and (_folder / "run.json").exists():
        _folder = None
        return
    file, data = file_in(_folder), text.encode(errors="backslashreplace")
    _bytes_left -= len(data)
    if _bytes_left < 0:
        data, _folder = b"rlvitals: the output beyond this line is not recorded\n", None
    if _descriptor is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # The ranks of a launch and forked processes append to one file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        _descriptor = os.open(file, flags, 0o644)
    os.write(_descriptor, data)
