"""One round of a backup: copy and verify what is new, then delete what the run deleted."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming, provenance
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.transfer import (
    backup_index,
    byte_text,
    copy_files,
    file_selection,
    verify_remote,
)
from rlvitals.checkpoints.transfer.backup_index import NO_VERSION, Index, Version
from rlvitals.checkpoints.transfer.copy_files import Piece, RetryPolicy, SourceChanged
from rlvitals.checkpoints.transfer.file_selection import Content
from rlvitals.checkpoints.transfer.filesystems import LocalFolder, RemoteFiles
from rlvitals.checkpoints.transfer.sync_result import SyncResult
from rlvitals.checkpoints.transfer.timeouts import CallTimeout
from rlvitals.checkpoints.transfer.verify_remote import RemoteCheckpoint, named_checkpoints
from rlvitals.errors import UsageError, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import holds
from rlvitals.storage.run_folder import RUN_FILE

MAX_COPY_TRIES = 3  # of a file that is rewritten while it is copied
COMPACTED_SUFFIX = ".packed.rlv"  # replaces the block file it was made from


@dataclass(slots=True)
class _Sync:
    remote: RemoteFiles
    content: Content
    index: Index
    sizes: dict[str, int]
    patience: RetryPolicy
    result: SyncResult
    tell: Callable[[str], None]
    keeps_newer: bool = False  # another machine may have saved what is there
    is_outdated: bool = False  # a checkpoint was deleted or replaced since it was listed

    def copy(self, piece: Piece, name: str) -> None:
        copy_files.copy_piece(self.remote, piece, name, self.patience)
        self.result.files += 1
        self.result.size += piece.size

    def save_index(self, changed: Index) -> None:
        if changed != self.index:
            backup_index.write_index(self.remote, changed, self.patience)
            self.index = changed


def sync_run(  # noqa: PLR0913 - what, where to, how, each by its name
    folder: Path,
    remote: RemoteFiles,
    *,
    keep_all: bool = False,
    logs: bool = True,
    patience: RetryPolicy | None = None,
    tell: Callable[[str], None] = lambda _: None,
    result: SyncResult | None = None,
    mirror_prefixes: tuple[str, ...] = (),
) -> SyncResult:
    """Bring a run's backup up to date. Raises VitalsError, CopyStopped, errors of the remote.

    On return the target contains what the run keeps, each file read back. Checkpoints that the run
    deleted are deleted there too, unless `keep_all`; the newest and files of other programs stay.
    Without `logs` the checkpoints alone. `result` shows how far an interrupted round came.
    `mirror_prefixes`: as in `claim_index`; then a checkpoint of the same step that is as new as
    the run's stays, since another machine has saved it.
    """
    patience, result = patience or RetryPolicy(), result or SyncResult(remote.name)
    check_separate(folder, remote)
    content, sizes = file_selection.find_content(folder), patience.call(remote.sizes)
    text = f"{provenance.current_versions()['host']}:{folder.resolve()}"
    source_id = blake2b(text.encode(), digest_size=8).hexdigest()
    index = Index(content.run_id, folder.resolve().name, source_id)
    index = backup_index.claim_index(remote, sizes, index, patience, mirror_prefixes)
    result.left, result.failed = content.skipped, [*result.failed, *content.unreadable]
    sync = _Sync(
        remote, content, index, sizes, patience, result, tell, keeps_newer=bool(mirror_prefixes)
    )
    if file_selection.BACKUP_INDEX_FILE not in sizes:  # from now on the place is this run's
        backup_index.write_index(remote, index, patience)
    arrived = _copy_checkpoints(sync)
    if not keep_all and not holds.applies(folder):
        _drop_checkpoints(sync, arrived)
    _copy_logs(sync, content.logs if logs else ())
    _write_latest(sync, arrived)
    remote.tidy()
    return result


def _copy_checkpoints(sync: _Sync) -> dict[str, RemoteCheckpoint]:
    """Copy what is missing; again where it was pruned or saved again while it was copied."""
    arrived = _CheckpointCopier(sync).copy_missing()
    for _ in range(MAX_COPY_TRIES):
        if not sync.is_outdated:
            break
        sync.is_outdated = False
        sync.content = file_selection.find_content(sync.content.folder)
        sync.sizes = sync.patience.call(sync.remote.sizes)
        arrived = _CheckpointCopier(sync).copy_missing()
    return arrived


def check_separate(folder: Path, remote: RemoteFiles) -> None:
    """Check that neither folder contains the other. Raises UsageError."""
    if not isinstance(remote, LocalFolder):
        return
    source, target = folder.resolve(), remote.path.resolve()
    if source == target:
        raise UsageError("the run and the target are the same folder", where=remote.name)
    if source in target.parents or target in source.parents:
        inner = "target lies in the run" if source in target.parents else "run lies in the target"
        hint = "a folder elsewhere, best on another disk"
        raise UsageError(f"the {inner}", where=remote.name, hint=hint)


class _CheckpointCopier:
    """Copies the checkpoints that the target lacks, the newest first."""

    def __init__(self, sync: _Sync) -> None:
        self._sync = sync

    def copy_missing(self) -> dict[str, RemoteCheckpoint]:
        """Return the complete checkpoints at the target, by folder name."""
        sync = self._sync
        present = named_checkpoints(sync.remote, sync.sizes, sync.patience)
        missing = [
            checkpoint
            for checkpoint in sync.content.checkpoints
            if (copy := present.get(checkpoint.folder.name)) is None
            or copy.manifest != checkpoint.manifest
        ]
        if sync.keeps_newer:
            missing = self._leave_newer(missing, present)
        sync.result.complete = complete_names = present.keys() - {
            checkpoint.folder.name for checkpoint in missing
        }
        if not missing:
            return present
        if RUN_FILE in sync.content.logs:  # without it a restored checkpoint has no run
            _copy_logs(sync, (RUN_FILE,))
        for checkpoint in missing:
            totals = sync.result.files, sync.result.size
            try:
                present[checkpoint.folder.name] = self._copy(checkpoint, present)
                complete_names.add(checkpoint.folder.name)
            except SourceChanged as error:
                sync.result.files, sync.result.size = totals
                # It is damaged, or was deleted while it was copied.
                name = checkpoint.folder.name
                if _is_current(checkpoint):
                    self._sync.result.failed.append(
                        f"{name} is damaged in the run, not copied: {error}"
                    )
                else:
                    self._sync.result.left = (*self._sync.result.left, f"{name} is gone meanwhile")
                    self._sync.is_outdated = True
        return present

    def _leave_newer(
        self, missing: list[Checkpoint], present: Mapping[str, RemoteCheckpoint]
    ) -> list[Checkpoint]:
        """Leave out steps that another machine has saved as late or later, and report them."""
        names = {
            checkpoint.folder.name
            for checkpoint in missing
            if verify_remote.is_older(checkpoint.manifest, present.get(checkpoint.folder.name))
        }
        self._sync.result.failed += [
            f"{name} is not copied: another machine has saved that step, and as late or later"
            for name in sorted(names)
        ]
        return [checkpoint for checkpoint in missing if checkpoint.folder.name not in names]

    def _copy(
        self, checkpoint: Checkpoint, present: Mapping[str, RemoteCheckpoint]
    ) -> RemoteCheckpoint:
        sync, name = self._sync, checkpoint.folder.name
        seal = file_selection.manifest_piece(checkpoint)
        remote_checkpoint = present.get(name)
        old_files = sync.index.checkpoints.get(name, ())
        old_files = (
            _file_names(remote_checkpoint.manifest.files)
            if remote_checkpoint is not None
            else old_files
        )
        if (
            remote_checkpoint is not None
            and remote_checkpoint.manifest.files == checkpoint.manifest.files
        ):
            # Only the manifest differs: the checkpoint was pinned.
            sync.copy(seal, f"{name}/{MANIFEST_FILE}")
            return replace(remote_checkpoint, manifest=checkpoint.manifest)
        work_folder = sync.remote.begin(name, replaces=remote_checkpoint is not None)
        self._announce(checkpoint, work_folder)
        self._copy_files(checkpoint, work_folder)
        sync.copy(seal, f"{work_folder}/{MANIFEST_FILE}")
        names = _file_names(checkpoint.manifest.files)
        sync.patience.call(partial(sync.remote.settle, work_folder, name, names, old_files))
        sync.result.checkpoints.append(name)
        size = byte_text.format_bytes(file_selection.checkpoint_bytes(checkpoint.manifest))
        sync.tell(f"{name}: {size} copied and verified")
        return RemoteCheckpoint(name, checkpoint.manifest)

    def _announce(self, checkpoint: Checkpoint, work_folder: str) -> None:
        """Check the free space, and add the checkpoint to the index before it is copied."""
        sync = self._sync
        free_bytes, needed_bytes = (
            sync.remote.room(),
            file_selection.checkpoint_bytes(checkpoint.manifest),
        )
        if free_bytes is not None and free_bytes < needed_bytes:
            raise VitalsError(
                byte_text.format_no_room(needed_bytes, free_bytes),
                where=sync.remote.name,
                hint="make room there; the run goes on",
            )
        checkpoints = {
            **sync.index.checkpoints,
            checkpoint.folder.name: _file_names(checkpoint.manifest.files),
        }
        sync.save_index(replace(sync.index, checkpoints=checkpoints))
        stale = [
            name
            for name in sync.sizes
            if name.startswith(f"{work_folder}/")
            and name[len(work_folder) + 1 :] not in checkpoint.manifest.files
        ]  # of another checkpoint of that step, broken off: its seal was never there
        sync.remote.remove(stale)

    def _copy_files(self, checkpoint: Checkpoint, work_folder: str) -> None:
        """Copy the files that an earlier round did not complete."""
        sync = self._sync
        for piece in file_selection.checkpoint_pieces(checkpoint):
            target = f"{work_folder}/{piece.name}"
            is_started = sync.sizes.get(target) == piece.size
            if not (is_started and copy_files.is_same(sync.remote, piece, target, sync.patience)):
                sync.copy(piece, target)


def _is_current(checkpoint: Checkpoint) -> bool:
    try:
        return manifests.read(checkpoint.folder) == checkpoint.manifest
    except BadCheckpoint:
        return False


def _file_names(names: Mapping[str, object]) -> tuple[str, ...]:
    """Return a checkpoint's file names, its manifest last."""
    return (*sorted(names), MANIFEST_FILE)


