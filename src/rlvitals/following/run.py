"""One followed run: its files, its last diagnosis, and whether it grows."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from rlvitals.diagnosis.duplicates import Identity, identify
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.following.changes import (
    Change,
    Cleared,
    Ended,
    Found,
    Points,
    Quiet,
    Readable,
    Restarted,
    Resumed,
    Unreadable,
    Vanished,
)
from rlvitals.following.duration_text import format_duration
from rlvitals.following.file_tail import FAILURE_SECONDS, FileTail, NewPoints
from rlvitals.following.folder_tree import DATABASE_READERS
from rlvitals.following.judgement_changes import find_changes
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.readers.reader import Reader
from rlvitals.rules.going_on import MAX_LIVE_SILENCE_S
from rlvitals.types import STOPPED_BY_HAND, Lifecycle, Log, Trace

# What a run's logs say, `now` and when they were last seen to grow, both in epoch s, or None.
Judge = Callable[[Run, Sequence[Log], float, float | None], Diagnosis]

MIN_JUDGING_SECONDS = 10.0  # seconds between two judgements of a run, at least
MIN_GROWTH = 0.05  # of its points, that it must have grown by meanwhile


class FollowedRun:
    """A run that grows. `look` reads new points, `judge` yields the changes of its diagnosis."""

    def __init__(self, run: Run, judge: Judge, *, new: bool) -> None:
        """Follow a new run; `new`: it did not exist when following began."""
        self.run = run
        self.name = run.name  # display name, unique among the followed runs
        self.diagnosis: Diagnosis | None = None
        self.identity: Identity | None = None  # of the last diagnosis
        self.is_copy = False  # of a run that another tracker logged
        self.vanished = False
        self._files = {path: FileTail(path, reader) for path, reader in run.files}
        self._judge, self._new = judge, new
        self._found = False
        self._grew: float | None = None  # time of the last growth
        self._gaps: deque[float] = deque(maxlen=32)  # the last ones
        self._since = 0.0  # time of the last known growth, or of the discovery
        self._judged: float | None = None  # when
        self._points = 0  # when it was judged
        self._ask_at = 0.0  # silence, in seconds, after which it is judged again
        self._patience = MAX_LIVE_SILENCE_S
        self._quiet = self._over = self._spent = self._live = False
        self._gone_since: float | None = None  # time at which its files were missing first

    @property
    def points(self) -> int:
        """Number of points read so far."""
        return sum(file.state.columns.points for file in self._files.values())

    @property
    def problem(self) -> str:
        """Why none of its files can be read; empty where one can."""
        problems = [file.problem.problem for file in self._files.values() if file.problem]
        return problems[0] if problems and len(problems) == len(self._files) else ""

    @property
    def is_read(self) -> bool:
        """Whether its files were read at least once."""
        return self._found

    @property
    def changed_at(self) -> float:
        """Time of the last change of its files, in seconds since the epoch."""
        return max((file.changed_at for file in self._files.values()), default=0.0)

    @property
    def moves(self) -> bool:
        """Whether it was observed to grow, or is known to run: else silence means nothing."""
        return self._grew is not None or self._live

    @property
    def judged_at(self) -> float:
        """Time of the last judgement, in seconds since the epoch; 0 if none."""
        return self._judged or 0.0

    def file(self, path: Path, reader: Reader) -> FileTail | None:
        """Return the file at a path for this reader, None if there is none."""
        candidate = self._files.get(path)
        return candidate if candidate is not None and candidate.reader.name == reader.name else None

    def update(self, run: Run, inherited: Mapping[Path, FileTail]) -> None:
        """Update the run and its files; `inherited`: files taken from another run."""
        old_files, self.run, self._files = self._files, run, {}
        dropped = {path: file for path, file in old_files.items() if path not in dict(run.files)}
        for path, reader in run.files:
            tail = old_files.get(path) or inherited.get(path)
            if tail is None or tail.reader.name != reader.name:
                older = (f for f in dropped.values() if f.reader.name == reader.name)
                # A later checkpoint's file replaces the previous one.
                tail = FileTail(path, reader, None if reader.in_parts else next(older, None))
            elif tail.reader.run != reader.run and reader.name not in DATABASE_READERS:
                tail.read_as(reader)  # a database's runs keep their names
            self._files[path] = tail

    def is_over(self, time_s: float) -> bool:
        """Return whether no change is expected: it ended, vanished, or is silent for long."""
        silent = self.silence(time_s)
        if not self.is_read or self.needs_judging(time_s):
            return False
        return (
            self._over
            or self.vanished
            or (self._spent and silent >= MIN_JUDGING_SECONDS)
            or (self._judged is not None and silent >= max(MAX_LIVE_SILENCE_S, self._patience))
        )

    def state(self, time_s: float) -> str:
        """Return the state as a word: "growing", "quiet" or "over"."""
        if self._over or self._spent or self.vanished:
            return "over"
        is_quiet = self._quiet or not self.moves or self.silence(time_s) >= self._patience
        return "quiet" if is_quiet else "growing"

    def look(self, time_s: float) -> Iterator[Change]:
        """Read new points and yield the changes."""
        first, self._found = not self._found, True
        news = [(file, file.look(time_s)) for file in self._files.values()]
        if first:
            self._since = time_s
            if self._new:  # it has just been written, whatever the times in it
                self._grew = time_s
            yield self._discovery(time_s)
        grown = [(file, file_news) for file, file_news in news if file_news is not None]
        if grown:
            yield from self._life(time_s, grown, first=first)
        for file, file_news in grown:
            if file_news.anew and not file_news.same_rows:
                yield Restarted(self.name, time_s, self._relative_path(file))
            yield Points(
                self.name,
                time_s,
                self._relative_path(file),
                file_news.series,
                file_news.anew,
                file_news.first and first,
            )
        yield from self._troubles(time_s)
        if not grown and self._is_quiet(time_s):
            self._quiet = True
            yield Quiet(self.name, time_s, self._step, self.silence(time_s))

    def needs_judging(self, time_s: float) -> bool:
        """Return whether it should be judged now."""
        points = self.points
        has_ended = any(file.state.is_over for file in self._files.values())
        if self._judged is None:
            return points > 0 or has_ended
        grown = points - self._points
        if has_ended and not self._over:
            return True
        if time_s - self._judged < MIN_JUDGING_SECONDS:
            return False
        if grown and (grown >= MIN_GROWTH * self._points or self._at_its_end):
            return True
        return self.silence(time_s) >= self._ask_at

    def judge(self, time_s: float) -> Iterator[Change]:
        """Judge the run and yield the changes."""
        logs = sources.together(self.run, {path: f.log for path, f in self._files.items()})
        diagnosis = self._judge(self.run, logs, time_s, self._grew)
        previous, self.diagnosis = self.diagnosis, diagnosis
        self.identity = identify(self.run.trackers, diagnosis.trace)
        first = self._judged is None
        self._judged, self._points = time_s, self.points
        cycle = diagnosis.trace.lifecycle
        self._live = cycle.live is True
        if self._grew is None and cycle.silence is not None:
            self._since = time_s - cycle.silence
        silent = self.silence(time_s)
        if first and silent >= MAX_LIVE_SILENCE_S:
            self._quiet = True  # its rows are that old
        # It is judged again when the silence has doubled.
        self._ask_at = max(self._patience, 2.0 * silent if silent >= self._patience else 0.0)
        old = previous.trace.lifecycle if previous else None
        if old is not None and cycle.attempts > old.attempts and cycle.seams:
            step = cycle.seams[-1]
            yield Resumed(self.name, time_s, step, f"a new attempt goes on from step {step:,}")
        yield from find_changes((self.name, time_s), previous, diagnosis)
        yield from self._end(time_s, diagnosis.trace, cycle)

    def vanish(self, time_s: float, reason: str) -> Iterator[Change]:
        """Report that the run no longer exists."""
        if not self.vanished:
            self.vanished = True
            yield Vanished(self.name, time_s, reason)

    @property
    def _step(self) -> int:
        if self.diagnosis is not None and self.points == self._points:
            return self.diagnosis.trace.last_step
        steps = [f.state.columns.last for f in self._files.values()]
        return max((step for step in steps if step is not None), default=0)

    @property
    def _at_its_end(self) -> bool:
        """Whether its steps have reached its budget since it was judged."""
        budget = self.diagnosis.trace.budget if self.diagnosis else None
        return budget is not None and not self._spent and self._step >= budget.steps

    def _relative_path(self, file: FileTail) -> str:
        root = self.run.root
        inside = file.path.is_relative_to(root)
        return str(file.path.relative_to(root)) if inside else file.path.name

    def _discovery(self, time_s: float) -> Found:
        columns = [file.state.columns for file in self._files.values()]
        readers = dict.fromkeys(file.reader.name for file in self._files.values())
        metrics, step = sum(map(len, columns)), self._step if self.points else None
        return Found(self.name, time_s, tuple(readers), metrics, self.points, step, self._new)

    def _life(
        self, time_s: float, grown: Sequence[tuple[FileTail, NewPoints]], *, first: bool
    ) -> Iterator[Change]:
        """Yield what growth implies: a resume after silence, or a restart."""
        silent = self.silence(time_s)
        is_restarted = any(news.anew and not news.same_rows for _, news in grown)
        if any(news.same_rows for _, news in grown):
            self._points = 0  # all of them are to be judged
        if not first:
            if is_restarted:
                yield from self._forget(time_s)
            elif self.vanished or self._over or self._quiet:
                yield Resumed(self.name, time_s, self._step, self._explain_resume(silent))
            elif self._grew is not None:
                self._gaps.append(time_s - self._grew)
            self._grew = self._since = time_s
            self._patience = self._usual_silence()
            self._ask_at = self._patience
            self._quiet = self.vanished = False
            self._over = self._over and any(f.state.is_over for f in self._files.values())

    def _explain_resume(self, silent: float) -> str:
        if self.vanished:
            return "its files are back"
        if self._over:
            return "it grows again, though its log says that it had ended"
        return f"it grows again after {format_duration(silent)}"

    def _forget(self, time_s: float) -> Iterator[Change]:
        """Clear the findings of rows that no longer exist."""
        for rule, finding in self.diagnosis.findings if self.diagnosis else ():
            yield Cleared(
                self.name,
                time_s,
                rule,
                finding,
                "the run was started anew: its rows are others",
                self._step,
            )
        self.diagnosis, self._judged, self._points = None, None, 0
        self.identity, self.is_copy = None, False
        self._over = self._spent = False

    def _usual_silence(self) -> float:
        """Return the silence, in seconds, that is unusual for this run."""
        if len(self._gaps) < 5:  # too few to say what is usual
            return MAX_LIVE_SILENCE_S
        return max(
            60.0,  # shorter silences are not reported
            10.0 * median(self._gaps),
            3.0 * max(self._gaps),  # as in the rule `no-new-rows`
        )

    def silence(self, time_s: float) -> float:
        """Return the seconds since it grew or was found, or since the last row of a live run."""
        return max(0.0, time_s - self._since)

    def _is_quiet(self, time_s: float) -> bool:
        is_judged = self._judged is not None and not (self._quiet or self._over or self._spent)
        is_silent = self.moves and self.silence(time_s) >= self._patience
        return is_judged and not self.vanished and is_silent

    def _troubles(self, time_s: float) -> Iterator[Change]:
        """Yield which files became unreadable or readable, and whether all were deleted."""
        files = self._files.values()
        all_gone = (
            all(file.is_missing for file in files) if any(f.problem for f in files) else False
        )
        self._gone_since = (
            (time_s if self._gone_since is None else self._gone_since) if all_gone else None
        )
        if self._gone_since is not None and time_s - self._gone_since >= FAILURE_SECONDS:
            yield from self.vanish(time_s, "its files are no longer there")
        for file in () if all_gone else files:
            if file.is_failing(time_s) and not file.is_reported and file.problem is not None:
                file.is_reported = True
                yield Unreadable(self.name, time_s, self._relative_path(file), file.problem.problem)
            elif file.is_reported and file.problem is None:
                file.is_reported = False
                yield Readable(self.name, time_s, self._relative_path(file))

    def _end(self, time_s: float, trace: Trace, cycle: Lifecycle) -> Iterator[Change]:
        step = trace.last_step
        if cycle.over and not self._over:
            self._over = True
            how, reason = _format_end(cycle, trace.notes)
            yield Ended(self.name, time_s, step, how, reason, cycle.exit_code)
        elif not cycle.over and trace.budget and step >= trace.budget.steps and not self._spent:
            self._spent = True
            reason = f"all {trace.budget.steps:,} steps of its budget are done"
            yield Ended(self.name, time_s, step, "budget spent", reason)


def _format_end(cycle: Lifecycle, notes: Sequence[str]) -> tuple[str, str]:
    if cycle.traceback:
        return "failed", cycle.traceback.strip().rpartition("\n")[2]
    if cycle.exit_code:
        return "failed", f"exit code {cycle.exit_code}"
    if any(note.endswith(STOPPED_BY_HAND) for note in notes):
        return "stopped", "by hand"
    return "finished", ""
