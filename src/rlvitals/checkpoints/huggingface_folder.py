"""Checkpoints that another program writes directly into their final folders.

A Hugging Face trainer writes `checkpoint-150/` file by file. It counts as a checkpoint when its
manifest exists, which is written after all its bytes are on the disk: a folder of a killed process
has none, and is never resumed from.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path

from rlvitals.checkpoints import disk, huggingface, naming, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.commit import check_complete
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume
from rlvitals.checkpoints.training_code import code
from rlvitals.errors import VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import holds

KEEP_ALL = sys.maxsize  # to keep: all of them


class HuggingFaceCheckpoints(Checkpoints):
    """The checkpoints of a run whose trainer writes them; the options are those of Checkpoints."""

    _hidden: tuple[int, Path] | None = None  # an older checkpoint of the step that may be saved

    def tell(self, text: str) -> None:
        """Report a message to the user and the run."""
        self._tell(text)

    def has_room(self, step: int) -> bool:
        """Return whether the disk has room for another checkpoint, and report if not."""
        return self._has_room(step)

    def goes_on_from(self, step: int) -> None:
        """Set the step at which this process begins: later checkpoints are of another attempt."""
        self._catalog.base, self._saved = step or -1, step or None
        for stale in self._catalog.list_stale():
            self._tell(f"{stale.folder.name} is of a later step: it is left as it is")

    def seal(
        self,
        step: int,
        *,
        metrics: Mapping[str, float] | None = None,
        facts: Mapping[str, object] | None = None,
        shielded: frozenset[int] = frozenset(),
    ) -> Checkpoint | None:
        """Seal the folder of a step, then delete surplus checkpoints.

        `shielded`: steps that are kept as long as they are listed here. Returns None, and reports
        why, if the folder cannot be sealed: a file is missing, or the disk is full.
        """
        folder = naming.checkpoint_path(self.folder, step)
        try:
            sealed = self._sealed_in_place(folder, step, metrics or {}, facts or {})
        except (BadCheckpoint, CannotResume, OSError) as error:
            problem = error.problem if isinstance(error, VitalsError) else str(error)
            self._tell(f"{folder.name} is not sealed, and will not be resumed from: {problem}")
            return None
        self._forget()
        self.policy = replace(self.policy, shielded=shielded)
        self._catalog.prune(self.policy)
        return sealed

    def hide(self, step: int) -> None:
        """Rename an older checkpoint of a step before the trainer writes to its name.

        Written over, the folder would contain files of both.
        """
        folder, hidden = (
            naming.checkpoint_path(self.folder, step),
            naming.unfinished_path(self.folder, step),
        )
        self._catalog.find_other_trainers()
        self._catalog.move_other_aside(step)
        if not folder.exists():
            return
        if holds.applies(folder):
            aside = naming.set_aside_path(self.folder, step, naming.OTHER_RUN_SUFFIX)
            folder.rename(aside)
            self._tell(f"{folder.name} is on hold: it lies in {aside.name} now")
            return
        recovery.writing.add(hidden)  # in use by this process: not to be removed
        try:
            folder.rename(hidden)
        except OSError as error:
            self._tell(f"{folder.name} will be written over: {error.strerror}")
            recovery.writing.discard(hidden)
        else:
            self._hidden = step, hidden

    def show(self) -> None:
        """Restore a hidden checkpoint whose replacement was not saved or sealed."""
        if self._hidden is None:
            return
        step, hidden = self._hidden
        if (hidden / naming.MANIFEST_FILE).exists():
            recovery.move_unsealed_aside(self.folder, step)
        target = naming.checkpoint_path(self.folder, step)
        if not target.exists():
            hidden.rename(target)
        self._forget()

    def _sealed_in_place(
        self, folder: Path, step: int, metrics: Mapping[str, float], facts: Mapping[str, object]
    ) -> Checkpoint:
        """Sync the folder to disk, and write its manifest. Raises BadCheckpoint, OSError."""
        if not folder.is_dir():
            raise BadCheckpoint("there is no such folder", where=str(folder))
        check_complete(folder, manifests.list_files(folder), self.holds)
        disk.sync_tree(folder)
        draft = self._draft_manifest(step, metrics, facts, pinned=False)
        if not draft.facts.get("adopted"):  # else another process trained
            draft = replace(draft, code=code.record())
        sealed = manifests.seal(folder, draft)
        disk.sync_folder(self.folder)
        disk.replace_text(self.folder / naming.LATEST_FILE, f"{folder.name}\n")
        self._sequence, self._saved = sealed.sequence, step
        return Checkpoint(folder, sealed)

    def _forget(self) -> None:
        if self._hidden is None:
            return
        _, hidden = self._hidden
        if hidden.exists():
            recovery.delete_folder(hidden)
        recovery.writing.discard(hidden)
        self._hidden = None


@dataclass(slots=True)  # not frozen: it replaces a run, whose fields are not
class FolderOwner:
    """The owner of checkpoints that belong to no recorded run."""

    folder: Path
    id: str = ""  # empty: anybody's
    attempt: int = 0  # 0: counted
    world_size: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)
    tell: Callable[[str], None] | None = None

    def note(self, text: str) -> None:
        """Pass on a message."""
        if self.tell is not None:
            self.tell(text)


def adopt(folder: Path, *, tell: Callable[[str], None] | None = None) -> tuple[Checkpoint, ...]:
    """Seal the unsealed checkpoints of a Hugging Face trainer, the oldest first.

    Truncated or damaged ones are reported, and left unchanged. The content of the others is
    accepted as it is: an earlier bit flip cannot be detected.
    """
    sealed_checkpoints = []
    steps = naming.find_checkpoints(folder)
    newest = max((step for step, path in steps.items() if _has_manifest(path)), default=-1)
    for step, path in steps.items():
        if _has_manifest(path):
            continue
        names = [file.relative_to(path).as_posix() for file in disk.walk_files(path)]
        owner = FolderOwner(folder, world_size=huggingface.count_processes(names))
        folder_checkpoints = HuggingFaceCheckpoints(owner, keep=KEEP_ALL, tell=tell)
        problem = huggingface.find_damage(path, step)
        if step < newest:  # sealed after it, it would pass for the newest
            problem = f"{naming.CHECKPOINT_PREFIX}{newest} is newer, and sealed"
        if problem:
            folder_checkpoints.tell(f"{path.name} is not sealed: {problem}")
        elif (sealed := folder_checkpoints.seal(step, facts={"adopted": True})) is not None:
            sealed_checkpoints.append(sealed)
    return tuple(sealed_checkpoints)


def _has_manifest(path: Path) -> bool:
    return (path / naming.MANIFEST_FILE).exists()
