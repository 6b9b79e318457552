"""Tracker for accelerate: `Accelerator(log_with="rlvitals")` records the values it logs.

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
    """Register the tracker for `log_with="rlvitals"`; call it before creating the Accelerator."""
    if tracking.LOGGER_TYPE_TO_CLASS.get(Tracker.name) is not Tracker:
        tracking.register_tracker_class(Tracker)


class Tracker(tracking.GeneralTracker):
    """Records on the main process. `options` are those of `rlvitals.start`, including `folder`."""

    name = "rlvitals"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, project: str, **options: Any) -> None:
        """Store the options; the run starts later, when accelerate knows its processes."""
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
        """Start the run."""
        if self.run is None:
            folder = self.options.get("folder")
            options = {key: value for key, value in self.options.items() if key != "folder"}
            self.run = start(folder, **options)

    @tracking.on_main_process
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Record the script's settings."""
        if self.run is not None:
            self.run.update_settings(
                {str(key): hook_facts.to_json(value) for key, value in values.items()}
            )

    @tracking.on_main_process
    def log(self, values: Mapping[str, Any], step: int | None = None, **_: Any) -> None:
        """Record numbers and texts; calls without a step are counted from 0."""
        self._step = self._step + 1 if step is None else int(step)
        if self.run is not None:
            hook_facts.record(self.run, self._step, values)

    @tracking.on_main_process
    def finish(self) -> None:
        """Finish the run."""
        if self.run is not None:
            self.run.finish()
            self.run = None
