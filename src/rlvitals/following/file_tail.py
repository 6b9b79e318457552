"""Read one file of a run incrementally, whenever its size, time or inode changes.

Only size, time and inode are compared, so that a network file system works. If a file system keeps
time in whole seconds, a changed file is read once more after they have passed.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.following.append_buffer import find_new_points, is_continuation
from rlvitals.following.file_state import FileState
from rlvitals.following.thin_buffer import ThinBuffer
from rlvitals.readers.discovery.join import concatenate_series
from rlvitals.readers.formats.lines import REPLACED_NOTE, REREAD_NOTE
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Series

COARSE_CLOCK_SECONDS = 2.0  # seconds that the times of the coarsest file systems are apart
FAILURE_SECONDS = 3.0  # seconds that a failure must stand: it may be in the middle of a write

Sign = tuple[int, int, int]  # bytes, time of the last change in ns, inode


@dataclass(frozen=True, slots=True)
class NewPoints:
    """Result of reading a file: its new points."""

    series: Mapping[str, Series]
    anew: bool = False  # the points stand in place of all that were there
    first: bool = False  # the first reading
    same_rows: bool = False  # as before, but with other steps: no run was started again


class FileTail:
    """A file and the log that was read of it so far."""

    max_points = 2_000_000  # of a file that is thinned when it has more: 48 MB

    def __init__(
        self,
        path: Path,
        reader: Reader,
        previous: "FileTail | None" = None,
        *,
        thins: bool = False,
    ) -> None:
        """Start with nothing read. `previous`: an older version of this file.

        `thins`: of a large file only thinned points are kept, and new ones are added to them.
        """
        self.path, self.reader = path, reader
        self.state = FileState(reader)
        self.problem: UnreadableLog | None = None
        self.is_reported = False  # that it cannot be read
        self._failed = 0.0  # since when
        self._tried = 0.0
        self._cursor: Cursor | None = None
        self._signs: tuple[Sign, ...] = ()
        self._changed: float | None = None  # time of a change on a coarse clock
        self._before = previous.state if previous else None
        self._read = False
        self._thins = thins
        self._reads_another_run = False
        self._short: float | None = None  # time since which it is shorter than what was read

    @property
    def log(self) -> Log | UnreadableLog:
        """The log read so far, even if the file is unreadable now; else the error."""
        return self.problem if self.problem is not None and not self._read else self.state.log()

    @property
    def is_missing(self) -> bool:
        """Whether the file no longer exists."""
        return not os.path.lexists(self.path)

    @property
    def changed_at(self) -> float:
        """Time of its last change, in seconds since the epoch; 0 if it does not exist."""
        return max((sign[1] for sign in self._signs or self._sign()), default=0) / 1e9

    def is_failing(self, time_s: float) -> bool:
        """Return whether it has been unreadable for longer than a write may take."""
        return self.problem is not None and time_s - self._failed >= FAILURE_SECONDS

    def release(self) -> None:
        """Let go of what was read: the next look reads a changed file from its start."""
        self.state = FileState(self.reader)
        self._cursor, self._read = None, False

    def read_as(self, reader: Reader) -> None:
        """Read another of the file's runs from now on: new rows tell more of them apart."""
        self._reads_another_run = self._read
        self.reader, self._cursor, self._signs = reader, None, ()

    @property
    def is_thin(self) -> bool:
        """Whether only thinned points are kept."""
        return self.state.is_thin

    def _read_thin(self) -> bool:
        """Begin with a large file's thinned points; return False for one that is read whole."""
        try:
            reading = self.reader.read_thin(self.path) if self.reader.read_thin else None
        except (OSError, UnreadableLog):
            return False
        if reading is None:
            return False
        self.state.columns = ThinBuffer(reading.thinners)
        self.state.add(reading.log)
        self._cursor, self._read = reading.cursor, True
        return True

    def _thin(self) -> None:
        """Thin a file that has become large, unless its steps go back too often."""
        columns = self.state.columns
        if isinstance(columns, ThinBuffer) and columns.has_too_many_seams:
            self._thins, self.state = False, FileState(self.reader)
            log, self._cursor = self.reader.read(self.path, None)
            self.state.add(log)
        elif self._thins and not self.is_thin and columns.points > self.max_points:
            self._thins = self.state.try_thin()

    def look(self, time_s: float) -> NewPoints | None:
        """Read new points; None if there are none."""
        signs = self._sign()
        if signs == self._signs and not self._needs_retry(time_s):
            return None
        self._tried = time_s
        if signs != self._signs:
            coarse = bool(signs) and signs[0][1] % 10**9 == 0
            self._changed = time_s if coarse else None
        moved = bool(signs) and bool(self._signs) and signs[0][2] != self._signs[0][2]
        remainder = self._read_moved_file(self._signs[0][2]) if moved else None
        self._signs = signs
        if self._thins and not self._read and self._read_thin():
            return NewPoints({}, first=True)
        return self._read_on(remainder, time_s)

    def _read_on(self, remainder: Log | None, time_s: float) -> NewPoints | None:
        """Read what follows; `remainder`: the end of the previous file of this name."""
        try:
            log, cursor = self.reader.read(self.path, self._cursor)
        except UnreadableLog as error:
            self._failed = self._failed if self.problem else time_s
            self.problem = error
            return self._add_points(remainder) if remainder else None
        if REPLACED_NOTE in log.notes and self._is_shorter(log, time_s):
            return self._add_points(remainder) if remainder else None
        self.problem, self._cursor, self._short = None, cursor, None
        first, self._read = not self._read, True
        if first and self._before is not None:
            previous, self._before = self._before, None
            return self._replace_log(previous, log)
        if (REREAD_NOTE in log.notes or self._reads_another_run) and not first:
            self._reads_another_run = False
            tails = find_new_points(self.state.series(), log.series)
            return self._renew_log(log, tails, same_rows=True)
        if REPLACED_NOTE in log.notes and not first:
            if remainder is not None:
                self.state.add(remainder)
            news = self._replace_log(self.state, log)
            return (
                _join(remainder, news) if remainder is not None and news and not news.anew else news
            )
        self.state.add(log)
        self._thin()
        return NewPoints(log.series, first=first) if log.series else None

    def _needs_retry(self, time_s: float) -> bool:
        """Return whether to read a file again although it seems unchanged."""
        if self.problem is not None:
            return time_s - self._tried >= 5.0  # read again though nothing about it changed
        if self._changed is not None and time_s - self._changed >= COARSE_CLOCK_SECONDS:
            self._changed = None
            return True
        return False

    def _is_shorter(self, log: Log, time_s: float) -> bool:
        """Return whether a file contains only a part of what was read: it may be half written."""
        if find_new_points(log.series, self.state.series()) is None:
            return False
        self._short = time_s if self._short is None else self._short
        self._signs = ()  # look again
        return time_s - self._short < FAILURE_SECONDS

    def _sign(self) -> tuple[Sign, ...]:
        """Return the signs of the file, and of files that grow next to it."""
        signs = [_open_sign(self.path)]
        find_neighbours = self.reader.grows
        signs += [_sign(path) for path in find_neighbours(self.path)] if find_neighbours else []
        return tuple(signs) if signs[0] != MISSING_SIGN else ()

    def _replace_log(self, previous: FileState, log: Log) -> NewPoints | None:
        """Take a log that was read from its start, and return its new points."""
        old = previous.series()
        tails = find_new_points(old, log.series)
        if tails is None and is_continuation(old, log.series):
            # Rotated, or emptied and written on: the rows before are the same run's.
            previous.add(log)
            self.state = previous
            return NewPoints(log.series)
        return self._renew_log(log, tails)

    def _renew_log(
        self, log: Log, tails: Mapping[str, Series] | None, *, same_rows: bool = False
    ) -> NewPoints | None:
        """Keep a log in place of all before; `tails`: its new points if it begins with those."""
        self.state = FileState(self.reader)
        self.state.add(log)
        self._thin()
        if tails is None:
            return NewPoints(log.series, anew=True, same_rows=same_rows)
        return NewPoints(tails) if tails else None

    def _read_moved_file(self, inode: int) -> Log | None:
        """Read the end of the previous file of this name, which was renamed."""
        try:
            with os.scandir(self.path.parent) as entries:
                for count, entry in enumerate(entries):
                    if count > 1000:  # among which a moved file is sought
                        return None
                    if entry.inode() == inode and entry.name != self.path.name:
                        log, _ = self.reader.read(Path(entry.path), self._cursor)
                        is_other = {REPLACED_NOTE, REREAD_NOTE} & {*log.notes}
                        return log if log.series and not is_other else None
        except (OSError, UnreadableLog):
            return None
        return None

    def _add_points(self, log: Log) -> NewPoints:
        self.state.add(log)
        return NewPoints(log.series)


MISSING_SIGN: Sign = (-1, 0, 0)


def _open_sign(path: Path) -> Sign:
    """Return the sign of a file after opening it: network file systems cache attributes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would hang
            return MISSING_SIGN
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return _sign(path)
    try:
        return _sign_of(os.fstat(handle))
    finally:
        os.close(handle)


def _sign(path: Path) -> Sign:
    try:
        return _sign_of(path.stat())
    except (OSError, ValueError):
        return MISSING_SIGN


def _sign_of(status: os.stat_result) -> Sign:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _join(remainder: Log, news: NewPoints) -> NewPoints:
    """Return the points of a renamed file followed by those of its successor."""
    keys = dict.fromkeys((*remainder.series, *news.series))
    segments = {
        key: [log[key] for log in (remainder.series, news.series) if key in log] for key in keys
    }
    return NewPoints({key: concatenate_series(series) for key, series in segments.items()})