def _drop_checkpoints(sync: _Sync, arrived: Mapping[str, RemoteCheckpoint]) -> None:
    """Delete checkpoints of this backup that the run deleted, except the newest complete one."""
    by_age = sorted(arrived.values(), key=lambda each: each.manifest.sequence)
    local = [(each.manifest.sequence, each.manifest.files) for each in sync.content.checkpoints]
    if not by_age or (by_age[-1].manifest.sequence, by_age[-1].manifest.files) not in local:
        return  # the run has lost what lies here: this is what a backup is for
    newest = by_age[-1].manifest.sequence
    for name, files in sorted(sync.index.checkpoints.items()):
        remote_checkpoint = arrived.get(name)
        is_older = remote_checkpoint is None or remote_checkpoint.manifest.sequence < newest
        if (sync.content.folder / name).exists() or not is_older:
            continue
        sync.patience.call(partial(sync.remote.drop, name, files))
        if remote_checkpoint is not None:
            sync.result.removed.append(name)
        remaining = {
            checkpoint: checkpoint_files
            for checkpoint, checkpoint_files in sync.index.checkpoints.items()
            if checkpoint != name
        }
        sync.save_index(replace(sync.index, checkpoints=remaining))


def _copy_logs(sync: _Sync, names: tuple[str, ...]) -> None:
    """Copy the files that differ; retry those that are rewritten meanwhile."""
    pieces = {name: sync.patience.call(partial(_read_piece, sync, name)) for name in names}
    new = {name: piece for name, piece in pieces.items() if piece is not None}
    versions = dict(sync.index.files)
    changed = {
        name: piece
        for name, piece in new.items()
        if versions.get(piece.name) != (_version_of(piece),)
        or sync.sizes.get(piece.name) != piece.size
    }
    # Rounds that were killed may have left any of the versions they announced.
    announced = {
        name: (*versions.get(name, (NO_VERSION,)), _version_of(new[name])) for name in changed
    }
    sync.save_index(replace(sync.index, files={**versions, **announced}))
    for name, piece in changed.items():
        last = _copy_log(sync, piece)
        if last is not None:
            versions[name] = (_version_of(last),)
            sync.sizes[name] = last.size
    if len(names) > 1:
        # A packed block file would miss what the old one lacks.
        for name in [name for name in versions if name.endswith(COMPACTED_SUFFIX)]:
            source = f"{name.removesuffix(COMPACTED_SUFFIX)}.rlv"
            if source in versions and not os.path.lexists(sync.content.folder / source):
                sync.patience.call(partial(sync.remote.remove, [source]))
                del versions[source]
    sync.save_index(replace(sync.index, files=versions))


