"""Count logged data that was lost, by kind, and report it at the first loss and at the end.

Each loss is a note of the run. `logging` reports it, which prints to stderr where a
program does not set it up.
"""

import logging
from collections import Counter
from enum import StrEnum

from rlvitals.tracking.warnings_log import Notes

logger = logging.getLogger(__name__)


class LossReason(StrEnum):
    """Why logged data was lost."""

    TOO_FAST = "they were logged faster than the recorder lays them out"
    BLOCKED = "the disk blocked for too long"
    FULL = "the disk was full for too long"
    AT_END = "the disk took none until the end"


class Losses:
    """Counts of what was lost, by kind and reason. Any thread may add."""

    def __init__(self, notes: Notes) -> None:
        """Begin with none; `notes` gets each loss."""
        self.total = 0
        self._notes = notes
        self._counts: Counter[tuple[str, str]] = Counter()  # by kind and reason
        self._warned: set[str] = set()

    def add(self, kind: str, count: int, reason: str) -> None:
        """Count what was lost: "rows", 12, "the disk was full for too long"."""
        if not count:
            return
        self.total += count
        self._counts[kind, reason] += count
        self.warn(f"{kind} lost: {reason}", "the end of the run says how many", count)

    def warn(self, text: str, more: str = "", count: int = 1) -> None:
        """Add a note, and log a warning the first time."""
        self._notes.add(text, count)
        if text not in self._warned:
            self._warned.add(text)
            logger.warning("%s (%s)", text, more)

    def summarise(self) -> None:
        """Report all losses, once; nothing without losses."""
        if self._counts:
            texts = (f"{n:,} {kind} ({reason})" for (kind, reason), n in self._counts.items())
            logger.warning("logged and not recorded: %s", ", ".join(texts))
