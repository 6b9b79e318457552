"""Follow one run while somebody looks at it: read new rows, judge, publish the changes."""

import threading
from collections.abc import Mapping

from rlvitals.checkpoints import inspect_run, progress
from rlvitals.diagnosis import batch, load, marks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.training_summary import summary
from rlvitals.errors import UnreadableLog, UsageError
from rlvitals.following.append_buffer import find_new_points
from rlvitals.following.file_tail import FileTail
from rlvitals.following.run import MIN_GROWTH, MIN_JUDGING_SECONDS
from rlvitals.readers.discovery import sources
from rlvitals.readers.discovery.sources import Run
from rlvitals.rollouts import rollout_index
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.rollouts.series import to_log
from rlvitals.server import console, run_page
from rlvitals.server.channel import Channel
from rlvitals.server.run_page import Extras, RunPage
from rlvitals.settings import Settings
from rlvitals.types import Series, Trace
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
        self._given = load.given(settings)
        self._lock = threading.Lock()
        self._files = {path: FileTail(path, reader) for path, reader in run.files}
        self._grew: float | None = None  # seconds since the epoch
        self.rollouts: Rollouts | None = None
        self._read_rollouts()
        for file in self._files.values():
            file.look(time_s)
        self.trace = self._read_trace(time_s)
        self._judged_at, self._judged_points = 0.0, -1
        self.diagnosis: Diagnosis
        self.page: RunPage
        self.judge(time_s)

    def look(self, time_s: float) -> None:
        """Read the rows written since the last look, and publish them. Time: epoch seconds."""
        with self._lock:
            news = [file.look(time_s) for file in self._files.values()]
            if not any(file_news is not None for file_news in news):
                self._notice_deletion()
                return
            self._grew = time_s
            self.is_deleted = False
            old = self.trace
            try:
                self.trace = self._read_trace(time_s)
            except UnreadableLog:
                return
            points = find_new_points(old.series, self.trace.series)
        if points is None:  # other rows than before: the run was started anew
            self._judged_points = -1
            self.channel.publish("reload", {})
        elif points:
            self.channel.publish("points", self._pack(points))

    def needs_judging(self, time_s: float) -> bool:
        """Return whether the run has grown, or ended, since it was judged."""
        points = _count_points(self.trace)
        if points == self._judged_points or time_s - self._judged_at < MIN_JUDGING_SECONDS:
            return self._judged_points < 0
        has_ended = self.trace.lifecycle.over and not self.diagnosis.trace.lifecycle.over
        return has_ended or points - self._judged_points >= MIN_GROWTH * self._judged_points

    def judge(self, time_s: float) -> None:
        """Judge the current rows, and publish that the page's texts are other ones."""
        self._read_rollouts()
        trace, name = self.trace, self.run.name
        diagnosis = batch.judge_trace((self.run, self.settings), trace)
        progress_file = progress.read(self.run.root)
        trained = None if progress_file is None else progress_file.trained
        inspection = inspect_run.try_inspect(self.run.root)
        subject = Subject(
            summary=summary(name, diagnosis, trained),
            standing=standing(name, diagnosis, progress_file, inspection, time_s),
            facts=load.facts(self.run),
            events=load.happened(self.run),
            others=load.others(self.run, self._given, trace),
        )
        self.judgements += 1
        self.page = run_page.build(subject, self.judgements, self._extras())
        self.diagnosis = diagnosis
        self._judged_at, self._judged_points = time_s, _count_points(trace)
        self.channel.publish("judged", {"verdict": diagnosis.verdict.word.value})

    def _read_trace(self, time_s: float) -> Trace:
        logs = sources.together(self.run, {path: file.log for path, file in self._files.items()})
        if self.rollouts is not None:
            logs = (*logs, self._rollout_log)
        return load.named(self.run, logs, self._given, time_s, self._grew)

    def _read_rollouts(self) -> None:
        """Read the rollouts again where their files changed."""
        try:
            rollouts = rollout_index.of_run(self.run.root)
        except UnreadableLog:
            rollouts = None
        if rollouts is not None:
            self._rollout_log = to_log(rollouts)
        self.rollouts = rollouts

    def _extras(self) -> Extras:
        try:
            mark = marks.read(self.run)
        except UsageError:
            mark = None
        return Extras(mark, self.rollouts, console.names(self.run))

    def _notice_deletion(self) -> None:
        if not self.is_deleted and all(file.is_missing for file in self._files.values()):
            self.is_deleted = True
            self.channel.publish("deleted", {})

    def _pack(self, points: Mapping[str, Series]) -> dict[str, object]:
        return {
            "first": self.trace.first_step,
            "last": self.trace.last_step,
            "points": {
                name: {"steps": pack_steps(series.steps), "values": pack_values(series.values)}
                for name, series in points.items()
            },
        }


def _count_points(trace: Trace) -> int:
    return sum(map(len, trace.series.values()))
