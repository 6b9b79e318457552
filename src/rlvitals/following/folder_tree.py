"""The runs at a followed path: searched again when its folders change."""

from collections.abc import Callable, Iterable
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.following.file_tail import COARSE_CLOCK_SECONDS
from rlvitals.readers import READERS, select
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.readers.discovery.walk import Walk
from rlvitals.readers.formats.lines import HEAD_BYTES

MAX_SCAN_SECONDS = (
    30.0  # seconds: so often it is looked through though nothing seems to have changed
)

Signs = dict[Path, tuple[int, int]]  # what may tell of a new file: time in ns, or bytes


class FolderTree:
    """The runs at one path. Changes are detected by folder times and by sizes of unknown files."""

    def __init__(self, path: Path, timer: Callable[[], float]) -> None:
        """Store the path. `timer` returns seconds from any origin."""
        self.path = path
        self.problem: UnreadableLog | None = None  # why there is no run
        self._timer = timer
        self._places: tuple[Path, ...] = ()  # folders, and files that may become a log
        self._signs: Signs = {}
        self._found: float | None = None  # when, in epoch s
        self._not_before = 0.0  # by the timer

    def may_differ(self, time_s: float) -> bool:
        """Return whether there may be other runs than before, at a small, constant cost."""
        start = self._timer()
        if self._found is None:
            return True
        if start < self._not_before:
            return False
        if time_s - self._found >= MAX_SCAN_SECONDS:
            return True
        # A change within one tick of the file system's clock is invisible: scan again.
        newest = max((time for time, _ in self._signs.values()), default=0) / 1e9
        if (
            time_s - self._found >= COARSE_CLOCK_SECONDS
            and newest > self._found - COARSE_CLOCK_SECONDS
        ):
            return True
        signs = _signs(self._places)
        self._not_before = start + 20.0 * (self._timer() - start)  # checks take 5 % of the time
        return signs != self._signs

    def find(self, time_s: float) -> tuple[Run, ...]:
        """Find the current runs; empty if nothing can be read yet."""
        start = self._timer()
        walk = Walk(self.path) if self.path.is_dir() else None
        # A path that is not there yet is looked for itself.
        paths = [self.path] if walk is None else [*walk.folders, *_possible_logs(walk.files)]
        signs = _signs(paths)  # before the files are opened: what comes meanwhile is a change
        try:
            runs = sources.find(self.path, walk)
            self.problem = None
        except UnreadableLog as error:
            runs, self.problem = (), error
        claimed = {file for run in runs for file, reader in run.files if reader.runs is None}
        files = (pair for run in runs for pair in run.files)
        databases = {file: reader for file, reader in files if reader.name in DATABASE_READERS}
        neighbours = [
            p for file, reader in databases.items() if reader.grows for p in reader.grows(file)
        ]
        shared = [*databases, *neighbours]
        unclaimed = [path for path in paths if path in shared or path not in claimed]
        self._places = (*unclaimed, *(file for file in shared if file not in unclaimed))
        self._signs = {path: signs[path] for path in unclaimed if path in signs}
        self._signs |= _signs(file for file in shared if file not in unclaimed)
        self._found = time_s
        self._not_before = start + 50.0 * (self._timer() - start)  # scans take 2 % of the time
        return runs


DATABASE_READERS = frozenset(reader.name for reader in READERS if reader.runs is not None)


def _possible_logs(files: Iterable[Path]) -> Iterable[Path]:
    """Yield the files whose first bytes may yet identify them as logs."""
    for file in files:
        if select.may_be_log(file):
            try:
                if file.stat().st_size < HEAD_BYTES:
                    yield file
            except OSError:
                continue


def _signs(paths: Iterable[Path]) -> Signs:
    signs: Signs = {}
    for path in paths:
        try:
            status = path.stat()
        except (OSError, ValueError):
            continue
        signs[path] = (status.st_mtime_ns, status.st_size)
    return signs
