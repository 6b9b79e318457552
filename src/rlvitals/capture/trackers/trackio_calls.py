"""Follow Trackio's runs, whose calls are those of W&B."""

from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls, mirror
from rlvitals.wandb.recorded import Run

_mirrors: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()  # by Trackio's run


def follow(module: Any) -> None:
    """Record the runs that `trackio.init` begins."""
    calls.follow(module, "init", _begin)
    calls.follow(module.Run, "log", _log)
    calls.follow(module.Run, "alert", _alert)
    calls.follow(module.Run, "finish", _finish)


def _begin(run: Any, *_: object, **arguments: Any) -> None:
    facts = {name: getattr(run, name, None) for name in ("name", "project", "group")}
    run_id = f"{facts['project']}/{facts['name']}"
    copy = mirror.begin("trackio", run_id, facts, arguments.get("config"))
    if copy is not None:
        _mirrors[run] = copy


def _log(_: object, run: Any, metrics: Any, step: int | None = None, *__: object) -> None:
    if (copy := _mirrors.get(run)) is not None:
        copy.log(metrics, step)


def _alert(
    _: object, run: Any, title: str, text: str | None = None, level: Any = None, **__: object
) -> None:
    if (copy := _mirrors.get(run)) is not None:
        copy.alert(title, text or "", level)


def _finish(_: object, run: Any) -> None:
    if (copy := _mirrors.pop(run, None)) is not None:
        copy.finish()