def _read_piece(sync: _Sync, name: str) -> Piece | None:
    try:
        return copy_files.read_piece(sync.content.folder / name, name)
    except SourceChanged:
        return None  # gone since it was listed


def _version_of(piece: Piece) -> Version:
    return Version(piece.size, piece.xxh3_128)


def _copy_log(sync: _Sync, piece: Piece) -> Piece | None:
    """Copy a file; return it as it was copied, or None if it kept changing."""
    previous = sync.index.files.get(piece.name, ())[:-1]
    # Of a file of 1 MiB and more, only the new tail is copied.
    if (
        len(previous) == 1
        and sync.sizes.get(piece.name) == previous[0].size
        and 1 << 20 <= previous[0].size < piece.size
        and _append(sync, piece, previous[0])
    ):
        return piece
    for _ in range(MAX_COPY_TRIES):
        try:
            sync.copy(piece, piece.name)
        except SourceChanged:
            rewritten = _read_piece(sync, piece.name)
            if rewritten is None:
                return None
            piece = rewritten
        else:
            return piece
    sync.result.failed.append(f"{piece.name} was rewritten each time it was read: not copied")
    return None


def _append(sync: _Sync, piece: Piece, previous: Version) -> bool:
    """Append the new tail of a file if the remote file is its beginning."""
    try:
        if copy_files.hash_chunks(piece.chunks(0), previous.size) != previous.xxh3_128:
            return False
        copy_files.append_tail(sync.remote, piece, piece.name, previous.size, sync.patience)
    except (copy_files.CopyStopped, CallTimeout):
        raise
    except Exception:  # noqa: BLE001 - no append: the complete file is copied
        return False
    sync.result.files += 1
    sync.result.size += piece.size - previous.size
    return True


def _write_latest(sync: _Sync, arrived: Mapping[str, RemoteCheckpoint]) -> None:
    """Write the name of the newest complete checkpoint to `latest`."""
    if not arrived:
        return
    newest = max(arrived.values(), key=lambda each: each.manifest.sequence)
    sync.result.newest = newest.name
    text = f"{newest.name}\n".encode()
    is_current = sync.sizes.get(naming.LATEST_FILE) == len(text)
    if (
        is_current
        and copy_files.read_small(sync.remote.read(naming.LATEST_FILE), len(text)) == text
    ):
        return
    sync.patience.call(lambda: sync.remote.write(naming.LATEST_FILE, (text,)))
