"""Follow SwanLab's runs: `swanlab.init`, `log` and `finish`."""

from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls, mirror
from rlvitals.wandb.recorded import Run

_mirrors: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()  # by SwanLab's run


def follow(module: Any) -> None:
    """Record the runs that `swanlab.init` begins."""
    calls.follow(module, "init", _begin)
    calls.follow(module.Run, "log", _log)
    calls.follow(module.Run, "finish", _finish)


def _begin(run: Any, *_: object, **arguments: Any) -> None:
    facts = {**arguments, "name": arguments.get("name") or arguments.get("experiment_name")}
    run_id = str(getattr(run, "id", "") or facts["name"])
    copy = mirror.begin("swanlab", run_id, facts, arguments.get("config"))
    if copy is not None:
        _mirrors[run] = copy


def _log(_: object, run: Any, data: Any, step: int | None = None, **__: object) -> None:
    if (copy := _mirrors.get(run)) is not None:
        copy.log(data, step)


def _finish(_: object, run: Any, state: str = "success", **__: object) -> None:
    if (copy := _mirrors.pop(run, None)) is not None:
        copy.finish(0 if state == "success" else 1)
