"""Follow W&B's runs: each is mirrored by a run of the look-alike, which knows W&B's steps."""

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls, mirror
from rlvitals.wandb.recorded import Run

_mirrors: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()  # by W&B's run


def follow(module: Any) -> None:
    """Record the runs that `wandb.init` begins."""
    calls.follow(module, "init", partial(_begin, module))
    _follow_class(module.Run)


def _follow_class(kind: type) -> None:
    calls.follow(kind, "log", _log)
    calls.follow(kind, "finish", _finish)
    calls.follow(kind, "__exit__", _exit)
    for method in ("define_metric", "alert", "save", "mark_preempting"):
        calls.follow(kind, method, partial(_record, method))


def _begin(module: Any, run: Any, *_: object, **arguments: Any) -> None:
    if run is None or run in _mirrors:
        return
    if type(run) is not module.Run:  # of a disabled run: its methods are its own
        _follow_class(type(run))
        module.log = run.log
    facts = {name: getattr(run, name, None) for name in (*mirror.TEXTS, "tags", "resumed")}
    copy = mirror.begin("wandb", str(run.id), facts, dict(run.config), int(run.step or 0))
    if copy is None:
        return
    _mirrors[run] = copy
    # A program that ends without `finish`: what it set in the config until then.
    copy.recording.at_finish(lambda _: _copy_config(run, copy))
    if arguments.get("sync_tensorboard") or module.patched.get("tensorboard"):
        share: Any = copy.recording
        share.on_step = copy.set_tensorboard_step


def _log(_: object, run: Any, *args: Any, **kwargs: Any) -> None:
    if (copy := _mirrors.get(run)) is not None:
        if not copy.rows:
            _copy_config(run, copy)
        copy.log(*args, **kwargs)


def _record(method: str, _: object, run: Any, *args: Any, **kwargs: Any) -> None:
    if (copy := _mirrors.get(run)) is not None:
        getattr(copy, method)(*args, **kwargs)


def _copy_config(run: Any, copy: Run) -> None:
    """Record what the program added to the config since `init`."""
    config = dict(run.config)
    changed = {
        key: value
        for key, value in config.items()
        if key not in copy.config or copy.config[key] is not value
    }
    if changed:
        copy.config.update(changed)


def _finish(_: object, run: Any, exit_code: int | None = None, **__: object) -> None:
    if (copy := _mirrors.pop(run, None)) is not None:
        _copy_config(run, copy)
        copy.finish(exit_code)


def _exit(_: object, run: Any, kind: object = None, *__: object) -> None:
    _finish(None, run, 1 if kind is not None else 0)
