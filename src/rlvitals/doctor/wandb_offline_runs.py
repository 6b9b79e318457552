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
    places = dict.fromkeys(
        place.resolve()
        for base in (scene.path, scene.path.parent, scene.here)
        for place in (base / "wandb", base / ".wandb")
    )
    waiting = [run for place in places for run in _waiting(place)]
    if not waiting:
        return
    shown = [str(run) for run in waiting[-MOST_SHOWN:]]
    more = [f"and {len(waiting) - MOST_SHOWN} more"] if len(waiting) > MOST_SHOWN else []
    runs = f"{len(waiting)} offline run{'s' if len(waiting) > 1 else ''} of W&B"
    yield Trouble(
        Severity.NOTE,
        f"{runs} never sent: the dashboard does not have {'them' if len(waiting) > 1 else 'it'}",
        (*shown, *more),
        (f"wandb sync {waiting[-1]}", f"rlvitals diagnose {waiting[-1]}"),
    )


def _waiting(place: Path) -> list[Path]:
    try:
        runs = sorted(place.glob(OFFLINE))
        return [run for run in runs if any(run.glob(LOG)) and not any(run.glob(f"{LOG}{SENT}"))]
    except OSError:
        return []


CHECK = Check("offline", "Was everything sent?", look)
