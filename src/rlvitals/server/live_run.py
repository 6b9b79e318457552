"""Follow one run while somebody looks at it: read new rows, judge, publish the changes.

Of a large run thinned points are kept, and new rows are added to them. Where a run could not be
thinned, its points are let go after it has ended, while no page asks for them.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlvitals.checkpoints import inspect_run, progress
from rlvitals.diagnosis import batch, load, marks
from rlvitals.diagnosis.engine import Diagnosis, thin_series, thin_trace
from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.training_summary import summary
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.following.append_buffer import find_new_points
from rlvitals.following.file_tail import FileTail, NewPoints
from rlvitals.following.run import MIN_GROWTH, MIN_JUDGING_SECONDS
from rlvitals.metrics import canonicalize
from rlvitals.metrics.steps import change, resume
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.series import to_log
from rlvitals.server import console, run_page
from rlvitals.server.channel import Channel
from rlvitals.server.run_page import Extras, RunPage
from rlvitals.settings import Settings
from rlvitals.storage import thin_read
from rlvitals.tracking import clock, liveness
from rlvitals.types import Log, Measured, Outline, Series, Trace
from rlvitals.views import phrases
from rlvitals.views.charts.chart import pack_steps, pack_values
from rlvitals.views.report.page import Subject


class LiveRun:
    """A run with its current trace and its last diagnosis. Any thread may call any method."""

    def __init__(self, key: str, run: Run, settings: Settings, time_s: float) -> None:
        """Read and judge a run. Raises UnreadableLog."""
        self.key, self.run = key, run
        self.channel = Channel()
        self.is_deleted = False
        self.judgements = 0
        self.settings = settings
        self._given = load.run_overrides(settings)
        self._lock = threading.RLock()
        self._files: dict[Path, FileTail]
        self._grew: float | None = None  # seconds since the epoch
        self.rollouts: Rollouts | None = None
        self._read_rollouts()
        self._trace: Trace | None = None  # None while the points are let go
        self._is_behind = False  # rows were read that are not in the trace yet
        self._direct: dict[str, tuple[Path, str, float]] = {}  # as `_find_direct` has them
        self._places: thin_read.Places
        self._others: Mapping[str, Series] = {}  # of keys that no table knows
        self._used_at = 0.0  # monotonic time at which the points were last asked for
        self._read_files(time_s)
        self._judged_at, self._judged_points = 0.0, -1
        self.diagnosis: Diagnosis
        self.diagnosis_has_points = False
        self.page: RunPage
        self.judge(time_s)

    @property
    def trace(self) -> Trace:
        """The rows that were read; points that were let go are read again. Raises UnreadableLog."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._is_behind:
                self._trace = self._read_trace(clock.now())
            return self._trace or self._read_files(clock.now())

    def series(self) -> Mapping[str, Series]:
        """Return all metrics by canonical name, or by key where no table knows them."""
        with self._lock:
            trace = self.trace
            return {**self._others, **trace.series}

    def series_near(self, names: Iterable[str], steps: tuple[int, int]) -> Mapping[str, Series]:
        """Return metrics as `series` does; of thinned ones the points at steps, both included.

        Those are read from the files; more than `thin_read.MAX_WHOLE_POINTS` are thinned.
        """
        series = self.series()
        logged = ((name, series[name]) for name in names if name in series)
        return {name: self._read_near(name, each, steps) for name, each in logged}

    def _read_near(self, name: str, series: Series, steps: tuple[int, int]) -> Series:
        if series.outline is None:
            return series
        measured = self.trace.measured.get(name, Measured("", name, ""))
        for path, file in self._files.items():
            raw = file.log.series.get(measured.key) if isinstance(file.log, Log) else None
            if raw is None or not _has_steps(raw, series.outline):
                continue
            try:
                points = thin_read.read_range(path.parent, measured.key, steps, self._places)
            except (OSError, UnreadableLog):  # deleted meanwhile
                return series
            if len(points):
                return change.scale(resume.straighten(points).series, measured.scale)
        return series

    def whole_trace(self) -> Trace:
        """Return the trace with all points; those of a thinned run are read. UnreadableLog."""
        trace = self.trace
        if all(series.outline is None for series in trace.series.values()):
            return trace
        return load.load(self.run, self._given)

    def full_diagnosis(self) -> Diagnosis:
        """Return the last diagnosis with its points; the run is judged again without them."""
        if not self.diagnosis_has_points:
            self.judge(clock.now())
        return self.diagnosis

    def release(self, max_points: int = 2_000_000, min_seconds: float = 10.0) -> None:
        """Let the points of an ended run go where there are more than `max_points` (24 bytes each).

        They stay for `min_seconds` after the last request for them.
        """
        with self._lock:
            trace = self._trace
            is_used = time.monotonic() - self._used_at < min_seconds
            is_large = trace is not None and sum(map(len, trace.series.values())) > max_points
            if is_used or not is_large or not self.diagnosis.trace.lifecycle.over:
                return
            self._trace, self._others = None, {}
            for file in self._files.values():
                file.release()
            if self.diagnosis_has_points:
                self.page = self.page.without_points()
                self.diagnosis = replace(self.diagnosis, trace=self.page.judged)
                self.diagnosis_has_points = False

    def replace_files(self, run: Run, time_s: float) -> None:
        """Read a run whose folder has other files than before, as when its process starts anew."""
        with self._lock:
            self.run = run
            self._judged_points = -1
            with contextlib.suppress(UnreadableLog):  # a later look may be able to
                self._read_files(time_s)
        self.channel.publish("reload", {})

    def look(self, time_s: float) -> None:
        """Read the rows written since the last look, and publish them. Time: epoch seconds."""
        with self._lock:
            looks = {path: file.look(time_s) for path, file in self._files.items()}
            news = {path: new for path, new in looks.items() if new is not None}
            if not news:
                self._notice_deletion()
                self._notice_end()
                return
            self._grew = time_s
            self.is_deleted = False
            try:
                points = self._add(news, time_s)
            except UnreadableLog:
                return
        if points is None:  # other rows than before: the run was started anew
            self._judged_points = -1
            self.channel.publish("reload", {})
        elif points:
            self.channel.publish("points", self._pack(points))

    def _add(self, news: Mapping[Path, NewPoints], time_s: float) -> dict[str, Series] | None:
        """Take new rows; return the new points by metric, None where the rows are other ones."""
        old, is_anew = self._trace, any(new.anew for new in news.values())
        is_thin = all(self._files[path].is_thin for path in news)
        if old is not None and is_thin and not is_anew:
            self._is_behind = True  # its columns take a while: a page or a judgement asks for them
            return self._name_points(news)
        self._trace = self._read_files(time_s) if old is None else self._read_trace(time_s)
        if old is None or is_anew:
            return None
        thin = {name for name, series in self._trace.series.items() if series.outline is not None}
        old_series = {name: series for name, series in old.series.items() if name not in thin}
        series = {name: each for name, each in self._trace.series.items() if name not in thin}
        points = find_new_points(old_series, series)
        return None if points is None else {**self._name_points(news), **points}

    def _name_points(self, news: Mapping[Path, NewPoints]) -> dict[str, Series]:
        """Return the new points of thinned files by canonical name."""
        points = {}
        for name, (path, key, scale) in self._direct.items():
            if path in news and key in news[path].series:
                points[name] = change.scale(news[path].series[key], scale)
        return points

    def needs_judging(self, time_s: float) -> bool:
        """Return whether the run has grown, or ended, since it was judged."""
        trace = self._trace
        if trace is None:
            return False
        points = self._count_points()
        if points == self._judged_points or time_s - self._judged_at < MIN_JUDGING_SECONDS:
            return self._judged_points < 0
        has_closed = any(file.state.is_over for file in self._files.values())
        has_ended = has_closed or trace.lifecycle.over
        grew = points - self._judged_points >= MIN_GROWTH * self._judged_points
        return grew or (has_ended and not self.diagnosis.trace.lifecycle.over)

    def _count_points(self) -> int:
        return sum(file.state.columns.points for file in self._files.values())

    def judge(self, time_s: float) -> None:
        """Judge the current rows, and publish that the page's texts are other ones."""
        self._read_rollouts()
        trace, name = self.trace, self.run.name
        diagnosis = batch.judge_trace((self.run, self.settings), trace)
        progress_file = progress.read(self.run.root)
        trained = None if progress_file is None else progress_file.trained
        inspection = inspect_run.try_inspect(self.run.root)
        # Figures compute curves of their own: of as many points as the rules looked at.
        figures = replace(diagnosis, trace=thin_trace(trace))
        unmapped = {key: thin_series(each) for key, each in self._others.items()}
        subject = Subject(
            summary=replace(summary(name, diagnosis, trained), found=figures),
            standing=standing(name, diagnosis, progress_file, inspection, time_s),
            facts=load.facts(self.run),
            events=load.read_events(self.run),
            others=unmapped,
        )
        self.judgements += 1
        self.page = run_page.build(subject, self.judgements, self._extras(diagnosis))
        self.diagnosis = diagnosis
        self.diagnosis_has_points = True
        self._judged_at, self._judged_points = time_s, self._count_points()
        self._used_at = time.monotonic()
        self.channel.publish("judged", {"verdict": diagnosis.verdict.word.value})

    def _read_files(self, time_s: float) -> Trace:
        """Read the files from their beginning."""
        self._places = thin_read.Places()
        readers = Counter(reader.name for _, reader in self.run.files)
        self._files = {  # files of one reader may be parts of one log, which are put together
            path: FileTail(path, reader, thins=readers[reader.name] == 1)
            for path, reader in self.run.files
        }
        for file in self._files.values():
            file.look(time_s)
        self._trace = self._read_trace(time_s)
        return self._trace

    def _read_trace(self, time_s: float) -> Trace:
        logs = sources.together(self.run, {path: file.log for path, file in self._files.items()})
        if self.rollouts is not None:
            logs = (*logs, self._rollout_log)
        trace = load.build_trace(self.run, logs, self._given, time_s, self._grew)
        unmapped = canonicalize.unmapped_columns(logs, self._given) if trace.unmapped else {}
        self._others = unmapped
        self._is_behind, self._direct = False, dict(self._find_direct(trace))
        return trace

    def _find_direct(self, trace: Trace) -> Iterator[tuple[str, tuple[Path, str, float]]]:
        """Yield metrics whose points are those of a thinned file: its path, the key, the scale."""
        for path, file in self._files.items():
            columns = file.state.series() if file.is_thin else {}
            for name, measured in trace.measured.items():
                raw, series = columns.get(measured.key), trace.series.get(name)
                if raw is None or series is None or not len(series) or not len(raw):
                    continue
                last = measured.scale * raw.values[-1]
                is_same = np.isclose(series.values[-1], last, equal_nan=True)
                if is_same and series.steps[-1] == raw.steps[-1]:
                    yield name, (path, measured.key, measured.scale)

    def _read_rollouts(self) -> None:
        """Read the rollouts again where their files changed."""
        try:
            rollouts = load.rollouts(self.run)
        except UnreadableLog:
            rollouts = None
        if rollouts is not None:
            self._rollout_log = to_log(rollouts)
        self.rollouts = rollouts

    def _extras(self, diagnosis: Diagnosis) -> Extras:
        try:
            mark = marks.read(self.run)
        except UsageError:
            mark = None
        files = console.names(self.run)
        return Extras(phrases.headline(diagnosis), mark, self.rollouts, files)

    def _notice_deletion(self) -> None:
        if not self.is_deleted and all(file.is_missing for file in self._files.values()):
            self.is_deleted = True
            self.channel.publish("deleted", {})

    def _notice_end(self) -> None:
        """Have the run judged where its process has ended since, without another row."""
        if self._trace is None or not self.diagnosis.trace.lifecycle.alive:
            return
        logs = (file.log for file in self._files.values())
        processes = [each for log in logs if isinstance(log, Log) for each in log.processes]
        if any(liveness.is_visible(each) and not liveness.is_running(each) for each in processes):
            self._is_behind, self._judged_points = True, -1

    def _pack(self, points: Mapping[str, Series]) -> dict[str, object]:
        trace = self._trace or self.trace
        lasts = (int(series.steps[-1]) for series in points.values())
        return {
            "first": trace.first_step,
            "last": max(trace.last_step, *lasts),
            "points": {
                name: {"steps": pack_steps(series.steps), "values": pack_values(series.values)}
                for name, series in points.items()
            },
        }


def _has_steps(logged: Series, outline: Outline) -> bool:
    """Return whether an outline is at the steps of a logged thinned series: none was translated."""
    points = logged.outline
    return points is not None and bool(np.isin(outline.points.steps, points.points.steps).all())
