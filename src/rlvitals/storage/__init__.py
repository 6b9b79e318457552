"""Storage of runs: the run folder, its column blocks, its events, and views over them."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.storage.query import View


def open(path: "str | Path") -> "View":  # noqa: A001 - the public name is `store.open`
    """Open a run folder for reading. Raises UnreadableLog where it is none or of a newer format."""
    from rlvitals.storage.query import View  # noqa: PLC0415 - who records needs none of it

    return View(Path(path))
