"""Where a Hugging Face training goes on: the newest checkpoint that is known to be whole."""

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
from rlvitals.checkpoints.huggingface_folder import InPlace, Owner
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
    """Return the path that a Hugging Face trainer is to go on from; None: it starts afresh.

        trainer.train(resume_from_checkpoint=rlvitals.resume_from(args))

    `where`: TrainingArguments, a trainer, or the output folder. Each checkpoint is verified to the
    bit, the newest first; a damaged one is set aside as `checkpoint-150.corrupt`, and the next
    older one is taken. What was chosen, and how truly the training goes on, is told (default:
    standard error). With several processes all of them must call this, and have one answer.
    `check` is called, on the first process, with the checkpoint before it is told: what it raises
    as a VitalsError is raised on all of them. `fresh` starts at step 0: every checkpoint is set
    aside as `checkpoint-150.before-fresh`.

    Raises CannotResume, and renames nothing, where a file cannot be read, where none of the sealed
    checkpoints can be resumed from, and with `require_resume` where there is none; UsageError
    where all that is there was never sealed: nothing is begun over it.
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
    owner = Owner(folder, "", 0, size, huggingface.computing(args))
    return _run_on_first(owner, begin, first=args.process_index == 0)


def _folder_owner(folder: Path) -> Owner:
    """Own the checkpoints of a folder. Raises UsageError where several processes train."""
    if launcher_rank.place(os.environ).world_size > 1:
        raise UsageError(
            "several processes cannot agree on a folder alone",
            where=str(folder),
            hint="hand over the arguments: rlvitals.resume_from(args)",
        )
    return Owner(folder)


def _run_on_first(owner: Owner, begin: Callable[[Owner], str | None], *, first: bool) -> str | None:
    """Look on the first process alone: two would rename what they refuse from under each other."""
    path, failure = None, None
    if first:
        try:
            path = begin(owner)
        except VitalsError as error:
            failure = error
    path, failure = accelerate_group.agreed((path, failure), owner.world_size)
    if failure is not None:
        raise failure
    return path


def _find_checkpoint(
    owner: Owner,
    tell: Callable[[str], None] | None,
    check: Check | None,
    *,
    fresh: bool,
    require_resume: bool,
) -> str | None:
    with manifests.reading(owner.folder):
        owner.id = _read_run_id(owner.folder)
        checkpoints = _Resumable(owner, tell=tell)
        if not fresh:
            checkpoints.refuse_to_begin_over()
    resumed = checkpoints.restore(check, fresh=fresh, require_resume=require_resume)
    return None if resumed is None else str(resumed.folder)


def _read_run_id(folder: Path) -> str:
    """Return the id of the run that is recorded here; empty, any run's, where that is lost."""
    try:
        return read_about(folder / RUN_FILE).id
    except LostRun:
        return ""


class _CompleteCatalog(Catalog):
    """What lies in a trainer's folder; weights alone are no checkpoint."""

    def list_usable(self) -> list[Checkpoint]:
        """Return those that hold more than weights, the newest first."""
        return [
            checkpoint
            for checkpoint in super().list_usable()
            if not checkpoint.manifest.facts.get("weights_only")
        ]

    def find_damaged(self) -> Iterator[Refusal]:
        """Find those whose manifest is damaged, and tell of each that is not used why."""
        for step, folder in naming.steps(self.folder).items():
            try:
                sealed = manifests.read(folder, step)
            except NotSealed as error:
                has_manifest = (folder / naming.MANIFEST).exists()  # newer, or of another program
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
        """Say why this run does not go on from a folder with a manifest."""
        with suppress(BadCheckpoint):
            if manifests.read(folder).facts.get("weights_only"):
                return "it holds weights alone"
        return super().explain_refusal(folder)

    def set_all_aside(self) -> None:
        """Rename every checkpoint, sealed or not: the Trainer would write into it. CannotResume."""
        for path in naming.steps(self.folder).values():
            self.set_aside_for_fresh_start(path)

    def _explain_missing_seal(self, folder: Path, step: int) -> str:
        problem = huggingface.find_damage(folder, step)
        if problem:
            return f"it was never finished: {problem}"
        return (
            "it looks whole, but its process ended before it was sealed "
            f"(rlvitals checkpoints {self.folder} --seal: it is taken as it is)"
        )


class _Resumable(InPlace):
    """The checkpoints of a trainer that a training can go on from."""

    _catalog_type = _CompleteCatalog

    def refuse_to_begin_over(self) -> None:
        """Leave a training alone that was saved without a seal. Raises UsageError."""
        folders = naming.steps(self.folder)
        marks = (self.folder / progress_file.FILE, *(p / naming.MANIFEST for p in folders.values()))
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
