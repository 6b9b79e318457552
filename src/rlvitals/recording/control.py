"""What someone outside asks of a running loop, through a small file in the run folder."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = "requests"
KINDS = ("save", "stop")


@dataclass(frozen=True, slots=True)
class Requests:
    """What was asked for: `save` since the last call, `stop` from then on."""

    save: bool = False
    stop: bool = False

    def __bool__(self) -> bool:
        """Whether anything was."""
        return self.save or self.stop


NOTHING = Requests()


class Control:
    """Looks for requests; each is a file, so that asking twice is asking once."""

    def __init__(self, folder: Path, attempt: int) -> None:
        """Watch a run's folder for its attempt."""
        self._folder = folder / FOLDER
        self._attempt = attempt

    def requests(self) -> Requests:
        """Return what was asked."""
        return NOTHING
