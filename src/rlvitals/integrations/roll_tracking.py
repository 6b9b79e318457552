"""Add the tracker "rlvitals" to ROLL: `track_with: rlvitals` under `rlvitals run`.

Read from ROLL 8eb27cc: roll/utils/tracking.py, pipeline/base_pipeline.py.
"""

from pathlib import Path
from typing import Any

from rlvitals.capture import mirror
from rlvitals.wandb.recorded import Run


def follow(module: Any) -> None:
    """Add the tracker to ROLL's registry."""
    module.tracker_registry.setdefault("rlvitals", Tracker)


class Tracker:
    """Records what a pipeline logs; `tracker_kwargs` may hold the `project` and a `name`."""

    def __init__(self, config: dict[str, Any], **options: Any) -> None:
        """Begin the run, or join the one of `rlvitals run`."""
        name = str(options.get("name") or config.get("exp_name") or "roll")
        facts = {"project": options.get("project"), "name": name, "tags": options.get("tags")}
        folder = Path(options.get("log_dir") or "runs", name)
        self._run: Run | None = mirror.begin("roll", name, facts, config, folder=folder)

    def log(self, values: dict[str, Any], step: int | None = None, **_: object) -> None:
        """Record a row; the reducer that ROLL puts behind a key, `loss@mean`, is left out."""
        if self._run is not None:
            self._run.log({key.rpartition("@")[0] or key: v for key, v in values.items()}, step)

    def finish(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish()
