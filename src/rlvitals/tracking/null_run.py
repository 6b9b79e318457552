"""A run that records nothing: `RLVITALS_MODE=off` makes every call free."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from rlvitals.tracking import launcher_rank
from rlvitals.tracking import requests as control
from rlvitals.tracking.run import Run


class NullRun(Run):
    """Accepts every call of a Run and does nothing; touches no disk and starts no thread.

    Its folder is the one that it would have been recorded into: checkpoints lie where they would
    have lain, whether or not anything is recorded, and never in the working folder by accident.
    """

    _status = "not recorded"

    def __init__(
        self, folder: Path, name: str, settings: Mapping[str, object], *, failed: bool = False
    ) -> None:
        """Create a run that is not recorded; `failed`: recording was requested."""
        self._failed = failed
        self.folder, self.id, self.name, self.attempt = folder, "", name, 0
        process = launcher_rank.read_place(os.environ)
        self.rank, self.world_size = process.rank, process.world_size
        self._settings = dict(settings)
        self.compiled = False

    @property
    def step(self) -> int:
        """No step."""
        return 0

    @property
    def overhead(self) -> float:
        """No time."""
        return 0.0

    def log(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def log_histogram(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def log_text(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def log_table(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def log_rollouts(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def update_settings(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def event(self, *call: object, **arguments: object) -> None:
        """Do nothing."""

    def note(self, text: object) -> None:
        """Do nothing."""

    def requests(self) -> control.Requests:
        """Return that nobody asked for anything."""
        return control.NO_REQUESTS

    def at_finish(self, call: Callable[[str], None]) -> None:
        """Do nothing."""

    def flush(self, timeout: float = 10.0) -> bool:  # noqa: ARG002 - nothing waits
        """Return that nothing waits; False where the run should have been recorded."""
        return not self._failed

    def finish(
        self, status: str | int = "finished", *, traceback: str = "", exit_code: int | None = None
    ) -> None:
        """Do nothing."""
