"""Follow Stable-Baselines3: what its logger writes, and the hyperparameters, which it does not."""

from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls
from rlvitals.capture.run_folders import Share, Source, join

_shares: WeakKeyDictionary[Any, Share | None] = WeakKeyDictionary()  # by the model


def follow(module: Any) -> None:
    """Record each training of the algorithms of a module."""
    calls.follow(module.BaseAlgorithm, "_setup_learn", _record)


def _record(result: tuple[int, Any], model: Any, *_: object, **__: object) -> None:
    """Record the settings of a model that begins to learn, and each row of its logger."""
    from rlvitals.integrations.stable_baselines3 import (  # noqa: PLC0415 - SB3's
        Record,
        Writer,
        hyperparameters,
    )

    total_steps, callback = result
    if any(isinstance(each, Record) for each in (callback, *getattr(callback, "callbacks", ()))):
        return  # the program records itself
    if model not in _shares:
        _shares[model] = join(Source("stable-baselines3", str(id(model))))
    if (share := _shares[model]) is None:
        return
    share.update_settings(hyperparameters.settings(model, total_steps))
    formats = model.logger.output_formats
    if not any(isinstance(each, Writer) for each in formats):
        formats.append(Writer(share))  # type: ignore[arg-type]
