"""`trackio`, with runs of the W&B look-alike: its interface is W&B's."""

from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from rlvitals.capture import mirror
from rlvitals.errors import UsageError
from rlvitals.wandb import (
    AlertLevel,
    Artifact,
    Audio,
    Histogram,
    Html,
    Image,
    Object3D,
    Run,
    Settings,
    Table,
    Video,
)

__all__ = [
    "AlertLevel", "Artifact", "Audio", "Histogram", "Html", "Image", "Object3D", "Run", "Settings",
    "Table", "Video", "alert", "finish", "init", "log", "log_artifact", "log_cpu", "log_gpu",
    "log_system", "save",
]  # fmt: skip
__version__ = "0.43.0"

# `trackio.context_vars.current_run`, which verl asks for.
context_vars = SimpleNamespace(current_run=ContextVar[Run | None]("current_run", default=None))


def init(
    project: str,
    name: str | None = None,
    group: str | None = None,
    space_id: str | None = None,
    config: Any = None,
    **options: object,
) -> Run:
    """Begin a run; where it would be hosted or synchronised is of no effect."""
    del space_id, options
    facts = {"project": project, "name": name, "group": group}
    run = mirror.begin("trackio", f"{project}/{name}", facts, config)
    if run is None:
        raise UsageError("nothing is recorded in this process", hint="rlvitals run --instead")
    context_vars.current_run.set(run)
    return run


def _current() -> Run:
    run: Run | None = context_vars.current_run.get()
    if run is None:
        raise RuntimeError("Call trackio.init() first.")  # as Trackio
    return run


def log(metrics: Any, step: int | None = None) -> None:
    """Record a row."""
    _current().log(metrics, step)


def log_system(metrics: object) -> None:
    """Do nothing: a run records its machine itself."""
    del metrics


def log_gpu(*_: object, **__: object) -> dict[str, float]:
    """Return nothing: a run records its machine itself."""
    return {}


log_cpu = log_gpu


def log_artifact(*args: Any, **kwargs: Any) -> Any:
    """Record an artifact by its names."""
    return _current().log_artifact(*args, **kwargs)


def save(*args: Any, **kwargs: Any) -> list[str]:
    """Record the names of files."""
    return _current().save(*args, **kwargs)


def alert(title: str, text: str = "", level: Any = None, **_: object) -> None:
    """Record an alert."""
    _current().alert(title, text, level)


def finish() -> None:
    """End the run."""
    _current().finish()
    context_vars.current_run.set(None)


def __getattr__(name: str) -> Any:
    """Return `config` as it is now."""
    if name == "config":
        return _current().config
    raise AttributeError(f"`rlvitals run --instead` serves no trackio.{name}")
