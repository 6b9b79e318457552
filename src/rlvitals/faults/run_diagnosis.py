"""Ask the diagnosis about every trace, through the product's own front door."""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import rlvitals
from rlvitals.faults import folder
from rlvitals.faults.catalogue import named
from rlvitals.faults.fault import FAILED, Onset
from rlvitals.faults.folder import Recorded

# The settings of a run that a tracker keeps, by the library's names; `batch_size` is another
# thing to other libraries, and has no bearing here.
SETTINGS = (
    "algorithm", "env_id", "n_envs", "total_timesteps", "n_steps", "n_epochs", "gamma",
    "gae_lambda", "learning_rate", "ent_coef", "vf_coef", "clip_range", "target_kl", "tau",
    "target_update_interval", "buffer_size", "learning_starts", "exploration_fraction",
    "exploration_final_eps",
)  # fmt: skip
OUTCOME = ("outcome/", "reward/")  # what a log without outcome columns lacks

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Said:
    """One finding of a diagnosis."""

    rule: str
    severity: int
    root: bool  # not folded under another
    known: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What the diagnosis says of a run."""

    run: Recorded
    verdict: str
    said: tuple[Said, ...]
    judged: tuple[str, ...]  # rules that could judge it: found something, or were clear
    visible: bool  # whether the log holds what can show the fault
    counts: rlvitals.Judged  # what the rates of each rule are counted from


def judge(
    root: Path, runs: Sequence[Recorded], jobs: int, *, outcome: bool = True, told: bool = True
) -> tuple[Judged, ...]:
    """Diagnose every run, several at a time.

    `outcome`: whether logs hold the outcome; `told`: whether they say what a fault set.
    """
    return several(_judge, [(root, run, outcome, told) for run in runs], jobs, chunk=8)


def several(
    work: Callable[[Asked], Answer], asked: Sequence[Asked], jobs: int, chunk: int
) -> tuple[Answer, ...]:
    """Do the work for all that is asked, in order, in `jobs` processes; one is this one."""
    if jobs == 1:
        return tuple(work(one) for one in asked)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return tuple(pool.imap(work, asked, chunksize=chunk))


def load(root: Path, run: Recorded, *, told: bool = True) -> rlvitals.Trace:
    """Read a run's trace, with what a tracker would know beside it."""
    given = {key: value for key, value in settings(run, told=told).items() if key in SETTINGS}
    trace = rlvitals.trace(folder.trace(root, run), settings=given)
    return replace(trace, lifecycle=lifecycle(run.ended))


def settings(run: Recorded, *, told: bool = True) -> dict[str, Any]:
    """Return a run's settings as its log holds them: none that a fault changed half-way."""
    if not run.fault:
        return run.settings
    fault = named(run.fault)
    kept = {key: value for key, value in run.settings.items() if key not in fault.changed}
    if run.onset or not told:
        return kept
    scaled = {key: by * run.settings[key] for key, by in fault.scales.items()}
    return {**kept, **fault.sets, **scaled}


def lifecycle(ended: str) -> rlvitals.Lifecycle:
    """Return what a tracker tells of a process that is over: "finished", or its exception."""
    crashed = ended != "finished"
    return rlvitals.Lifecycle(exit_code=int(crashed), traceback=ended * crashed, ended=True)


def _judge(asked: tuple[Path, Recorded, bool, bool]) -> Judged:
    root, run, with_outcome, told = asked
    trace = load(root, run, told=told)
    if not with_outcome:
        kept = {k: s for k, s in trace.series.items() if not k.startswith(OUTCOME)}
        trace = replace(trace, series=kept)
    found = rlvitals.diagnose(trace)
    roots = {case.rule.name for case in found.cases}
    said = tuple(
        Said(rule.name, int(finding.severity), rule.name in roots, finding.known)
        for rule, finding in found.findings
    )
    names = {rule.name for rule in found.clear} | {one.rule for one in said}
    visible = shown(run, trace, told=told)
    expects = [rule for rule in named(run.fault).expects if rule != FAILED] if visible else []
    counts = rlvitals.judged(found, healthy=not run.fault, expects=expects)
    return Judged(run, str(found.verdict.word), said, tuple(sorted(names)), visible, counts)


def shown(run: Recorded, trace: rlvitals.Trace, *, told: bool = True) -> bool:
    """Tell whether a run has a fault, and its log what can show it."""
    if not run.fault:
        return False
    onset = Onset.MIDDLE if run.onset else Onset.START
    return named(run.fault).visible(onset, frozenset(trace.series), settings=told)
