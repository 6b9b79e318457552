"""List the runs below a served folder, and refuse files that lie outside it."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass

if TYPE_CHECKING:
    from rlvitals.readers.discovery.sources import Run

IN_MEMORY = Path(":memory:")  # SQLite's name of a database without a file


@dataclass(frozen=True, slots=True)
class Entry:
    """A run of a served folder."""

    key: str  # unique among the served runs: what addresses of pages contain
    root: Path  # the served folder
    folder: Path
    run: "Run | None"  # None: a run folder of rlvitals, whose files are listed when it is read


def read_run(entry: Entry) -> "Run":
    """Return the run of an entry. Raises UnreadableLog, also for files outside its root."""
    from rlvitals.diagnosis import load  # noqa: PLC0415 - behind the first page

    runs: Sequence[Run] = [entry.run] if entry.run is not None else load.runs(entry.folder)
    native = (run for run in runs if any(reader.name == "rlvitals" for _, reader in run.files))
    run = next(native, runs[0])
    base = os.path.realpath(entry.root)
    paths = [path for path, _ in run.files]
    for path in (*paths, *run.settings, *_links(entry.folder)):
        if not Path(os.path.realpath(path)).is_relative_to(base):
            raise UnreadableLog(
                "a link of this run leads out of the served folder",
                where=f"{entry.key}: {path.name}",
                hint="copy the file, or serve a folder that contains both",
            )
    return run


def find_other_files(entry: Entry | None, run: "Run") -> "Run | None":
    """Return a run as it was found last where it has other files than `run`; else None."""
    if entry is None or entry.run is None or _paths(entry.run) == _paths(run):
        return None
    try:
        current = read_run(entry)
    except UnreadableLog:  # a file that is being replaced: the next look finds it
        return None
    return None if _paths(current) == _paths(run) else current


def _paths(run: "Run") -> tuple[Path, ...]:
    return (*(path for path, _ in run.files), *run.settings)


def trackers(entry: Entry) -> frozenset[str]:
    """Return the names of the readers of a run's files."""
    return frozenset({"rlvitals"}) if entry.run is None else entry.run.trackers


def fingerprint(entry: Entry) -> str:
    """Return the sizes and times of a run's files: they differ where anything changed."""
    states = []
    for path, _ in entry.run.files if entry.run is not None else ():
        try:
            status = path.stat()
        except OSError:
            continue
        states.append(f"{path.name} {status.st_size} {status.st_mtime_ns}")
    return "; ".join(states)


def _links(folder: Path) -> Iterator[Path]:
    """Yield the symbolic links in a run's folder and in those below it."""
    count = 0
    for name, folders, files in os.walk(folder):
        for child in (*folders, *files):
            count += 1
            path = Path(name, child)
            if path.is_symlink():
                yield path
        if count > 20_000:  # files among which links are sought
            return


def index_file(*roots: Path) -> Path:
    """Return the file of the index of folders in the user's cache, or SQLite's name for memory."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    # The index stands in the user's cache folder: the served folder is not written.
    folder = Path(base, "rlvitals/serve")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return IN_MEMORY
    return folder / f"{digest(os.pathsep.join(map(os.path.realpath, roots)))}.index"


def digest(text: str) -> str:
    """Return a short name for a text: other texts have others."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=12).hexdigest()
