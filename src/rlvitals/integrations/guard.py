"""The one place where a hook keeps its own mistakes out of somebody else's training."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Careful:
    """Runs the parts of a hook; one that fails is noted in the run, once, and left out since."""

    def __init__(self, run: "Run") -> None:
        """Note failures in `run`."""
        self.run = run
        self.failed: dict[str, str] = {}  # part -> why

    def __call__(self, part: str, do: Callable[[], None]) -> None:
        """Do one part, if it has not failed before."""
        if part in self.failed:
            return
        try:
            do()
        except Exception as error:  # noqa: BLE001 - recording never ends a training
            self.failed[part] = f"{type(error).__name__}: {error}"
            self.run.note(f"not recorded from here on: {part} ({self.failed[part]})")
