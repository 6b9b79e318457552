"""Check for offline runs of Weights & Biases that were not synchronised."""

from collections.abc import Iterable
from pathlib import Path

from rlvitals.doctor.check import Check, Problem
from rlvitals.doctor.context import Context
from rlvitals.errors import quantity
from rlvitals.rules.rule import Severity

MAX_OFFLINE_RUNS = 3


def check_offline_runs(context: Context) -> Iterable[Problem]:
    """Yield offline runs without the mark that `wandb sync` writes."""
    folders = dict.fromkeys(
        folder.resolve()
        for base in (context.path, context.path.parent, context.working_folder)
        for folder in (base / "wandb", base / ".wandb")
    )
    waiting = [run for folder in folders for run in _find_unsent(folder)]
    if not waiting:
        return
    names = [str(run) for run in waiting[-MAX_OFFLINE_RUNS:]]
    more = (
        [f"and {len(waiting) - MAX_OFFLINE_RUNS} more"] if len(waiting) > MAX_OFFLINE_RUNS else []
    )
    runs = f"{quantity(len(waiting), 'offline run')} of W&B"
    yield Problem(
        Severity.NOTE,
        f"{runs} never sent: the dashboard does not have {'them' if len(waiting) > 1 else 'it'}",
        (*names, *more),
        (f"wandb sync {waiting[-1]}", f"rlvitals diagnose {waiting[-1]}"),
    )


def _find_unsent(folder: Path) -> list[Path]:
    try:
        runs = sorted(folder.glob("offline-run-*"))
        return [
            run for run in runs if any(run.glob("*.wandb")) and not any(run.glob("*.wandb.synced"))
        ]
    except OSError:
        return []


OFFLINE_CHECK = Check("offline", "Was everything sent?", check_offline_runs)
