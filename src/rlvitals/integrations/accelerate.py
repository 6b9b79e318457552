"""accelerate's trackers: `Accelerator(log_with="rlvitals")` records what it is given to log.

    from rlvitals.integrations import accelerate as vitals

    vitals.register()  # accelerate >= 1.15; before that, log_with=[vitals.Tracker("project")]
    accelerator = Accelerator(log_with="rlvitals")
    accelerator.init_trackers("project", config, {"rlvitals": {"folder": "runs/one"}})

`accelerator.end_training()` finishes the run. Read from accelerate 1.15:
src/accelerate/tracking.py.
"""

from collections.abc import Mapping
from typing import Any

from accelerate import tracking

from rlvitals.integrations import hook_facts
from rlvitals.tracking.run import Run
from rlvitals.tracking.start import start


def register() -> None:
    """Let `log_with="rlvitals"` find the tracker; call it before the Accelerator is made."""
    if tracking.LOGGER_TYPE_TO_CLASS.get(Tracker.name) is not Tracker:
        tracking.register_tracker_class(Tracker)


class Tracker(tracking.GeneralTracker):
    """Records on the main process. `options` are those of `rlvitals.start`, `folder` among them."""

    name = "rlvitals"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, project: str, **options: Any) -> None:
        """Keep what the run is to be told: accelerate may not know its processes yet."""
        super().__init__()
        self.options = {"project": project, **options}
        self.run: Run | None = None
        self._step = -1

    @property
    def tracker(self) -> Run | None:
        """The run; None on all processes but the main one."""
        return self.run

    @tracking.on_main_process
    def start(self) -> None:
        """Begin the run."""
        if self.run is None:
            folder = self.options.get("folder")
            rest = {key: value for key, value in self.options.items() if key != "folder"}
            self.run = start(folder, **rest)

    @tracking.on_main_process
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Record the script's settings."""
        if self.run is not None:
            self.run.update_settings(
                {str(key): hook_facts.plain(value) for key, value in values.items()}
            )

    @tracking.on_main_process
    def log(self, values: Mapping[str, Any], step: int | None = None, **_: Any) -> None:
        """Record numbers, and texts as texts; without a step they are counted from 0."""
        self._step = self._step + 1 if step is None else int(step)
        if self.run is not None:
            hook_facts.record(self.run, self._step, values)

    @tracking.on_main_process
    def finish(self) -> None:
        """Finish the run."""
        if self.run is not None:
            self.run.finish()
            self.run = None
