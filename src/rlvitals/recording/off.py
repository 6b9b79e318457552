"""A run that is not recorded: `RLVITALS_MODE=off` makes every call free."""

from collections.abc import Callable, Mapping
from pathlib import Path

from rlvitals.recording import control
from rlvitals.recording.run import Run


class Off(Run):
    """Takes every call of a Run and does nothing; touches no disk and starts no thread."""

    def __init__(self, name: str, settings: Mapping[str, object]) -> None:
        """Be a run that nobody records."""
        self.folder, self.id, self.name = Path(), "", name
        self.attempt, self.rank, self.world_size = 0, 0, 1
        self._settings = dict(settings)

    @property
    def step(self) -> int:
        """No step."""
        return 0

    @property
    def overhead(self) -> float:
        """No time."""
        return 0.0

    def log(
        self,
        step: int,
        metrics: Mapping[str, object],
        episode: float | None = None,
        tokens: float | None = None,
        time: float | None = None,
    ) -> None:
        """Do nothing."""

    def log_histogram(self, step: int, name: str, values: object = None, **bins: object) -> None:
        """Do nothing."""

    def log_text(self, step: int, name: str, text: str) -> None:
        """Do nothing."""

    def log_table(self, step: int, name: str, columns: Mapping[str, object]) -> None:
        """Do nothing."""

    def update_settings(self, changed: Mapping[str, object], *, step: int | None = None) -> None:
        """Do nothing."""

    def event(self, kind: str, step: int | None = None, **facts: object) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""

    def requests(self) -> control.Requests:
        """Return that nobody asked for anything."""
        return control.NOTHING

    def at_finish(self, call: Callable[[str], None]) -> None:
        """Do nothing."""

    def flush(self, timeout: float = 10.0) -> bool:  # noqa: ARG002 - nothing waits
        """Return that nothing waits."""
        return True

    def finish(
        self, status: str = "finished", *, traceback: str = "", exit_code: int | None = None
    ) -> None:
        """Do nothing."""
