"""Results of a round of a backup."""

from dataclasses import field

from rlvitals.checkpoints.transfer import byte_text
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class SyncResult:
    """Result of a round."""

    target: str
    checkpoints: list[str] = field(default_factory=list)  # copied: names
    complete: set[str] | None = None  # the run's complete ones at the target; None: unknown
    newest: str = ""  # complete at the target
    files: int = 0  # copied, those of checkpoints too
    size: int = 0  # bytes copied
    removed: list[str] = field(default_factory=list)  # checkpoints that the run no longer keeps
    left: tuple[str, ...] = ()  # what was not copied, and need not be
    failed: list[str] = field(default_factory=list)  # what should have been

    @property
    def sentence(self) -> str:
        """Sentence for the user: the newest checkpoint at the target, and what was copied."""
        head = "Backup not complete" if self.failed else "✓ Backup complete"
        newest = f"; newest: {self.newest}" if self.newest else "; no checkpoint yet"
        if not self.files:
            return f"{head}: nothing new for {self.target}{newest}"
        names = self.checkpoints
        count = f"{len(names)} checkpoint{'s' * (len(names) != 1)}, " if names else ""
        return (
            f"{head}: {count}{self.files:,} file{'s' * (self.files != 1)}, "
            f"{byte_text.format_bytes(self.size)} copied to {self.target} and verified{newest}"
        )
