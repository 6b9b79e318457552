"""The names that other trackers give to what a run does: they call its own methods."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlvitals.tracking.settings_mapping import Config, Summary


class TrackerNames:
    """Adds `config`, `summary`, `url`, `alert` and `close` to a run.

    A script that was written for Weights & Biases finds them here; nothing is done twice.
    """

    _status = "recording"
    _last_values: Callable[[], Mapping[str, float]] = dict  # of a run that is not recorded

    if TYPE_CHECKING:  # what the run itself has
        folder: Path
        name: str

        @property
        def step(self) -> int: ...  # noqa: D102
        @property
        def settings(self) -> Mapping[str, object]: ...  # noqa: D102
        def update_settings(  # noqa: D102
            self, changed: Mapping[str, object], *, step: int | None = None
        ) -> None: ...
        def event(self, /, kind: str, step: int | None = None, **facts: object) -> None: ...  # noqa: D102
        def finish(self, status: str | int = "finished") -> None: ...  # noqa: D102

    else:

        def __getattr__(self, name: str) -> None:
            """Say where a name of W&B's run is: only `rlvitals.init` returns one that has it."""
            hint = ": run.folder" if name == "dir" else ""
            if name in {"define_metric", "log_artifact", "log_model", "save", "unwatch", "watch"}:
                hint = ": run = rlvitals.init(), a run with W&B's names"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        """Return the run's name, last step and state in one line."""
        return f"<{type(self).__name__} {self.name!r}: {self._status}, at step {self.step}>"

    @property
    def config(self) -> Config:
        """The settings as items or attributes; setting one is `update_settings`."""
        config: Config = self.__dict__.setdefault("_config", Config(self.update_settings))
        config.refresh(self.settings)
        return config

    @property
    def summary(self) -> Summary:
        """The last value of each metric, and what is set here: an event "summary" each time."""

        def record(changed: Mapping[str, object]) -> None:
            self.event("summary", values=changed)

        if "_summary" not in self.__dict__:
            self._summary = Summary(record, self._last_values)
        return self._summary

    @property
    def url(self) -> str:
        """The run's folder as a URL: nothing is sent to a server."""
        return self.folder.resolve().as_uri()

    def alert(self, title: str, text: str = "", level: str = "INFO") -> None:
        """Record that a person should look, as an event "alert"; nothing is sent.

        Parameters
        ----------
        title : str
            Summary of the alert.
        text : str
            Its details.
        level : str
            As of W&B: "INFO", "WARN" or "ERROR".
        """
        self.event("alert", title=title, text=text, level=level)

    def close(self) -> None:
        """Finish the run."""
        self.finish()
