"""What checkpoints lie in a run's folder, and which of them a run may go on from."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvitals.resume import cleaning, naming, other_trainers
from rlvitals.resume import manifest as manifests
from rlvitals.resume.manifest import BadCheckpoint, Manifest, NotSealed
from rlvitals.resume.owner import Tell
from rlvitals.resume.retention import Policy, entry, surplus


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One sealed checkpoint."""

    folder: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        """The step it was saved at."""
        return self.manifest.step

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.manifest.files.values())


class Shelf:
    """The checkpoints in a run's folder."""

    def __init__(self, folder: Path, run_id: str, tell: Tell) -> None:
        """Look into `folder`; of checkpoints with a run's id, at those of `run_id` alone."""
        self.folder, self._run_id, self.tell = folder, run_id, tell
        self.attempt = 0  # of this process
        self.base: int | None = None  # the step it went on from; None: not asked yet
        self.sequence = 0  # the highest when this process began
        self.others: frozenset[str] = frozenset()  # processes that save here at the same time

    def sealed(self) -> Iterator[Checkpoint]:
        """Go through the sealed checkpoints of any run, in the order of steps."""
        for path in naming.steps(self.folder).values():
            try:
                yield Checkpoint(path, manifests.read(path))
            except BadCheckpoint:
                continue  # `unreadable` says so

    def own(self) -> list[Checkpoint]:
        """Return this run's checkpoints that it may go on from, the newest first."""
        found = [one for one in self.sealed() if self._is_own(one) and not self._is_stale(one)]
        return sorted(found, key=lambda one: -one.manifest.sequence)

    def stale(self) -> list[Checkpoint]:
        """Return this run's checkpoints of steps that it has gone back behind."""
        return [one for one in self.sealed() if self._is_own(one) and self._is_stale(one)]

    def unreadable(self) -> Iterator[str]:
        """Set aside those whose manifest is damaged; folders of other programs stay."""
        for step, folder in naming.steps(self.folder).items():
            try:
                manifests.read(folder, step)
            except NotSealed as error:
                self.tell(f"{folder.name} is not used, and left as it is: {error.problem}")
            except BadCheckpoint as error:
                yield self.set_aside(folder, step, error.problem)

    def set_aside(self, folder: Path, step: int, why: str) -> str:
        """Rename a checkpoint that is refused, and tell why; returns what was told."""
        target = naming.aside(self.folder, step)
        said = f"{folder.name} is not used: {why}"
        try:
            folder.rename(target)
            (target / "why.txt").write_text(f"{said}\n")
            said = f"{said}; it lies in {target.name}"
        except OSError:
            said = f"{said}; it could not be set aside"
        self.tell(said)
        return said

    def prune(self, policy: Policy) -> None:
        """Delete what need not be kept. What cannot be deleted is told, and left."""
        own = {one.manifest.sequence: one for one in self.own()}
        for gone in surplus([entry(one.manifest) for one in own.values()], policy):
            try:
                cleaning.retire(self.folder, own[gone.sequence].folder)
            except OSError as error:
                self.tell(f"checkpoint-{gone.step} could not be deleted: {error.strerror}")

    def meet(self) -> int:
        """Look for processes that save here at the same time, and tell of each one once.

        Their checkpoints are neither used nor deleted from now on. Returns the highest sequence
        of theirs, or 0.
        """
        theirs = other_trainers.newer_than(self.sequence, (each.manifest for each in self.sealed()))
        for manifest in theirs:
            if manifest.process not in self.others:
                self.others |= {manifest.process}
                trainer = other_trainers.label(manifest.process)
                self.tell(
                    f"another training saves into this folder: {self.folder}: "
                    f"{naming.PREFIX}{manifest.step} is of {trainer}, this is process "
                    f"{os.getpid()}; each keeps its own checkpoints, a resume takes the newest "
                    "of both: end one of them, or give it a folder of its own"
                )
        return max((manifest.sequence for manifest in theirs), default=0)

    def make_way(self, step: int) -> None:
        """Set aside a step's checkpoint that another process saved meanwhile. OSError."""
        target = naming.final(self.folder, step)
        try:
            theirs = manifests.read(target).process in self.others
        except BadCheckpoint:
            return
        if theirs:
            aside = naming.aside(self.folder, step, naming.OTHER)
            target.rename(aside)
            self.tell(f"{target.name} of the other training lies in {aside.name} now")

    def _is_own(self, one: Checkpoint) -> bool:
        if one.manifest.process in self.others:
            return False
        return not self._run_id or one.manifest.run_id in {"", self._run_id}

    def _is_stale(self, one: Checkpoint) -> bool:
        """See a checkpoint of a step that this attempt has gone back behind."""
        saved = one.manifest
        # A run that was not recorded counts its attempts by itself.
        mine = saved.attempt == self.attempt and saved.run_id == self._run_id
        return self.base is not None and not mine and one.step > self.base
