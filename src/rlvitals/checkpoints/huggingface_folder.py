"""Checkpoints that another program writes straight into their final folders.

A Hugging Face trainer writes `checkpoint-150/` file by file. It counts once its manifest is
there, which is written after every byte of it is on the disk: what a killed process leaves has
none, and is never resumed from.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlvitals.checkpoints import disk, huggingface, naming, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.commit import check_complete
from rlvitals.checkpoints.manager import Checkpoints
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume
from rlvitals.checkpoints.training_code import code
from rlvitals.errors import VitalsError

EVERY = sys.maxsize  # to keep: all of them


class InPlace(Checkpoints):
    """The checkpoints of a run whose trainer writes them; the options are those of Checkpoints."""

    _hidden: tuple[int, Path] | None = None  # an older checkpoint of the step that may be saved

    def tell(self, text: str) -> None:
        """Tell a person, and the run."""
        self._tell(text)

    def has_room(self, step: int) -> bool:
        """Tell whether the disk takes another checkpoint, and tell a person where it does not."""
        return self._has_room(step)

    def goes_on_from(self, step: int) -> None:
        """Say at which step this process begins: later checkpoints are another attempt's."""
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
        """Seal what was written for a step, then delete what need not be kept.

        `shielded`: steps that are kept for as long as they are named here. Returns None, and
        tells why, where it cannot be sealed: a file is missing, or the disk is full.
        """
        folder = naming.final(self.folder, step)
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
        """Make way for a step's checkpoint: an older one of its name is put out of sight.

        Written over, half of one and half of the other would lie in one folder.
        """
        folder, hidden = naming.final(self.folder, step), naming.unfinished_path(self.folder, step)
        self._catalog.find_other_trainers()
        self._catalog.move_other_aside(step)
        if not folder.exists():
            return
        recovery.writing.add(hidden)  # it is this process's: nobody clears it away
        try:
            folder.rename(hidden)
        except OSError as error:
            self._tell(f"{folder.name} will be written over: {error.strerror}")
            recovery.writing.discard(hidden)
        else:
            self._hidden = step, hidden

    def show(self) -> None:
        """Put back what was hidden for a save that did not come, or could not be sealed."""
        if self._hidden is None:
            return
        step, hidden = self._hidden
        if (hidden / naming.MANIFEST).exists():
            recovery.move_unsealed_aside(self.folder, step)
        target = naming.final(self.folder, step)
        if not target.exists():
            hidden.rename(target)
        self._forget()

    def _sealed_in_place(
        self, folder: Path, step: int, metrics: Mapping[str, float], facts: Mapping[str, object]
    ) -> Checkpoint:
        """Have all of it on the disk, and write its manifest. BadCheckpoint, OSError."""
        if not folder.is_dir():
            raise BadCheckpoint("there is no such folder", where=str(folder))
        check_complete(folder, manifests.names(folder), self.holds)
        disk.settle(folder)
        draft = self._draft_manifest(step, metrics, facts, pinned=False)
        if not draft.facts.get("adopted"):  # else another process trained
            draft = replace(draft, code=code.record())
        sealed = manifests.seal(folder, draft)
        disk.sync_folder(self.folder)
        disk.write_whole(self.folder / naming.LATEST_FILE, f"{folder.name}\n")
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


@dataclass(slots=True)  # not frozen: it stands for a run, whose fields are not
class Owner:
    """Whose checkpoints these are, where it is no run that is being recorded."""

    folder: Path
    id: str = ""  # empty: anybody's
    attempt: int = 0  # 0: counted
    world_size: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)
    tell: Callable[[str], None] | None = None

    def note(self, text: str) -> None:
        """Hand a sentence on."""
        if self.tell is not None:
            self.tell(text)


def adopt(folder: Path, *, tell: Callable[[str], None] | None = None) -> tuple[Checkpoint, ...]:
    """Seal the checkpoints of a Hugging Face trainer that were never sealed, the oldest first.

    Those that look cut or damaged are told, and left as they are. What they hold is taken as it
    is from now on: nobody can tell whether a bit has flipped before.
    """
    sealed_checkpoints = []
    steps = naming.steps(folder)
    newest = max((step for step, path in steps.items() if _has_manifest(path)), default=-1)
    for step, path in steps.items():
        if _has_manifest(path):
            continue
        names = [file.relative_to(path).as_posix() for file in disk.files(path)]
        owner = Owner(folder, world_size=huggingface.count_processes(names))
        folder_checkpoints = InPlace(owner, keep=EVERY, tell=tell)
        problem = huggingface.find_damage(path, step)
        if step < newest:  # sealed after it, it would pass for the newest
            problem = f"{naming.CHECKPOINT_PREFIX}{newest} is newer, and sealed"
        if problem:
            folder_checkpoints.tell(f"{path.name} is not sealed: {problem}")
        elif (sealed := folder_checkpoints.seal(step, facts={"adopted": True})) is not None:
            sealed_checkpoints.append(sealed)
    return tuple(sealed_checkpoints)


def _has_manifest(path: Path) -> bool:
    return (path / naming.MANIFEST).exists()
