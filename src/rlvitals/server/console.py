"""Show the end of a run's console output: text files in the run's own folder."""

import os
from pathlib import Path

from rlvitals.errors import UsageError
from rlvitals.readers.discovery.sources import Run
from rlvitals.storage import safe_files

MAX_CONSOLE_BYTES = 64 << 10  # of the end of a file


def names(run: Run) -> tuple[str, ...]:
    """Return the names of the console files of a run, sorted."""
    if not run.root.is_dir():
        return ()
    files = {
        path.name
        for pattern in ("*.log", "*.out", "*.err", "console*.txt", "output*.txt")
        for path in run.root.glob(pattern)
    }
    return tuple(sorted(files)[:20])


def read_end(run: Run, root: Path, name: str) -> str:
    """Return the last lines of a console file. Raises UsageError, also for a file outside root."""
    if name not in names(run):
        raise UsageError(f"the run has no console file {name[:100]!r}", where="name")
    path = run.root / name
    try:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
            raise UsageError("the file lies outside the served folder", where=name)
        with safe_files.open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - MAX_CONSOLE_BYTES, 0))
            text = file.readall().decode(errors="replace")
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", where=name) from error
    # A progress bar rewrites its line: what counts is what it came to.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(lines[1:] if size > MAX_CONSOLE_BYTES else lines)
