"""The result of a resume: the checkpoint, and how exact the continuation is."""

from pathlib import Path

from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Resumed:
    """The checkpoint that a run continues from, and how exactly."""

    checkpoint: Checkpoint
    differs: tuple[str, ...]  # why it may not be bit for bit; empty: it is
    refused: tuple[str, ...]  # newer checkpoints that were not used, and why
    unverified: tuple[str, ...] = ()  # what cannot be compared

    @property
    def step(self) -> int:
        """Step of the checkpoint."""
        return self.checkpoint.step

    @property
    def folder(self) -> Path:
        """Folder of the checkpoint."""
        return self.checkpoint.folder

    @property
    def sentence(self) -> str:
        """Sentence for the user: bit-exact, or the reasons why not."""
        start = f"resumed at step {self.step:,} from {self.folder.name}"
        doubt = f" (unverified: {'; '.join(self.unverified)})" if self.unverified else ""
        if self.differs:
            return f"{start}: continues, not bit-exact because {'; '.join(self.differs)}{doubt}"
        promise = "bit-exact on this machine, with these versions, threads and processes"
        return (
            f"{start}: {promise}, if the code is the same{doubt}"
            if doubt
            else f"{start}: {promise}"
        )
