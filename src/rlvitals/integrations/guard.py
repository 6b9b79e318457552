"""Keep exceptions of a hook out of the user's training."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Guard:
    """Runs the parts of a hook; a part that fails is noted in the run once, and then skipped."""

    def __init__(self, run: "Run") -> None:
        """Note failures in `run`."""
        self.run = run
        self.failed: dict[str, str] = {}  # part -> why

    def __call__(self, name: str, call: Callable[[], None]) -> None:
        """Call a part, if it has not failed before."""
        if name in self.failed:
            return
        try:
            call()
        except Exception as error:  # noqa: BLE001 - recording never ends a training
            self.failed[name] = f"{type(error).__name__}: {error}"
            self.run.note(f"not recorded from here on: {name} ({self.failed[name]})")
