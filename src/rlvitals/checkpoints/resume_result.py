"""What a run goes on from, and the promise that is made of it."""

from dataclasses import dataclass
from pathlib import Path

from rlvitals.checkpoints.catalog import Checkpoint


@dataclass(frozen=True, slots=True)
class Resumed:
    """The checkpoint a run goes on from, and how truly."""

    checkpoint: Checkpoint
    differs: tuple[str, ...]  # why it may not be bit for bit; empty: it is
    refused: tuple[str, ...]  # newer checkpoints that were not used, and why
    unverified: tuple[str, ...] = ()  # what nobody can compare with what saved the checkpoint

    @property
    def step(self) -> int:
        """The step to go on from."""
        return self.checkpoint.step

    @property
    def folder(self) -> Path:
        """Where the state lies."""
        return self.checkpoint.folder

    @property
    def sentence(self) -> str:
        """Say it: the promise, or why it cannot be made."""
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
