"""Diagnose every trace of the benchmark through the public API."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import rlvitals
from rlvitals import lab
from rlvitals.faults import folder
from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.fault import FAILED_VERDICT, Onset
from rlvitals.faults.folder import Recorded

Asked = TypeVar("Asked", bound=tuple[Any, ...])  # the folder of the runs first
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
    """The diagnosis of a run."""

    run: Recorded
    verdict: str
    said: tuple[Said, ...]
    judged: tuple[str, ...]  # rules that could judge it, with a finding or without
    visible: bool  # the log can show the fault
    counts: rlvitals.lab.Judged  # for the rates of each rule


def diagnose_runs(
    root: Path,
    runs: Sequence[Recorded],
    jobs: int | str,
    *,
    with_outcome: bool = True,
    with_settings: bool = True,
) -> tuple[Judged, ...]:
    """Diagnose every run, several at a time.

    `with_outcome` keeps the outcome columns, `with_settings` the settings that a fault changed.
    """
    return map_parallel(
        _diagnose_run, [(root, run, with_outcome, with_settings) for run in runs], jobs, chunk=8
    )


def map_parallel(
    function: Callable[[Asked], Answer], arguments: Sequence[Asked], jobs: int | str, chunk: int
) -> tuple[Answer, ...]:
    """Map a function over arguments, in order, in `jobs` processes; 1: in this process.

    A text is the address of a Ray cluster to do it on, "" for one on this machine.
    """
    if isinstance(jobs, str):
        return tuple(
            lab.ray_map(
                function, arguments, jobs, path_of=lambda argument: argument[0], chunk=chunk
            )
        )
    if jobs == 1:
        return tuple(function(argument) for argument in arguments)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return tuple(pool.imap(function, arguments, chunksize=chunk))


def tracked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a run's settings that a tracker records."""
    # The settings that a tracker records, by the library's names. `batch_size` is left out: it
    # means different things in different libraries.
    keys = (
        "algorithm", "env_id", "n_envs", "total_timesteps", "n_steps", "n_epochs", "gamma",
        "gae_lambda", "learning_rate", "ent_coef", "vf_coef", "clip_range", "target_kl", "tau",
        "target_update_interval", "buffer_size", "learning_starts", "exploration_fraction",
        "exploration_final_eps",
    )  # fmt: skip
    return {key: settings[key] for key in keys if key in settings}


def load(root: Path, run: Recorded, *, with_settings: bool = True) -> rlvitals.Trace:
    """Read a run's trace, with the settings and lifecycle that a tracker would record."""
    values = tracked_settings(settings(run, with_settings=with_settings))
    trace = rlvitals.trace(folder.trace(root, run), settings=values)
    return replace(trace, lifecycle=lifecycle(run.ended))


def settings(run: Recorded, *, with_settings: bool = True) -> dict[str, Any]:
    """Return a run's settings as logged, without those that a fault changed in mid-run."""
    if not run.fault:
        return run.settings
    fault = find_fault(run.fault)
    unchanged = {
        key: value for key, value in run.settings.items() if key not in fault.changed_settings
    }
    if run.onset or not with_settings:
        return unchanged
    scaled = {key: factor * run.settings[key] for key, factor in fault.scales.items()}
    return {**unchanged, **fault.sets, **scaled}


def lifecycle(ended: str) -> rlvitals.lab.Lifecycle:
    """Return the lifecycle of a finished process; `ended`: "finished", or its exception."""
    crashed = ended != "finished"
    return rlvitals.lab.Lifecycle(exit_code=int(crashed), traceback=ended * crashed, ended=True)


def _diagnose_run(arguments: tuple[Path, Recorded, bool, bool]) -> Judged:
    root, run, with_outcome, with_settings = arguments
    trace = load(root, run, with_settings=with_settings)
    if not with_outcome:
        # Columns left out without `with_outcome`
        series = {
            k: s for k, s in trace.series.items() if not k.startswith(("outcome/", "reward/"))
        }
        trace = replace(trace, series=series)
    diagnosis = rlvitals.diagnose(trace)
    roots = {case.rule.name for case in diagnosis.cases}
    findings = tuple(
        Said(rule.name, int(finding.severity), rule.name in roots, finding.known)
        for rule, finding in diagnosis.findings
    )
    names = {rule.name for rule in diagnosis.clear} | {finding.rule for finding in findings}
    visible = is_visible(run, trace, with_settings=with_settings)
    expects = (
        [rule for rule in find_fault(run.fault).expects if rule != FAILED_VERDICT]
        if visible
        else []
    )
    counts = rlvitals.lab.reduce_diagnosis(
        diagnosis,
        healthy=not run.fault,
        expects=expects,
        framework="Stable-Baselines3",
        task=run.task,
    )
    return Judged(run, str(diagnosis.verdict.word), findings, tuple(sorted(names)), visible, counts)


def is_visible(run: Recorded, trace: rlvitals.Trace, *, with_settings: bool = True) -> bool:
    """Return whether a run has a fault that its log can show."""
    if not run.fault:
        return False
    onset = Onset.MIDDLE if run.onset else Onset.START
    return find_fault(run.fault).visible(onset, frozenset(trace.series), settings=with_settings)
