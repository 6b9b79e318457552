"""Choose the checkpoint that a Hugging Face training resumes from."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import cast

from rlvitals.checkpoints import accelerate_group, huggingface, naming, progress_file
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.catalog import Catalog, Checkpoint, Refusal
from rlvitals.checkpoints.huggingface_folder import FolderOwner, HuggingFaceCheckpoints
from rlvitals.checkpoints.manifest import BadCheckpoint, NotSealed
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.run_folder import RUN_FILE, LostRun, read_about
from rlvitals.tracking import launcher_rank

Check = Callable[[Path], object]


def resume_from(
    where: object,
    *,
    tell: Callable[[str], None] | None = None,
    check: Check | None = None,
    fresh: bool = False,
    require_resume: bool = False,
) -> str | None:
    """Return the path for a Hugging Face trainer to resume from; None: it starts at step 0.

        trainer.train(resume_from_checkpoint=rlvitals.resume_from(args))

    Each checkpoint is verified bit for bit, the newest first; a damaged one is renamed to
    `checkpoint-150.corrupt`, and the next older one is used. With several processes all of them
    must call this, and get the same answer.

    Parameters
    ----------
    where : TrainingArguments, trainer or path
        The output folder, or what names it. A path is refused if several processes train.
    tell : callable, optional
        Receives each message for the user, a str: the choice and its exactness. Default: standard
        error.
    check : callable, optional
        Called on the first process with the folder of the checkpoint, before it is reported. A
        VitalsError that it raises is raised on all processes; a tuple of sentences that it returns
        states why the training does not continue bit for bit.
    fresh : bool
        Start at step 0: every checkpoint is renamed to `checkpoint-150.before-fresh`.
    require_resume : bool
        Raise CannotResume instead of starting at step 0.

    Raises
    ------
    CannotResume
        If a file cannot be read, if no sealed checkpoint can be resumed from, and with
        `require_resume` if there is none. Nothing is renamed.
    UsageError
        If complete checkpoints exist that were never sealed (a fresh start would overwrite them),
        if `where` names no folder, or if both `fresh` and `require_resume` are True.
    """
    begin = partial(
        _find_checkpoint, tell=tell, check=check, fresh=fresh, require_resume=require_resume
    )
    if isinstance(where, str | PathLike):
        return begin(_folder_owner(Path(where)))
    args = getattr(where, "args", where)
    if not hasattr(args, "output_dir"):
        raise UsageError(
            f"{type(where).__name__} names no output folder",
            where="rlvitals.resume_from()",
            hint="hand over TrainingArguments, a trainer, or the folder",
        )
    args = cast("huggingface.Arguments", args)
    folder, size = Path(args.output_dir or "."), int(args.world_size)
    owner = FolderOwner(folder, "", 0, size, huggingface.training_arguments(args))
    return _run_on_first(owner, begin, first=args.process_index == 0)


def _folder_owner(folder: Path) -> FolderOwner:
    """Return the owner of a folder. Raises UsageError if several processes train."""
    if launcher_rank.read_place(os.environ).world_size > 1:
        raise UsageError(
            "several processes cannot agree on a folder alone",
            where=str(folder),
            hint="hand over the arguments: rlvitals.resume_from(args)",
        )
    return FolderOwner(folder)


def _run_on_first(
    owner: FolderOwner, begin: Callable[[FolderOwner], str | None], *, first: bool
) -> str | None:
    """Choose on the first process only: two would rename the same folders."""
    path, failure = None, None
    if first:
        try:
            path = begin(owner)
        except VitalsError as error:
            failure = error
    path, failure = accelerate_group.broadcast((path, failure), owner.world_size)
    if failure is not None:
        raise failure
    return path


def _find_checkpoint(
    owner: FolderOwner,
    tell: Callable[[str], None] | None,
    check: Check | None,
    *,
    fresh: bool,
    require_resume: bool,
) -> str | None:
    with manifests.read_errors(owner.folder):
        try:
            owner.id = read_about(owner.folder / RUN_FILE).id
        except LostRun:
            owner.id = ""
        checkpoints = _Resumable(owner, tell=tell)
        if not fresh:
            checkpoints.refuse_to_begin_over()
    resumed = checkpoints.restore(check, fresh=fresh, require_resume=require_resume)
    return None if resumed is None else str(resumed.folder)


class _CompleteCatalog(Catalog):
    """The checkpoints in a trainer's folder, without those of weights only."""

    def list_usable(self) -> list[Checkpoint]:
        """Return those with more than weights, the newest first."""
        return [
            checkpoint
            for checkpoint in super().list_usable()
            if not checkpoint.manifest.facts.get("weights_only")
        ]

    def find_damaged(self) -> Iterator[Refusal]:
        """Yield checkpoints with a damaged manifest; report why others are not used."""
        for step, folder in naming.find_checkpoints(self.folder).items():
            try:
                sealed = manifests.read(folder, step)
            except NotSealed as error:
                has_manifest = (
                    folder / naming.MANIFEST_FILE
                ).exists()  # newer, or of another program
                problem = (
                    error.problem if has_manifest else self._explain_missing_seal(folder, step)
                )
                self.tell(f"{folder.name} is not used: {problem}")
            except BadCheckpoint as error:
                yield Refusal(folder, step, error.problem)
            else:
                if sealed.facts.get("weights_only"):
                    self.tell(f"{folder.name} is not used: it holds weights alone")

    def explain_refusal(self, folder: Path) -> str:
        """Return why this run does not continue from a folder with a manifest."""
        with suppress(BadCheckpoint):
            if manifests.read(folder).facts.get("weights_only"):
                return "it holds weights alone"
        return super().explain_refusal(folder)

    def set_all_aside(self) -> None:
        """Rename every checkpoint, sealed or not: the Trainer would overwrite it. CannotResume."""
        for path in naming.find_checkpoints(self.folder).values():
            self.set_aside_for_fresh_start(path)

    def _explain_missing_seal(self, folder: Path, step: int) -> str:
        problem = huggingface.find_damage(folder, step)
        if problem:
            return f"it was never finished: {problem}"
        return (
            "it looks whole, but its process ended before it was sealed "
            f"(rlvitals checkpoints {self.folder} --seal: it is taken as it is)"
        )


class _Resumable(HuggingFaceCheckpoints):
    """The checkpoints of a trainer that a training can continue from."""

    _catalog_type = _CompleteCatalog

    def refuse_to_begin_over(self) -> None:
        """Raise UsageError if complete checkpoints were saved without a manifest."""
        folders = naming.find_checkpoints(self.folder)
        marks = (
            self.folder / progress_file.PROGRESS_FILE,
            *(p / naming.MANIFEST_FILE for p in folders.values()),
        )
        complete_steps = [
            step for step, path in folders.items() if not huggingface.find_damage(path, step)
        ]
        if not complete_steps or any(path.exists() for path in marks):
            return
        raise UsageError(
            f"checkpoint-{complete_steps[-1]} looks whole, but it was saved without a seal: nobody "
            "can tell whether it is, and a fresh start would write over it",
            where=str(self.folder),
            hint=f"rlvitals checkpoints {self.folder} --seal: it is taken as it is; "
            "or begin in another folder",
        )
