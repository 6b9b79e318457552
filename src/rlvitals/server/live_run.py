"""Follow one run while somebody looks at it: read new rows, judge, publish the changes.

The points of a large run that has ended are let go while no page asks for them.
"""

import threading
import time
from collections.abc import Iterable, Mapping
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
from rlvitals.following.file_tail import FileTail
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
from rlvitals.storage import tail_index, thin_read
from rlvitals.tracking import clock
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
                points = thin_read.read_range(path.parent, measured.key, steps)
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
            is_used = time.monotonic() - self._used_at < min_seconds
            is_large = self._judged_points > max_points
            if is_used or not is_large or not self.diagnosis.trace.lifecycle.over:
                return
            self._trace, self._others = None, {}
            for file in self._files.values():
                file.release()
            if self.diagnosis_has_points:
                self.page = self.page.without_points()
                self.diagnosis = replace(self.diagnosis, trace=self.page.judged)
                self.diagnosis_has_points = False

    def look(self, time_s: float) -> None:
        """Read the rows written since the last look, and publish them. Time: epoch seconds."""
        with self._lock:
            news = [file.look(time_s) for file in self._files.values()]
            if not any(file_news is not None for file_news in news):
                self._notice_deletion()
                return
            self._grew = time_s
            self.is_deleted = False
            old = self._trace
            try:
                trace = self._read_files(time_s) if old is None else self._read_trace(time_s)
            except UnreadableLog:
                return
            self._trace = trace
            points = None if old is None else find_new_points(old.series, trace.series)
        if points is None:  # other rows than before: the run was started anew
            self._judged_points = -1
            self.channel.publish("reload", {})
        elif points:
            self.channel.publish("points", self._pack(points))

    def needs_judging(self, time_s: float) -> bool:
        """Return whether the run has grown, or ended, since it was judged."""
        trace = self._trace
        if trace is None:
            return False
        points = _count_points(trace)
        if points == self._judged_points or time_s - self._judged_at < MIN_JUDGING_SECONDS:
            return self._judged_points < 0
        has_ended = trace.lifecycle.over and not self.diagnosis.trace.lifecycle.over
        return has_ended or points - self._judged_points >= MIN_GROWTH * self._judged_points

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
        self._judged_at, self._judged_points = time_s, _count_points(trace)
        self._used_at = time.monotonic()
        self.channel.publish("judged", {"verdict": diagnosis.verdict.word.value})

    def _read_files(self, time_s: float) -> Trace:
        """Read the files from their beginning."""
        self._files = {path: FileTail(path, reader) for path, reader in self.run.files}
        for path, file in self._files.items():
            if _may_grow(path, time_s) or not file.look_thin():
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
        return trace

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

    def _pack(self, points: Mapping[str, Series]) -> dict[str, object]:
        trace = self.trace
        return {
            "first": trace.first_step,
            "last": trace.last_step,
            "points": {
                name: {"steps": pack_steps(series.steps), "values": pack_values(series.values)}
                for name, series in points.items()
            },
        }


def _count_points(trace: Trace) -> int:
    return sum(map(len, trace.series.values()))


def _may_grow(path: Path, time_s: float) -> bool:
    """Return whether a run's file may be written to; unknown without a recorder's blocks."""
    try:
        return tail_index.may_grow(path.parent, time_s)
    except OSError:
        return True


def _has_steps(logged: Series, outline: Outline) -> bool:
    """Return whether an outline is at the steps of a logged thinned series: none was translated."""
    points = logged.outline
    return points is not None and bool(np.isin(outline.points.steps, points.points.steps).all())
