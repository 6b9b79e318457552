"""The data that the checks read: gathered once, without changing anything."""

from collections.abc import Iterator
from pathlib import Path

from rlvitals.checkpoints import inspect_run as looking
from rlvitals.checkpoints import naming, progress
from rlvitals.checkpoints.inspect_run import Inspection
from rlvitals.checkpoints.progress import Progress
from rlvitals.errors import UnreadableLog
from rlvitals.readers.discovery.sources import is_folder
from rlvitals.readers.discovery.walk import Walk
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.run_folder import RUN_FILE, About, block_files, is_run, read_both
from rlvitals.types import Trace

RECENT_WRITE_SECONDS = 120.0  # seconds: what was written this recently is being written


@dataclass(frozen=True, slots=True)
class Context:
    """A path and the data found there."""

    path: Path
    working_folder: Path  # the working folder
    time_s: float  # seconds since the epoch
    walk: Walk | None  # None: there is no folder
    checkpoints: Inspection | None
    progress: Progress | None
    about: About | None  # what a run of ours says of itself
    damage: str  # what is wrong with `run.json` or its copy, as a sentence; empty: nothing
    traces: tuple[Trace, ...]  # the runs that can be read
    problem: str = ""  # why none can be read

    @property
    def folder(self) -> Path | None:
        """The examined folder; None if there is none."""
        return self.path if self.walk is not None else None

    def age(self, path: Path) -> float | None:
        """Return the seconds since a file was written; None if unknown."""
        try:
            return max(0.0, self.time_s - path.stat().st_mtime)
        except OSError:
            return None

    def newest(self) -> tuple[Path, float] | None:
        """Return the most recently written file and its age in seconds."""
        ages = [(file, age) for file in self.files() if (age := self.age(file)) is not None]
        return min(ages, key=lambda pair: pair[1]) if ages else None

    def files(self) -> Iterator[Path]:
        """Yield the files of the folder."""
        yield from self.walk.files if self.walk is not None else ()

    def inside(self, path: Path) -> str:
        """Return a file's path relative to the folder."""
        return (
            path.relative_to(self.path).as_posix() if path.is_relative_to(self.path) else str(path)
        )


def gather_context(
    path: Path,
    traces: tuple[Trace, ...],
    problem: str,
    time_s: float,
    working_folder: Path | None = None,
) -> Context:
    """Gather the data of a path, which need not exist."""
    path = naming.run_of(path)
    folder = path if is_folder(path) else None
    run_info, damage = (None, "") if folder is None else _read_run_info(folder)
    return Context(
        path=path,
        working_folder=working_folder or Path.cwd(),
        time_s=time_s,
        walk=None if folder is None else Walk(folder),
        checkpoints=None if folder is None else looking.try_inspect(folder),
        progress=None if folder is None else progress.read(folder),
        about=run_info,
        damage=damage,
        traces=traces,
        problem=problem,
    )


def _read_run_info(folder: Path) -> tuple[About | None, str]:
    try:
        stored = read_both(folder / RUN_FILE)
    except UnreadableLog as error:
        is_recorded = is_run(folder) or block_files(folder)
        return None, f"{RUN_FILE}: {error.problem}" if is_recorded else ""
    return stored.about, stored.damage
