"""`swanlab`, with runs of the W&B look-alike."""

from typing import Any

from rlvitals.capture import mirror
from rlvitals.errors import UsageError
from rlvitals.wandb import Audio, Html, Image, Molecule, Object3D, Run, Video
from rlvitals.wandb.media import Medium
from rlvitals.wandb.session import login
from rlvitals.wandb.util import generate_id

__all__ = [
    "Audio", "Html", "Image", "Molecule", "Object3D", "Run", "Text", "Video",
    "define_metric", "finish", "get_run", "init", "log", "login",
]  # fmt: skip
__version__ = "0.10.3"

_runs: list[Run] = []  # that are open, the oldest first


class Text(Medium):
    """`swanlab.Text`."""


def init(
    project: str | None = None,
    workspace: str | None = None,
    experiment_name: str | None = None,
    description: str | None = None,
    config: Any = None,
    **options: Any,
) -> Run:
    """Begin a run; where it would be stored is of no effect."""
    facts = {name: options.get(name) for name in ("group", "tags", "job_type")}
    facts |= {"project": project, "entity": workspace, "notes": description}
    facts["name"] = experiment_name or options.get("name")
    run = mirror.begin("swanlab", str(options.get("id") or generate_id()), facts, config)
    if run is None:
        raise UsageError("nothing is recorded in this process", hint="rlvitals run --instead")
    _runs.append(run)
    return run


def get_run() -> Run | None:
    """Return the run of this moment."""
    return _runs[-1] if _runs else None


def _current() -> Run:
    if not _runs:
        raise RuntimeError("Call swanlab.init() first.")
    return _runs[-1]


def log(data: Any, step: int | None = None, **_: object) -> None:
    """Record a row."""
    _current().log(data, step)


def define_metric(name: str, *args: Any, **options: Any) -> Any:
    """Set the step metric of a metric."""
    return _current().define_metric(name, *args, **options)


def finish(state: str = "success", **_: object) -> None:
    """End the run, if there is one."""
    if _runs:
        _runs.pop().finish(0 if state == "success" else 1)


def __getattr__(name: str) -> Any:
    """Return `run` and `config` as they are now."""
    if name == "run":
        return get_run()
    if name == "config":
        return _current().config
    raise AttributeError(f"`rlvitals run --instead` serves no swanlab.{name}")
