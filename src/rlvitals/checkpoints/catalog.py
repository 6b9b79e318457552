"""List the checkpoints of a run folder, and rename or delete them."""

import os
from collections.abc import Iterator
from pathlib import Path

from rlvitals.checkpoints import disk, naming, other_trainers, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import (
    BadCheckpoint,
    CannotResume,
    Manifest,
    NewerSeal,
    NotSealed,
    UnreadableCheckpoint,
)
from rlvitals.checkpoints.owner import Tell
from rlvitals.checkpoints.retention import Policy, make_entry, select_surplus
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import holds


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One sealed checkpoint."""

    folder: Path
    manifest: Manifest  # its step, metrics, files with their hashes

    @property
    def step(self) -> int:
        """Step it was saved at."""
        return self.manifest.step

    @property
    def size(self) -> int:
        """Size of its files in bytes."""
        return sum(file.size for file in self.manifest.files.values())


@dataclass(frozen=True, slots=True)
class Refusal:
    """A checkpoint that does not match its manifest."""

    folder: Path
    step: int
    reason: str


class Catalog:
    """The checkpoints in a run's folder."""

    def __init__(self, folder: Path, run_id: str, tell: Tell) -> None:
        """Read `folder`; of checkpoints with a run id, only those of `run_id`."""
        self.folder, self._run_id, self.tell = folder, run_id, tell
        self.mirror = ""  # URL that the run is uploaded to
        self.attempt = 0  # of this process
        self.base: int | None = None  # the step it went on from; None: not asked yet
        self.sequence = 0  # the highest when this process began
        self.process = ""  # that saves for a group of processes; empty: this one, for itself
        self.others: frozenset[str] = frozenset()  # processes that save here at the same time

    def fetch_newer(self, *, fresh: bool) -> tuple[int, int]:
        """Fetch what the run's bucket has from another machine. Raises CannotResume.

        Returns the highest sequence and attempt there.
        """
        from rlvitals.checkpoints.transfer import newer_checkpoints  # noqa: PLC0415 - optional

        return newer_checkpoints.fetch_newer(
            self.folder, self.mirror, self._run_id, self.tell, fresh=fresh
        )

    def iter_sealed(self) -> Iterator[Checkpoint]:
        """Yield the sealed checkpoints of any run, in the order of steps."""
        for path in self._steps().values():
            try:
                yield Checkpoint(path, manifests.read(path))
            except BadCheckpoint:
                continue  # `unreadable` says so

    def list_usable(self) -> list[Checkpoint]:
        """Return the checkpoints that this run may continue from, the newest first."""
        checkpoints = [
            checkpoint
            for checkpoint in self.iter_sealed()
            if self._is_of_run(checkpoint) and not self._is_stale(checkpoint)
        ]
        return sorted(checkpoints, key=lambda checkpoint: -checkpoint.manifest.sequence)

    def list_stale(self) -> list[Checkpoint]:
        """Return this run's checkpoints of later steps than the one it continued from."""
        return [
            checkpoint
            for checkpoint in self.iter_sealed()
            if self._is_of_run(checkpoint) and self._is_stale(checkpoint)
        ]

    def find_damaged(self) -> Iterator[Refusal]:
        """Yield checkpoints with a damaged manifest; report folders of other programs."""
        for step, folder in self._steps().items():
            try:
                manifests.read(folder, step)
            except NotSealed as error:
                self.tell(f"{folder.name} is not used, and left as it is: {error.problem}")
            except BadCheckpoint as error:
                yield Refusal(folder, step, error.problem)

    def sealed_folders(self) -> Iterator[Path]:
        """Yield the folders that any run or version sealed, even if damaged since."""
        for path in self._steps().values():
            try:
                manifests.read(path)
            except BadCheckpoint as error:
                if isinstance(error, NotSealed) and not isinstance(error, NewerSeal):
                    continue
            yield path

    def explain_refusal(self, folder: Path) -> str:
        """Return why this run does not continue from a folder with a manifest."""
        try:
            sealed = manifests.read(folder)
        except BadCheckpoint as error:
            return error.problem
        if sealed.run_id not in {"", self._run_id}:
            return f"of another run, {sealed.run_id}; this one is {self._run_id or 'not recorded'}"
        return "of a step that the run went back behind"

    def set_all_aside(self) -> None:
        """Rename every checkpoint: the run starts at step 0. Raises CannotResume."""
        for path in [*self.sealed_folders()]:
            self.set_aside_for_fresh_start(path)

    def set_aside_for_fresh_start(self, path: Path) -> None:
        """Rename a checkpoint for a start at step 0. Raises CannotResume."""
        target = naming.set_aside_path(self.folder, naming.step_of(path), naming.FRESH_START_SUFFIX)
        try:
            path.rename(target)
        except OSError as error:
            problem = f"it cannot be set aside for a fresh start: {error.strerror}"
            raise CannotResume(problem, where=str(path)) from None
        self.tell(f"{path.name} is set aside: it lies in {target.name} now")

    def set_aside(self, refusal: Refusal) -> str:
        """Rename a refused checkpoint, and report why; return the message."""
        folder = refusal.folder
        target = naming.set_aside_path(self.folder, refusal.step)
        message = f"{folder.name} is not used: {refusal.reason}"
        try:
            folder.rename(target)
            if not target.is_symlink():
                disk.replace_text(target / "why.txt", f"{message}\n")
            message = f"{message}; it lies in {target.name}"
        except OSError:
            message = f"{message}; it could not be set aside"
        self.tell(message)
        return message

    def prune(self, policy: Policy) -> None:
        """Delete surplus checkpoints. Report and keep what cannot be read or deleted."""
        try:
            checkpoints = {
                checkpoint.manifest.sequence: checkpoint for checkpoint in self.list_usable()
            }
        except (OSError, UnreadableCheckpoint) as error:
            self.tell(f"no older checkpoint is deleted, one cannot be read: {error}")
            return
        for expendable in select_surplus(
            [
                make_entry(checkpoint.manifest, has_hold=holds.applies(checkpoint.folder))
                for checkpoint in checkpoints.values()
            ],
            policy,
        ):
            try:
                recovery.delete_checkpoint(self.folder, checkpoints[expendable.sequence].folder)
            except OSError as error:
                self.tell(f"checkpoint-{expendable.step} could not be deleted: {error.strerror}")

    def _steps(self) -> dict[int, Path]:
        """Return the folders with a checkpoint's name. Raises UnreadableCheckpoint."""
        with manifests.read_errors(self.folder):
            return naming.find_checkpoints(self.folder)

    def find_other_trainers(self) -> int:
        """Find processes that save here at the same time; report each of them once.

        Their checkpoints are neither used nor deleted from then on. Returns their highest sequence,
        or 0.
        """
        try:
            saved = [checkpoint.manifest for checkpoint in self.iter_sealed()]
        except UnreadableCheckpoint:
            return 0  # the next save that can read all of them reports them
        theirs = other_trainers.newer_than(self.sequence, saved, self.process)
        for manifest in theirs:
            if manifest.process not in self.others:
                self.others |= {manifest.process}
                trainer = other_trainers.label(manifest.process)
                self.tell(
                    f"another training saves into this folder: {self.folder}: "
                    f"{naming.CHECKPOINT_PREFIX}{manifest.step} is of {trainer}, this is process "
                    f"{os.getpid()}; each keeps its own checkpoints, a resume takes the newest "
                    "of both: end one of them, or give it a folder of its own"
                )
        return max((manifest.sequence for manifest in theirs), default=0)

    def move_other_aside(self, step: int) -> None:
        """Set aside a step's checkpoint that another process saved. Raises OSError."""
        target = naming.checkpoint_path(self.folder, step)
        try:
            theirs = manifests.read(target).process in self.others
        except BadCheckpoint:
            return
        if theirs:
            aside = naming.set_aside_path(self.folder, step, naming.OTHER_RUN_SUFFIX)
            target.rename(aside)
            self.tell(f"{target.name} of the other training lies in {aside.name} now")

    def _is_of_run(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.manifest.process in self.others:
            return False
        return not self._run_id or checkpoint.manifest.run_id in {"", self._run_id}

    def _is_stale(self, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint is of a later step than this attempt began at."""
        saved = checkpoint.manifest
        # A run that was not recorded counts its attempts by itself.
        is_this_attempt = saved.attempt == self.attempt and saved.run_id == self._run_id
        return self.base is not None and not is_this_attempt and checkpoint.step > self.base
