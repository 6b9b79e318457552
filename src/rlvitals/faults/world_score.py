"""Diagnose the runs of the worlds benchmark in four columns, and score the answers by world."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rlvitals
from rlvitals.faults.folder import INDEX_NAME
from rlvitals.faults.ground_truth import Label
from rlvitals.faults.run_diagnosis import map_parallel, tracked_settings
from rlvitals.faults.score import WARNING, Share, share
from rlvitals.faults.world_runs import (
    VERDICTS_BY_OUTCOME,
    LabelledRun,
    Outcome,
    WorldRun,
    label_runs,
    read,
    unpack,
)


class Column(StrEnum):
    """The data that the diagnosis may use, and the baselines."""

    LOG = "log alone"
    ENV_ID = "with env_id"
    SETTINGS = "with settings"
    DROPOUT = "2-10 columns"
    THIRDS = "last third against first"
    ALWAYS = "always learning"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer on one run."""

    verdict: str  # empty: the log was not read
    alarms: tuple[str, ...] = ()  # root findings at warning or above, in order
    alarm_steps: tuple[int, ...] = ()  # where each was known
    unjudged: str = ""  # why the log was not read


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A labelled run with the answer of one column."""

    labelled: LabelledRun
    column: Column
    answer: Answer

    @property
    def has_verdict(self) -> bool:
        """True unless the log was not read or the verdict is `unknown`."""
        return self.answer.verdict not in {"", "unknown"}

    @property
    def has_bad_verdict(self) -> bool:
        """True for a verdict that is wrong on a run that learned."""
        good = VERDICTS_BY_OUTCOME[Outcome.LEARNED]
        return self.has_verdict and self.answer.verdict not in good

    @property
    def is_right(self) -> bool:
        """True if the outcome allows the verdict.

        Without the settings a log that was cut may be judged by what it holds.
        """
        if self._looks_whole:
            return self.has_verdict
        return self.answer.verdict in VERDICTS_BY_OUTCOME[self.labelled.outcome]

    @property
    def is_called_good(self) -> bool:
        """True for a verdict that no harm was done; not of a log that was good until it was cut."""
        return self.answer.verdict in {"learning", "converged"} and not self._looks_whole

    @property
    def _looks_whole(self) -> bool:
        return self.labelled.outcome is Outcome.CUT and self.column is not Column.SETTINGS

    @property
    def is_decidable(self) -> bool:
        """True if the column can show the cause of a broken run."""
        decidable = self.labelled.run.decidable
        return decidable == "log" or (decidable == "settings" and self.column is Column.SETTINGS)

    @property
    def has_alarm(self) -> bool:
        """True for a finding at warning or above, or the verdict `failed` or `hung`."""
        return bool(self.answer.alarms) or self.answer.verdict in {"failed", "hung"}

    def names_cause(self, first: int) -> bool:
        """Return whether one of the first `first` cases is the cause, known after the onset."""
        run, answer = self.labelled.run, self.answer
        if answer.verdict in run.expects:
            return True
        # skrl counts steps of all environments as one; a student's table counts episodes.
        per_step = int(run.settings.get("n_envs", 1)) if run.trainer == "skrl-ppo" else 1
        counts_episodes = run.trainer in {"student-dqn", "tabular"}
        onset = run.onset * (run.steps / per_step) if run.onset and not counts_episodes else 0
        pairs = list(zip(answer.alarms, answer.alarm_steps, strict=True))[:first]
        return any(rule in run.expects and step >= onset for rule, step in pairs)


@dataclass(frozen=True, slots=True)
class WorldScore:
    """The scores of one column."""

    read: Share
    answered: Share
    right: Share
    right_answered: Share
    right_bad: Share
    good_of_broken: Share  # broken runs called learning or converged
    good_of_poor: Share  # the same, of those that did not learn by their true returns
    alarm: Share  # of the broken runs
    first: Share  # of the broken, decidable ones
    third: Share
    first_blind: Share  # the same, of faults written from the rules' names alone
    warnings: Share  # alarms per healthy run
    warned: Share  # healthy runs with an alarm
    bad_of_healthy: Share  # healthy runs with a bad verdict


def diagnose_runs(
    root: Path, labelled: Sequence[LabelledRun], jobs: int | str
) -> dict[Column, list[ScoredRun]]:
    """Diagnose every run in every column, `jobs` at a time."""
    answers = map_parallel(_answer_all, [(root, run.run) for run in labelled], jobs, chunk=8)
    return {
        column: [
            ScoredRun(run, column, reply[column])
            for run, reply in zip(labelled, answers, strict=True)
        ]
        for column in Column
    }


def _answer_all(arguments: tuple[Path, WorldRun]) -> dict[Column, Answer]:
    root, run = arguments
    with TemporaryDirectory() as scratch:
        unpack(root, run, Path(scratch))
        try:
            trace = rlvitals.runs(scratch)[0]
        except rlvitals.VitalsError as error:
            unread = Answer("", unjudged=str(error).splitlines()[0])
            return {
                column: Answer("learning") if column is Column.ALWAYS else unread
                for column in Column
            }
    tracked = tracked_settings(run.settings)
    env_id = {"env_id": run.settings["env_id"]}
    return {
        Column.LOG: _diagnose(trace, {}),
        Column.ENV_ID: _diagnose(trace, env_id),
        Column.SETTINGS: _diagnose(trace, tracked),
        Column.DROPOUT: _diagnose(drop_columns(trace, run.name), {}),
        Column.THIRDS: compare_thirds(trace),
        Column.ALWAYS: Answer("learning"),
    }


def framework(trainer: str) -> str:
    """Return the framework of a world's trainer; a trainer of one file is its own."""
    prefix = trainer.split("-", maxsplit=1)[0]
    return {"sb3": "Stable-Baselines3", "our": "rlvitals"}.get(prefix, prefix)


