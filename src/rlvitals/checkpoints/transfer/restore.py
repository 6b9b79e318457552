"""Restore a run from its backup: every file verified, the folder complete or absent."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.transfer import (
    backup_index,
    byte_text,
    copy_files,
    file_selection,
    index_check,
    path_safety,
)
from rlvitals.checkpoints.transfer.backup_index import Index, Version
from rlvitals.checkpoints.transfer.copy_files import CopyMismatch, RetryPolicy, SourceChanged
from rlvitals.checkpoints.transfer.filesystems import LocalFolder, RemoteFiles
from rlvitals.checkpoints.transfer.verify_remote import (
    RemoteCheckpoint,
    named_checkpoints,
    unnamed_checkpoints,
)
from rlvitals.checkpoints.transfer.work_folder import open_work_folder, put_in_place
from rlvitals.errors import UnreadableLog, UsageError, VitalsError
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class Restored:
    """Result of a restore."""

    folder: Path
    newest: int | None = None  # the step of the newest checkpoint
    checkpoints: int = 0
    files: int = 0
    size: int = 0  # bytes
    aside: Path | None = None  # the folder that it replaced
    damaged: list[str] = field(default_factory=list)  # sentences: what could not be restored
    left: list[str] = field(default_factory=list)  # sentences: what was not restored


@dataclass(frozen=True, slots=True)
class _Restore:
    remote: RemoteFiles
    sizes: Mapping[str, int]
    work_folder: LocalFolder  # where it is restored to
    present: Mapping[str, int]  # files of an earlier try: size in bytes
    result: Restored
    patience: RetryPolicy

    def copy(self, piece: copy_files.Piece, target: str) -> None:
        is_started = self.present.get(target) == piece.size
        if not (is_started and copy_files.is_same(self.work_folder, piece, target, self.patience)):
            copy_files.copy_piece(self.work_folder, piece, target, self.patience)
        self.result.files += 1
        self.result.size += piece.size


def restore(  # noqa: PLR0913 - what is restored, and how, each by its name
    remote: RemoteFiles,
    folder: Path | None = None,
    *,
    force: bool = False,
    patience: RetryPolicy | None = None,
    tell: Callable[[str], None] = lambda _: None,
    mirror_prefixes: tuple[str, ...] = (),
) -> Restored:
    """Restore a run into a folder (default: the name of the run's folder, in the working folder).

    An existing folder is set aside if it contains the same run at an older step; else only with
    `force`. `mirror_prefixes`: see `claim_index`. Raises UnreadableLog, UsageError, OSError.
    """
    patience = patience or RetryPolicy()
    sizes = patience.call(remote.sizes)
    index = backup_index.read_index(remote, sizes, patience)
    if index is None:
        problem = "no backup is here" if sizes else "nothing is here"
        hint = "the TARGET that `rlvitals backup RUN TARGET` was given"
        raise UnreadableLog(problem, where=remote.name, hint=hint)
    target = folder or Path(_check_folder_name(index.name))
    finished = named_checkpoints(remote, sizes, patience)
    checkpoints = {**unnamed_checkpoints(remote, sizes, patience), **finished}
    arrived = sorted(checkpoints.values(), key=lambda checkpoint: -checkpoint.manifest.sequence)
    _check_target(target, index, arrived, force=force)
    with open_work_folder(target, "restoring", go_on=True) as work_folder:
        present, result = LocalFolder(work_folder).sizes(), Restored(target)
        work = _Restore(remote, sizes, LocalFolder(work_folder), present, result, patience)
        _check_space(work_folder, index, arrived, present)
        _restore_checkpoints(work, [c for c in arrived if not _is_foreign(work, index, c)], tell)
        usable = {naming.checkpoint_path(Path(), c.manifest.step).name for c in arrived}
        result.damaged += index_check.describe_damage(sizes, usable)
        result.left += index_check.describe_extra_files(index, sizes, mirror_prefixes)
        result.left += index_check.describe_missing(index, sizes, usable)
        _restore_logs(work, index)
        _delete_old_files(work)
        work.result.aside = put_in_place(work_folder, target)
    return work.result


def _is_foreign(work: _Restore, index: Index, checkpoint: RemoteCheckpoint) -> bool:
    """Return whether a checkpoint in a backup is of another run, and report it."""
    is_foreign = bool(index.run_id) and checkpoint.manifest.run_id not in {"", index.run_id}
    if is_foreign:
        work.result.damaged.append(f"{checkpoint.name} is another run's, not restored")
    return is_foreign


def _check_target(
    target: Path, index: Index, arrived: list[RemoteCheckpoint], *, force: bool
) -> None:
    """Check whether the folder may be replaced. Raises UsageError."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise UsageError("this is a file, a folder is needed", where=str(target), hint="-o FOLDER")
    if force or not any(target.iterdir()):
        return
    hint = "name another folder with -o, or --force: what is there is set aside, not deleted"
    try:
        content = file_selection.find_content(target)
    except VitalsError:
        problem = "the folder is not empty, and holds no run"
        raise UsageError(problem, where=str(target), hint=hint) from None
    if content.run_id != index.run_id or not index.run_id:
        raise UsageError("the folder holds another run", where=str(target), hint=hint)
    newest = max((checkpoint.manifest.sequence for checkpoint in arrived), default=0)
    newer = [
        checkpoint for checkpoint in content.checkpoints if checkpoint.manifest.sequence >= newest
    ]
    if newer or not arrived:
        backup_state = f"step {arrived[0].manifest.step:,}" if arrived else "no checkpoint"
        own_state = (
            f"step {content.checkpoints[0].step:,}" if content.checkpoints else "its own logs"
        )
        problem = (
            f"the folder is as new as the backup: {own_state} there, {backup_state} in the backup"
        )
        raise UsageError(problem, where=str(target), hint=hint)


def _check_space(
    work_folder: Path, index: Index, arrived: list[RemoteCheckpoint], present: Mapping[str, int]
) -> None:
    needed_bytes = sum(
        file_selection.checkpoint_bytes(checkpoint.manifest) for checkpoint in arrived
    )
    needed_bytes += sum(versions[-1].size for versions in index.files.values() if versions)
    needed_bytes -= sum(present.values())
    free_bytes = LocalFolder(work_folder).room()
    if free_bytes is not None and free_bytes < needed_bytes:
        raise VitalsError(
            byte_text.format_no_room(needed_bytes, free_bytes),
            where=str(work_folder.parent.parent),
            hint="name a folder on another disk with -o",
        )


def _restore_checkpoints(
    work: _Restore, arrived: list[RemoteCheckpoint], tell: Callable[[str], None]
) -> None:
    """Restore each checkpoint, its manifest last; skip damaged ones."""
    for checkpoint in arrived:
        name = naming.checkpoint_path(Path(), checkpoint.manifest.step).name
        try:
            for file, fields in sorted(checkpoint.manifest.files.items()):
                source = f"{checkpoint.name}/{file}"
                piece = copy_files.remote_piece(work.remote, source, fields.size, fields.xxh3_128)
                work.copy(piece, f"{name}/{file}")
            manifests.write(work.work_folder.path / name, checkpoint.manifest)
        except (SourceChanged, CopyMismatch, FileNotFoundError) as error:
            work.result.damaged.append(f"{name} is damaged in the backup, not restored: {error}")
            shutil.rmtree(work.work_folder.path / name, ignore_errors=True)
            continue
        if not work.result.checkpoints:
            work.result.newest = checkpoint.manifest.step
            LocalFolder(work.work_folder.path).write(naming.LATEST_FILE, (f"{name}\n".encode(),))
        work.result.checkpoints += 1
        size = byte_text.format_bytes(file_selection.checkpoint_bytes(checkpoint.manifest))
        tell(f"{name}: {size} restored and verified")


def _restore_logs(work: _Restore, index: Index) -> None:
    for name, versions in index.files.items():
        is_internal = index_check.is_backup_file(name)
        if reason := path_safety.find_problem(name) or (
            "it is part of a checkpoint, or hidden" if is_internal else ""
        ):
            raise UnreadableLog(f"the backup names {name!r}: {reason}", where=work.remote.name)
        if name not in work.sizes:
            if backup_index.NO_VERSION not in versions:
                work.result.damaged.append(f"{name} is missing in the backup")
        elif not any(
            _restore_version(work, name, version)
            for version in _order_versions(versions, work.sizes[name])
        ):
            work.result.damaged.append(f"{name} is damaged in the backup, not restored")


def _order_versions(versions: tuple[Version, ...], size: int) -> list[Version]:
    """Return the possible versions: that of this size first, then shorter ones."""
    candidates = [version for version in versions if 0 <= version.size <= size]
    return sorted(candidates, key=lambda version: (version.size != size, -version.size))


def _restore_version(work: _Restore, name: str, version: Version) -> bool:
    try:
        work.copy(copy_files.remote_piece(work.remote, name, version.size, version.xxh3_128), name)
    except SourceChanged:
        return False
    return True


def _delete_old_files(work: _Restore) -> None:
    """Delete what an earlier try restored from a backup that has changed since."""
    work_folder = work.work_folder.path
    generated = {naming.LATEST_FILE}
    for path in LocalFolder(work_folder).sizes():
        top = path.split("/", 1)[0]
        is_sealed = (
            naming.CHECKPOINT_NAME.fullmatch(top) and (work_folder / top / MANIFEST_FILE).exists()
        )
        is_hidden = path.startswith(".") or path.rpartition("/")[2].startswith(".")
        is_current = path in work.sizes and not is_hidden
        if path not in generated and not is_sealed and not is_current:
            work.work_folder.remove([path])


def _check_folder_name(name: str) -> str:
    """Return a folder's name from a backup. Raises UsageError if it is invalid."""
    if "/" in name or path_safety.find_problem(name):
        raise UsageError(f"the backup names no folder: {name!r}", hint="name one: -o FOLDER")
    return name
