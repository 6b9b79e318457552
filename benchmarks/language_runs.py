"""Read the runs of the language tier, and diagnose them in columns and folds."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from language_faults import FAULTS, PROVEN, Shown

import rlvitals
from rlvitals.diagnosis import engine, load
from rlvitals.faults.run_diagnosis import map_parallel
from rlvitals.rules.rate import FAMILIES, MIN_HEALTHY_RUNS, Rates
from rlvitals.rules.rates import RATES

ROOT = Path(__file__).resolve().parent.parent
TIER = ROOT / "faults" / "language"
WARNING = rlvitals.Severity.WARNING
LIFE_PARTS = 10
# Canonical names that no trainer logs: they are counted in saved text, groups and tasks.
COUNTED = ("rollout/", "language/repetition_share", "language/statistic/", "language/stop_reason/")
COUNTED += ("language/tool_failures", "language/error_share")


class Column(StrEnum):
    """The part of a run that the diagnosis gets."""

    SCALARS = "scalars"
    ROLLOUTS = "with rollouts"
    SETTINGS = "with settings"


class Fold(StrEnum):
    """The runs whose healthy ones do not measure a rule."""

    NONE = "none"
    TASK = "task"
    TRAINER = "trainer"


@dataclass(frozen=True, slots=True)
class LanguageRun:
    """A recorded run."""

    file: str
    trainer: str
    task: str
    fault: str  # empty: healthy
    settings: Mapping[str, Any]
    made_by: str

    def group(self, fold: Fold) -> str:
        """Return the task or the trainer."""
        return {Fold.NONE: "", Fold.TASK: self.task, Fold.TRAINER: self.trainer}[fold]


@dataclass(frozen=True, slots=True)
class Answer:
    """The diagnosis of one column with one set of rates."""

    verdict: str
    alarms: tuple[str, ...]  # root causes at warning or above, in order
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A run and its answers."""

    run: LanguageRun
    answers: Mapping[tuple[Column, Fold], Answer]
    reward: float  # last tenth of the log's reward, accuracy or minus its loss
    life: tuple[str, ...] = ()  # rules that warned at some tenth of a healthy run


def read() -> list[LanguageRun]:
    """Read the index."""
    rows = map(json.loads, (TIER / "runs.jsonl").read_text().splitlines())
    return [LanguageRun(**row) for row in rows]


def trace(run: LanguageRun, column: Column) -> rlvitals.Trace:
    """Read what a column has of a run."""
    settings = known_settings(run.settings) if column is Column.SETTINGS else {}
    whole = rlvitals.trace(TIER / run.file, settings=settings, live=False)
    if column is not Column.SCALARS:
        return whole
    names = [name for name in whole.series if not name.startswith(COUNTED)]
    return replace(
        whole,
        series={name: whole.series[name] for name in names},
        measured={name: how for name, how in whole.measured.items() if name in names},
    )


