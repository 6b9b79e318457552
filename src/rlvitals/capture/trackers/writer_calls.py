"""Follow the `SummaryWriter` of torch and of tensorboardX."""

import sys
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from rlvitals.capture import calls, imports
from rlvitals.capture.run_folders import SHARED_TRACKER, Source, join
from rlvitals.integrations.torch_tensorboard import SummaryWriter

_mirrors: WeakKeyDictionary[Any, SummaryWriter] = WeakKeyDictionary()  # by the program's writer


def follow(module: Any) -> None:
    """Record what the writers of a module write."""
    # Media calls are counted once in the run's notes.
    for method in (
        "add_scalar",
        "add_scalars",
        "add_histogram",
        "add_histogram_raw",
        "add_text",
        "add_hparams",
        "add_image",
        "add_images",
        "add_figure",
        "add_video",
        "add_audio",
        "add_embedding",
    ):
        calls.follow(module.SummaryWriter, method, partial(_record, method))
    calls.follow(module.SummaryWriter, "close", _close)


def follow_writers() -> None:
    """Follow the writers that are imported, and those that will be."""
    if not any(isinstance(finder, imports.Following) for finder in sys.meta_path):
        sys.meta_path.insert(0, imports.Following())
    for name, follower in imports.TRACKERS.items():
        module = sys.modules.get(name) if follower.endswith(".writer_calls") else None
        if module is not None:
            follow(module)


def _record(method: str, _: object, writer: Any, *args: Any, **kwargs: Any) -> None:
    mirror = _mirrors.get(writer)
    if mirror is None:
        folder = str(getattr(writer, "log_dir", None) or getattr(writer, "logdir", ""))
        share = join(Source(SHARED_TRACKER, folder))
        if share is None:
            return
        mirror = _mirrors[writer] = SummaryWriter(run=share)  # type: ignore[arg-type]
    getattr(mirror, method)(*args, **kwargs)


def _close(_: object, writer: Any) -> None:
    mirror = _mirrors.pop(writer, None)
    if mirror is not None:
        mirror.close()
