"""Follow Trackio's runs, whose calls are those of W&B."""

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls, mirror
from rlvitals.wandb.recorded import Run

_mirrors: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()  # by Trackio's run


def follow(module: Any) -> None:
    """Record the runs that `trackio.init` begins."""
    calls.follow(module, "init", _begin)
    for method in ("log", "alert", "finish"):
        calls.follow(module.Run, method, partial(_record, method))


def _begin(run: Any, *_: object, **arguments: Any) -> None:
    facts = {name: getattr(run, name, None) for name in ("name", "project", "group")}
    run_id = f"{facts['project']}/{facts['name']}"
    copy = mirror.begin("trackio", run_id, facts, arguments.get("config"))
    if copy is not None:
        _mirrors[run] = copy


def _record(method: str, _: object, run: Any, *args: Any, **kwargs: Any) -> None:
    if (copy := _mirrors.get(run)) is None:
        return
    if method == "alert":
        kwargs = {name: kwargs[name] for name in ("title", "text", "level") if name in kwargs}
    getattr(copy, method)(*args, **kwargs)
    if method == "finish":
        del _mirrors[run]