def diagnose_healthy(root: Path) -> Iterator[rlvitals.lab.Judged]:
    """Diagnose the healthy runs of the dev half, from their logs alone."""
    if not (root / INDEX_NAME).exists():
        return
    for labelled in label_runs(read(root)):
        run = labelled.run
        if labelled.label is Label.HEALTHY and run.split == "dev":
            with TemporaryDirectory() as scratch:
                unpack(root, run, Path(scratch))
                diagnosis = rlvitals.diagnose(rlvitals.runs(scratch)[0], live=False)
            yield rlvitals.lab.reduce_diagnosis(
                diagnosis, healthy=True, framework=framework(run.trainer), task=run.world
            )


def _diagnose(trace: rlvitals.Trace, settings: Mapping[str, Any]) -> Answer:
    diagnosis = rlvitals.diagnose(trace, settings=settings, live=False)
    alarms = [case for case in diagnosis.cases if case.finding.severity >= WARNING]
    return Answer(
        str(diagnosis.verdict.word),
        tuple(case.rule.name for case in alarms),
        tuple(case.finding.known for case in alarms),
    )


def drop_columns(trace: rlvitals.Trace, name: str) -> rlvitals.Trace:
    """Keep the outcome and a random choice of columns, 2 to 10 in all, drawn by the run's name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    generator = np.random.default_rng(seed)
    count = int(generator.integers(2, 11))
    outcome = _outcome_column(trace)
    names = sorted(key for key in trace.series if key != outcome)
    columns = {outcome, *generator.permutation(names)[: count - 1]}
    return replace(
        trace,
        series={key: series for key, series in trace.series.items() if key in columns},
        measured={key: source for key, source in trace.measured.items() if key in columns},
    )


def _outcome_column(trace: rlvitals.Trace) -> str:
    names = ("outcome/return", "outcome/reward", "reward/mean")
    return next((name for name in names if name in trace.series), "")


def compare_thirds(trace: rlvitals.Trace) -> Answer:
    """Judge a run by its returns' last third against the first: the baseline."""
    outcome = _outcome_column(trace)
    values = np.asarray(trace.series[outcome].values if outcome else (), float)
    values = values[np.isfinite(values)]
    third = len(values) // 3
    if third == 0:
        return Answer("unknown")
    first, last = values[:third], values[-third:]
    spread = float(np.sqrt((first.var() + last.var()) / 2))
    change = float(last.mean() - first.mean())
    if abs(change) <= spread / 2:
        return Answer("stalled", ("last-third",), (0,))
    return Answer("learning") if change > 0 else Answer("collapsed", ("last-third",), (0,))


def score(runs: Sequence[ScoredRun]) -> WorldScore:
    """Score the answers of one column; intervals draw whole worlds."""
    judged = [run for run in runs if run.labelled.label is not Label.BENIGN]
    broken = [run for run in runs if run.labelled.label is Label.BROKEN]
    healthy = [run for run in runs if run.labelled.label is Label.HEALTHY]
    decidable = [run for run in broken if run.is_decidable]
    return WorldScore(
        read=_share(runs, lambda run: bool(run.answer.verdict)),
        answered=_share(judged, lambda run: run.has_verdict),
        right=_share(judged, lambda run: run.is_right),
        right_answered=_share([run for run in judged if run.has_verdict], lambda run: run.is_right),
        right_bad=_share(
            [run for run in judged if run.labelled.outcome.is_bad], lambda run: run.is_right
        ),
        good_of_broken=_share(broken, lambda run: run.is_called_good),
        good_of_poor=_share(
            [run for run in broken if run.labelled.outcome.is_bad], lambda run: run.is_called_good
        ),
        alarm=_share(broken, lambda run: run.has_alarm),
        first=_share(decidable, lambda run: run.names_cause(1)),
        third=_share(decidable, lambda run: run.names_cause(3)),
        first_blind=_share(
            [run for run in decidable if run.labelled.run.blind], lambda run: run.names_cause(1)
        ),
        warnings=_share(healthy, lambda run: len(run.answer.alarms)),
        warned=_share(healthy, lambda run: run.has_alarm),
        bad_of_healthy=_share(healthy, lambda run: run.has_bad_verdict),
    )


def _share(runs: Sequence[ScoredRun], value: Callable[[ScoredRun], float]) -> Share:
    return share([(run.labelled.run.world, float(value(run))) for run in runs])
