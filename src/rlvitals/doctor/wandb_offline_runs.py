"""Whether runs of Weights & Biases wait to be sent."""

from collections.abc import Iterable
from pathlib import Path

from rlvitals.doctor.check import Check, Trouble
from rlvitals.doctor.context import Scene
from rlvitals.rules.rule import Severity

OFFLINE, LOG, SENT = "offline-run-*", "*.wandb", ".synced"
MOST_SHOWN = 3


def look(scene: Scene) -> Iterable[Trouble]:
    """Tell of offline runs without the mark that `wandb sync` leaves."""
    folders = dict.fromkeys(
        folder.resolve()
        for base in (scene.path, scene.path.parent, scene.here)
        for folder in (base / "wandb", base / ".wandb")
    )
    waiting = [run for folder in folders for run in _waiting(folder)]
    if not waiting:
        return
    names = [str(run) for run in waiting[-MOST_SHOWN:]]
    more = [f"and {len(waiting) - MOST_SHOWN} more"] if len(waiting) > MOST_SHOWN else []
    runs = f"{len(waiting)} offline run{'s' if len(waiting) > 1 else ''} of W&B"
    yield Trouble(
        Severity.NOTE,
        f"{runs} never sent: the dashboard does not have {'them' if len(waiting) > 1 else 'it'}",
        (*names, *more),
        (f"wandb sync {waiting[-1]}", f"rlvitals diagnose {waiting[-1]}"),
    )


def _waiting(folder: Path) -> list[Path]:
    try:
        runs = sorted(folder.glob(OFFLINE))
        return [run for run in runs if any(run.glob(LOG)) and not any(run.glob(f"{LOG}{SENT}"))]
    except OSError:
        return []


CHECK = Check("offline", "Was everything sent?", look)
