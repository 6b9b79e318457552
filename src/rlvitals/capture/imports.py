"""Call a function after a library is imported, or import another module in its place.

Each Python process of the program imports this module: it loads the standard library alone.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from rlvitals.capture import printed, ray_hook

FOLDER_VARIABLE = "_RLVITALS_CAPTURE_FOLDER"  # of the first run; the next ones are `<folder>-2`...
CAPTURE_MODE_VARIABLE = "_RLVITALS_CAPTURE"  # "beside" or "instead"; unset: nothing is recorded
# A module of a library, and ours whose `follow(module)` records its calls.
TRACKERS = {
    "wandb": "capture.trackers.wandb_calls",
    "trackio": "capture.trackers.trackio_calls",
    "swanlab": "capture.trackers.swanlab_calls",
    "mlflow.tracking.client": "capture.trackers.mlflow_calls",
    "torch.utils.tensorboard.writer": "capture.trackers.writer_calls",
    "tensorboardX.writer": "capture.trackers.writer_calls",
    "skrl.utils.tensorboard": "capture.trackers.skrl_calls",
    "stable_baselines3.common.base_class": "capture.trackers.sb3_calls",
    "verl.utils.tracking": "integrations.verl_tracking",
    "rllm.utils.tracking": "integrations.verl_tracking",
    "roll.utils.tracking": "integrations.roll_tracking",
}
# A library, and the module that is served in its place; the modules inside it likewise.
STAND_INS = {
    "wandb.sdk.lib.runid": "rlvitals.wandb.util",
    "wandb.sdk.lib.config_util": "rlvitals.wandb.errors",
    "wandb.sdk.lib": "rlvitals.wandb.sdk",
    "wandb.sdk.mailbox.mailbox_handle": "rlvitals.wandb.errors",
    "wandb.sdk.mailbox": "rlvitals.wandb.sdk",
    "wandb.sdk.wandb_run": "rlvitals.wandb.recorded",
    "wandb": "rlvitals.wandb",
    "trackio": "rlvitals.capture.stand_ins.trackio",
    "swanlab": "rlvitals.capture.stand_ins.swanlab",
    "torch.utils.tensorboard.writer": "rlvitals.capture.stand_ins.tensorboard",
    "tensorboardX.writer": "rlvitals.capture.stand_ins.tensorboard",
    "torch.utils.tensorboard": "rlvitals.capture.stand_ins.tensorboard",
    "tensorboardX": "rlvitals.capture.stand_ins.tensorboard",
}


class Following(MetaPathFinder):
    """Finds nothing itself: it makes the loader that another finder returns call us back."""

    def __init__(self) -> None:
        """Begin with no search under way."""
        self._searches: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a followed module as the other finders have it."""
        if name not in TRACKERS or name in self._searches:
            return None
        self._searches.add(name)
        try:
            specs = (
                finder.find_spec(name, path, target)
                for finder in sys.meta_path
                if finder is not self and hasattr(finder, "find_spec")
            )
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            self._searches.discard(name)
        if spec is not None and spec.loader and not isinstance(spec.loader, Replacing):
            _call_after(spec.loader, name)
        return spec


def _call_after(loader: Loader, name: str) -> None:
    """Follow the module once this loader has executed it."""
    execute: Callable[[ModuleType], None] | None = getattr(loader, "exec_module", None)
    if execute is None:  # a loader of the old kind, with `load_module` alone
        return

    def execute_and_follow(module: ModuleType) -> None:
        execute(module)
        if module.__name__ == name:  # the loader of a zip file loads all of its modules
            follow(name, module)

    try:
        loader.exec_module = execute_and_follow  # type: ignore[method-assign]
    except AttributeError:  # a loader without attributes of its own, of a frozen module
        return


def follow(name: str, module: ModuleType) -> None:
    """Record the calls of a library from now on; a failure is one line on stderr."""
    try:
        tracker = importlib.import_module(f"rlvitals.{TRACKERS[name]}")
        tracker.follow(module)
    except Exception as error:  # noqa: BLE001 - the library works as it would without us
        with suppress(Exception):  # a closed stderr
            sys.stderr.write(f"rlvitals: calls of {name} are not recorded: {error}\n")


class Replacing(MetaPathFinder, Loader):
    """Serves our modules under the names of other libraries."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a replaced library and for the modules inside it."""
        del path, target
        stand_in = _stand_in(name)
        if stand_in is None:
            return None
        try:
            spec = importlib.util.find_spec(stand_in)
        except ModuleNotFoundError:  # inside a module that is no package
            spec = None
        return None if spec is None else ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Put our module where the import system looks for the one it created."""
        stand_in = _stand_in(module.__name__)
        if stand_in is not None:
            sys.modules[module.__name__] = importlib.import_module(stand_in)
        if module.__name__ == "wandb":
            importlib.import_module("rlvitals.capture.stand_ins.wandb_opening").connect()


def _stand_in(name: str) -> str | None:
    for library, stand_in in STAND_INS.items():
        if name == library or name.startswith(f"{library}."):
            return stand_in + name[len(library) :]
    return None


def watch() -> None:
    """Follow what is imported from now on and what is imported already."""
    if not any(isinstance(finder, Following) for finder in sys.meta_path):
        sys.meta_path.insert(0, Following())
    for name in TRACKERS:
        if (module := sys.modules.get(name)) is not None:
            follow(name, module)


def install(mode: str = "") -> None:
    """Follow, or replace, what is imported from now on and what is imported already."""
    mode = mode or os.environ.get(CAPTURE_MODE_VARIABLE, "")
    if mode not in ("beside", "instead") or any(
        isinstance(finder, Following) for finder in sys.meta_path
    ):
        return
    if mode == "instead":
        sys.meta_path.insert(0, Replacing())
    ray_hook.install()
    watch()
    if CAPTURE_MODE_VARIABLE in os.environ:  # a notebook keeps what its cells print
        printed.follow(Path(os.environ[FOLDER_VARIABLE]))