def known_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that rlvitals has a name for."""
    known = {}
    for key, value in settings.items():
        with suppress(rlvitals.UsageError):
            load.canonical({key: value})
            known[key] = value
    return known


def measured_rules(run: LanguageRun) -> tuple[str, tuple[str, ...]]:
    """Return the family of a healthy run, and the rules that could judge it."""
    diagnosis = engine.diagnose(trace(run, Column.ROLLOUTS))
    names = {rule.name for rule in diagnosis.clear}
    names |= {case.rule.name for case in diagnosis.every}
    return FAMILIES[diagnosis.trace.profile], tuple(names)


def rates_without(fold_runs: Sequence[tuple[str, tuple[str, ...]]]) -> Rates:
    """Return the shipped rates less the healthy runs of a fold."""
    counts = Counter((family, name) for family, names in fold_runs for name in names)
    return {
        name: [replace(r, healthy=max(r.healthy - counts[r.family, name], 0)) for r in rates]
        for name, rates in RATES.items()
    }


def capped(rates: Rates) -> frozenset[str]:
    """Return the rules that are measured on too few healthy runs."""
    healthy = {name: max((r.healthy for r in each), default=0) for name, each in rates.items()}
    return frozenset(name for name, count in healthy.items() if count < MIN_HEALTHY_RUNS)


def judge(arguments: tuple[LanguageRun, Mapping[Fold, Rates], bool]) -> Judged:
    """Diagnose a run in every column and fold."""
    run, rates, lives = arguments
    answers: dict[tuple[Column, Fold], Answer] = {}
    reward = float("nan")
    for column in Column:
        read_trace = trace(run, column)
        diagnosis = rlvitals.diagnose(read_trace, live=False)
        answers[column, Fold.NONE] = _answer(diagnosis)
        rang = {case.rule.name for case in diagnosis.every}
        for fold in (Fold.TASK, Fold.TRAINER):
            held = rang & (capped(rates[fold]) - capped(RATES))
            again = engine.diagnose(read_trace, rates=rates[fold]) if held else diagnosis
            answers[column, fold] = _answer(again)
        reward = _final_reward(read_trace)
    life = _life(trace(run, Column.ROLLOUTS)) if lives and not run.fault else ()
    return Judged(run, answers, reward, life)


def _answer(diagnosis: rlvitals.Diagnosis) -> Answer:
    alarms = [case.rule.name for case in diagnosis.cases if case.finding.severity >= WARNING]
    rang = [rule.name for rule, finding in diagnosis.findings if finding.severity < WARNING]
    return Answer(str(diagnosis.verdict.word), tuple(alarms), tuple(rang))


def _final_reward(read_trace: rlvitals.Trace) -> float:
    """Return the mean reward of the last tenth; without rewards the accuracy, or minus the loss."""
    names = ("outcome/reward", "outcome/score", "preference/eval_accuracy", "optimiser/loss")
    name = next(each for each in names if each in read_trace.series)
    sign = -1 if name == "optimiser/loss" else 1
    values = sign * np.asarray(read_trace.series[name].values, float)
    return float(np.mean(values[-max(len(values) // 10, 1) :])) if len(values) else float("nan")


def _life(whole: rlvitals.Trace) -> tuple[str, ...]:
    """Return the rules that warn on some prefix of a run."""
    names = {
        rule.name
        for prefix in rlvitals.lab.prefixes(whole, LIFE_PARTS)
        for rule, finding in rlvitals.diagnose(prefix).findings
        if finding.severity >= WARNING
    }
    return tuple(sorted(names))


def judge_all(runs: Sequence[LanguageRun], jobs: int, *, lives: bool) -> list[Judged]:
    """Diagnose every run without the healthy runs of its own task, or of its own trainer."""
    healthy = [run for run in runs if not run.fault and run.file.startswith("../healthy")]
    answers = map_parallel(measured_rules, healthy, jobs, 8)
    rules = {run.file: answer for run, answer in zip(healthy, answers, strict=True)}
    fold_rates: dict[tuple[Fold, str], Rates] = {}
    for fold in (Fold.TASK, Fold.TRAINER):
        for name in {run.group(fold) for run in runs}:
            own = [rules[run.file] for run in healthy if run.group(fold) == name]
            fold_rates[fold, name] = rates_without(own)
    arguments = [
        (run, {f: fold_rates[f, run.group(f)] for f in (Fold.TASK, Fold.TRAINER)}, lives)
        for run in runs
    ]
    return list(map_parallel(judge, arguments, jobs, 4))


def broken(judged: Sequence[Judged]) -> list[Judged]:
    """Return the runs that a fault broke: by construction, or below every healthy run's reward."""
    floors: dict[tuple[str, str], float] = {}
    for each in judged:
        if not each.run.fault and np.isfinite(each.reward):
            key = each.run.trainer, each.run.task
            floors[key] = min(each.reward, floors.get(key, np.inf))
    return [
        each
        for each in judged
        if each.run.fault
        and (
            each.run.fault in PROVEN
            or not each.reward >= floors.get((each.run.trainer, each.run.task), -np.inf)
        )
    ]


def is_decidable(run: LanguageRun, column: Column) -> bool:
    """Whether a column can show the fault of a run."""
    allowed = {
        Column.SCALARS: {Shown.LOG},
        Column.ROLLOUTS: {Shown.LOG, Shown.ROLLOUTS},
        Column.SETTINGS: {Shown.LOG, Shown.ROLLOUTS, Shown.SETTINGS},
    }
    return FAULTS[run.fault].shown in allowed[column]


def names_cause(judged: Judged, column: Column, fold: Fold, first: int) -> bool:
    """Whether one of the first alarms is a rule that the fault expects."""
    expects = FAULTS[judged.run.fault].expects
    return any(rule in expects for rule in judged.answers[column, fold].alarms[:first])
