"""Ask the diagnosis about every trace, through the product's own front door."""

import multiprocessing
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import rlvitals
from rlvitals.faults import folder
from rlvitals.faults.catalogue import named
from rlvitals.faults.fault import Onset
from rlvitals.faults.folder import Recorded

# Of a run's settings, those that a log of Stable-Baselines3 is accompanied by.
SETTINGS = (
    "env_id", "n_envs", "total_timesteps", "n_steps", "batch_size", "n_epochs", "gamma",
    "gae_lambda", "learning_rate", "target_kl", "ent_coef",
)  # fmt: skip
OUTCOME = ("outcome/", "reward/")  # what a log without outcome columns lacks


@dataclass(frozen=True, slots=True)
class Said:
    """One finding of a diagnosis."""

    rule: str
    severity: int
    place: int  # of its case among all, from 0
    root: bool  # not folded under another
    began: int
    known: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What the diagnosis says of a run."""

    run: Recorded
    verdict: str
    said: tuple[Said, ...]
    judged: tuple[str, ...]  # rules that could judge it: found something, or were clear
    visible: bool  # whether the log holds what can show the fault


def judge(
    root: Path, runs: Sequence[Recorded], jobs: int, *, outcome: bool = True
) -> tuple[Judged, ...]:
    """Diagnose every run, several at a time."""
    asked = [(root, run, outcome) for run in runs]
    if jobs == 1:
        return tuple(_judge(one) for one in asked)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return tuple(pool.imap(_judge, asked, chunksize=8))


def _judge(asked: tuple[Path, Recorded, bool]) -> Judged:
    root, run, with_outcome = asked
    given = {key: run.settings[key] for key in SETTINGS if key in run.settings}
    trace = rlvitals.trace(folder.trace(root, run), settings=given)
    if run.ended != "finished":
        ended = replace(trace.lifecycle, exit_code=1, traceback=run.ended)
        trace = replace(trace, lifecycle=ended)
    if not with_outcome:
        kept = {k: s for k, s in trace.series.items() if not k.startswith(OUTCOME)}
        trace = replace(trace, series=kept)
    found = rlvitals.diagnose(trace)
    said = tuple(
        Said(rule.name, int(f.severity), place, f is case.finding, f.began, f.known)
        for place, case in enumerate(found.cases)
        for rule, f in _flat(case)
    )
    asked_rules = {rule.name for rule in found.clear} | {one.rule for one in said}
    return Judged(
        run, str(found.verdict.word), said, tuple(sorted(asked_rules)), _visible(run, trace)
    )


def _flat(case: rlvitals.Case) -> list[tuple[rlvitals.Rule, rlvitals.Finding]]:
    return [(case.rule, case.finding), *(pair for s in case.symptoms for pair in _flat(s))]


def _visible(run: Recorded, trace: rlvitals.Trace) -> bool:
    if not run.fault:
        return False
    onset = Onset.MIDDLE if run.onset else Onset.START
    return named(run.fault).visible(onset, frozenset(trace.series))


def as_json(judged: Judged) -> dict[str, object]:
    """Return a judged run as plain data."""
    return asdict(judged)
