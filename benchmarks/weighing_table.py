"""Compute and keep the table of features and answers that `weighing.py` compares."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weighing_classes import CLASS_BY_RULE, DECISIVE, mechanism
from weighing_features import features

import rlvitals
from rlvitals.faults import folder, healthy
from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.ground_truth import label, levels
from rlvitals.faults.run_diagnosis import is_visible
from rlvitals.faults.world_runs import LabelledRun, label_runs, read, unpack

LIFE_PARTS = 10  # prefixes of a healthy run
WARNING = rlvitals.Severity.WARNING


@dataclass(frozen=True, slots=True)
class Row:
    """A run: its labels, the answer of the diagnosis from its log alone, and its features."""

    name: str
    source: str  # "tier-1", "dev", "test" (of the worlds), "kept" (language models, scheduler)
    world: str
    trainer: str  # sb3-ppo
    env: str
    profile: str
    label: str
    fault: str
    mechanism: str  # "": healthy, or decided by rules
    expects: tuple[str, ...]
    decidable: bool  # from the log alone
    onset: int
    verdict: str
    alarms: tuple[str, ...]  # root findings at warning or above, in the order of the diagnosis
    alarm_steps: tuple[int, ...]
    notes: tuple[str, ...]  # every finding, in the order of the diagnosis
    features: dict[str, float]
    signs: dict[str, int] = field(default_factory=dict)
    # Of a healthy run, for each prefix: severity by rule, of warnings and errors.
    life: tuple[dict[str, int], ...] = ()

    @property
    def framework(self) -> str:
        """The framework that wrote the log."""
        return "our" if self.trainer == "rlvitals" else self.trainer.split("-")[0]

    @property
    def is_decided(self) -> bool:
        """True if a rule with decisive evidence has spoken."""
        return self.verdict == "failed" or any(alarm in DECISIVE for alarm in self.alarms)

    @property
    def order(self) -> tuple[str, ...]:
        """The classes of the alarms in the order of the diagnosis, each once."""
        names = [CLASS_BY_RULE.get(alarm, alarm) for alarm in self.alarms]
        return tuple(dict.fromkeys(names))


def load(cache: Path, source: str, root: Path) -> list[Row]:
    """Return the rows of a source, from the cache where it has them."""
    path = cache / f"{source}.jsonl"
    if not path.exists():
        makers = {"tier-1": _tier_1, "kept": _kept}
        rows = makers[source](root) if source in makers else _worlds(root, source)
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with unfinished.open("w") as file:
            for row in rows:
                file.write(json.dumps(asdict(row)) + "\n")
        unfinished.rename(path)
    return [_read(json.loads(line)) for line in path.read_text().splitlines()]


def _read(row: dict) -> Row:
    lists = ("expects", "alarms", "alarm_steps", "notes", "life")
    return Row(**{key: tuple(value) if key in lists else value for key, value in row.items()})


def _tier_1(root: Path) -> Iterator[Row]:
    recorded = folder.read(root / "tier-1")
    by_task = levels(recorded)
    for run in recorded:
        if run.task not in by_task:
            continue
        # No settings: the log alone.
        trace = rlvitals.trace(folder.trace(root / "tier-1", run))
        kind = str(label(run, by_task[run.task]).value)
        algorithm = run.task.split("-")[0]
        yield _row(
            trace, name=f"{run.task}/{run.name}", source="tier-1", world=run.task,
            trainer=f"sb3-{algorithm}", env=run.env_id, label=kind, fault=run.fault,
            mechanism=mechanism(run.fault, run.onset or 0),
            expects=find_fault(run.fault).expects if run.fault else (),
            decidable=is_visible(run, trace, with_settings=False), onset=run.onset or 0,
        )  # fmt: skip


def _worlds(root: Path, half: str) -> Iterator[Row]:
    for labelled in label_runs(read(root / "tier-2")):
        if labelled.run.split == half:
            with TemporaryDirectory() as scratch:
                unpack(root / "tier-2", labelled.run, Path(scratch))
                trace = rlvitals.runs(scratch)[0]
                yield _world_row(trace, labelled, half)


def _world_row(trace: rlvitals.Trace, labelled: LabelledRun, half: str) -> Row:
    run = labelled.run
    by_episode = run.trainer in {"student-dqn", "tabular"}  # the axis is the episode
    return _row(
        trace, name=run.name, source=half, world=run.world, trainer=run.trainer,
        env=str(run.settings["env_id"]), label=str(labelled.label.value), fault=run.fault,
        mechanism=mechanism(run.fault, run.onset), expects=run.expects,
        decidable=run.decidable == "log", onset=0 if by_episode else int(run.onset * run.steps),
    )  # fmt: skip


def _kept(root: Path) -> Iterator[Row]:
    for run in healthy.read(root / "healthy"):
        trace = rlvitals.trace(root / "healthy" / run.file, settings=run.settings)
        yield _row(
            trace, name=run.file, source="kept", world=run.task, trainer=run.framework,
            env=run.task, label="healthy", fault="", mechanism="", expects=(), decidable=False,
            onset=0,
        )  # fmt: skip


def _row(trace: rlvitals.Trace, *, label: str, **facts: Any) -> Row:  # noqa: ANN401 - fields of Row
    diagnosis = rlvitals.diagnose(trace, live=False)
    table = features(trace, diagnosis)
    alarms = [case for case in diagnosis.cases if case.finding.severity >= WARNING]
    return Row(
        **facts,
        label=label,
        profile=str(trace.profile),
        verdict=str(diagnosis.verdict.word),
        alarms=tuple(case.rule.name for case in alarms),
        alarm_steps=tuple(case.finding.known for case in alarms),
        notes=tuple(rule.name for rule, _ in diagnosis.findings),
        features={name: fact.value for name, fact in table.items()},
        signs={name: fact.sign for name, fact in table.items()},
        life=_life(trace) if label == "healthy" else (),
    )


def _life(trace: rlvitals.Trace) -> tuple[dict[str, int], ...]:
    """Return the warnings and errors of each prefix of a run, the whole of it last."""
    return tuple(
        {
            rule.name: int(finding.severity)
            for rule, finding in rlvitals.diagnose(prefix).findings
            if finding.severity >= WARNING
        }
        for prefix in rlvitals.lab.prefixes(trace, LIFE_PARTS)
    )
