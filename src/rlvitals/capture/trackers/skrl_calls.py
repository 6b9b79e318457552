"""Follow skrl's own `SummaryWriter`, which writes event files without torch's."""

from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls
from rlvitals.capture.run_folders import SHARED_TRACKER, Share, Source, join

_shares: WeakKeyDictionary[Any, Share | None] = WeakKeyDictionary()  # by skrl's writer


def follow(module: Any) -> None:
    """Record what the writers of a module write."""
    calls.follow(module.SummaryWriter, "__init__", _begin)
    calls.follow(module.SummaryWriter, "add_scalar", _log)
    calls.follow(module.SummaryWriter, "close", _finish)


def _begin(_: object, writer: Any, log_dir: object, **__: object) -> None:
    _shares[writer] = join(Source(SHARED_TRACKER, str(log_dir)))


def _log(_: object, writer: Any, *, tag: str, value: float, timestep: int) -> None:
    if (share := _shares.get(writer)) is not None:
        share.log(timestep, {tag: value})


def _finish(_: object, writer: Any) -> None:
    if (share := _shares.pop(writer, None)) is not None:
        share.finish()
