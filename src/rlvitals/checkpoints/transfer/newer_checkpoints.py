"""Fetch the checkpoints of a run's bucket to a machine that the job has moved to."""

import shutil
from collections.abc import Callable
from pathlib import Path

from rlvitals.checkpoints import commit, naming, recovery
from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints.manifest import BadCheckpoint, CannotResume, Manifest
from rlvitals.checkpoints.transfer import backup_index, byte_text, copy_files, file_selection
from rlvitals.checkpoints.transfer.copy_files import CopyMismatch, RetryPolicy, SourceChanged
from rlvitals.checkpoints.transfer.filesystems import LocalFolder, RemoteFiles
from rlvitals.checkpoints.transfer.fsspec_remote import open_url
from rlvitals.checkpoints.transfer.verify_remote import RemoteCheckpoint, named_checkpoints
from rlvitals.errors import VitalsError
from rlvitals.storage import redact


def fetch_newer(
    folder: Path, url: str, run_id: str, tell: Callable[[str], None], *, fresh: bool = False
) -> tuple[int, int]:
    """Fetch the bucket's checkpoints where the newest of them is newer than all of the folder's.

    Returns the highest sequence and attempt in the bucket. Raises CannotResume where the bucket has
    newer ones that cannot be fetched, or that a start at step 0 (`fresh`) would replace; and where
    it cannot be read or is another run's and the folder has no checkpoint.
    """
    local = {}
    for path in naming.find_checkpoints(folder).values():
        try:
            local[path.name] = manifests.read(path)
        except BadCheckpoint:
            continue
    patience = RetryPolicy()
    try:
        remote = open_url(url, {})
        by_age = _list_bucket(remote, run_id, patience)
    except Exception as error:
        problem = f"the checkpoints of the bucket are not used: {_text(error)}"
        if local or fresh:
            tell(problem)
            return 0, 0
        hint = f"try again; rlvitals restore URL -o {folder}; or begin at step 0: fresh=True"
        raise CannotResume(problem, where=redact.text(url), hint=hint) from error
    if not by_age:
        return 0, 0
    sequence = by_age[-1].manifest.sequence
    if sequence > max((each.sequence for each in local.values()), default=0):
        if fresh:
            problem = "the bucket has newer checkpoints, which a start at step 0 would replace"
            hint = "record to another URL, or fetch them first: without fresh=True"
            raise CannotResume(problem, where=remote.name, hint=hint)
        _fetch_all(folder, remote, by_age, local, tell, patience)
    return sequence, max(each.manifest.attempt for each in by_age)


def _list_bucket(remote: RemoteFiles, run_id: str, patience: RetryPolicy) -> list[RemoteCheckpoint]:
    """Return the complete checkpoints of the bucket, the oldest first.

    Raises VitalsError where they are another run's.
    """
    sizes = patience.call(remote.sizes)
    index = backup_index.read_index(remote, sizes, patience)
    present = named_checkpoints(remote, sizes, patience).values()
    if present and (index is None or index.run_id != run_id):
        raise VitalsError("they are another run's")
    return sorted(present, key=lambda checkpoint: checkpoint.manifest.sequence)


def _fetch_all(  # noqa: PLR0913, PLR0917 - what, from where, how
    folder: Path,
    remote: RemoteFiles,
    by_age: list[RemoteCheckpoint],
    local: dict[str, Manifest],
    tell: Callable[[str], None],
    patience: RetryPolicy,
) -> None:
    """Fetch what the folder lacks, the newest last: without it no upload deletes an older one."""
    lacking = [
        each for each in by_age
        if each.name not in local or local[each.name].sequence < each.manifest.sequence
    ]  # fmt: skip
    needed_bytes = sum(file_selection.checkpoint_bytes(each.manifest) for each in lacking)
    free_bytes = LocalFolder(folder).room()
    if free_bytes is not None and free_bytes < needed_bytes:
        problem = f"the bucket's checkpoints: {byte_text.format_no_room(needed_bytes, free_bytes)}"
        raise CannotResume(problem, where=str(folder), hint="make room there, and start again")
    for checkpoint in lacking:
        try:
            _fetch(folder, remote, checkpoint, patience)
        except (SourceChanged, CopyMismatch, FileNotFoundError) as error:
            tell(f"{checkpoint.name} of the bucket is not used, it is damaged there: {error}")
        except Exception as error:
            problem = f"the bucket has a newer checkpoint that is not fetched: {_text(error)}"
            hint = "start again; what has arrived is not fetched again"
            raise CannotResume(
                problem, where=f"{remote.name}/{checkpoint.name}", hint=hint
            ) from error
        else:
            size = byte_text.format_bytes(file_selection.checkpoint_bytes(checkpoint.manifest))
            tell(f"{checkpoint.name}: {size} fetched from {remote.name} and verified")


def _fetch(
    folder: Path, remote: RemoteFiles, checkpoint: RemoteCheckpoint, patience: RetryPolicy
) -> None:
    manifest = checkpoint.manifest
    work_folder = naming.unfinished_path(folder, manifest.step)
    recovery.writing.add(work_folder)
    try:
        for name, file in sorted(manifest.files.items()):
            source = f"{checkpoint.name}/{name}"
            piece = copy_files.remote_piece(remote, source, file.size, file.xxh3_128)
            copy_files.copy_piece(LocalFolder(work_folder), piece, name, patience)
        manifests.write(work_folder, manifest)
        commit.publish_folder(work_folder, manifest)
    finally:
        shutil.rmtree(work_folder, ignore_errors=True)
        recovery.writing.discard(work_folder)


def _text(error: Exception) -> str:
    problem = error.problem if isinstance(error, VitalsError) else str(error)
    return redact.text(problem) or type(error).__name__
