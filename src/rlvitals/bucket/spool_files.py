"""Delete the spool files of a finished run once its bucket has all of them.

Checkpoints go first, the newest before the others: while the newest is missing here, no copying
of the others deletes one in the bucket. Then the node's name: an upload that a killed deletion
leaves half of begins under another name, and readers count what two names hold once. Files that
are not this package's stay.
"""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket import run_index, uploader
from rlvitals.bucket.node_manifest import MANIFESTS, SEGMENTS, Manifest
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.checkpoints import disk, naming, recovery
from rlvitals.checkpoints import manifest as manifest_file
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.transfer.copy_files import RetryPolicy
from rlvitals.checkpoints.transfer.fsspec_remote import open_url
from rlvitals.checkpoints.transfer.verify_remote import named_checkpoints
from rlvitals.storage import holds, safe_files, tail_index
from rlvitals.storage.run_folder import RUN_COPY
from rlvitals.tracking.spool import UPLOAD_STATE_FILE


def remove(folder: Path, store: ObjectStore) -> int:
    """Delete what the bucket confirms; return the bytes, 0 where anything speaks against it.

    Kept whole are runs that did not finish, are written to or on hold, and those of which the
    bucket lacks a byte, of a checkpoint too. Raises OSError, errors of the store's back-end.
    """
    with safe_files.lock(folder):
        if (
            run_index.read_status(folder) != "finished"
            or tail_index.has_writer(folder)
            or any(map(holds.applies, (folder, *naming.find_checkpoints(folder).values())))
        ):
            return 0
        for _ in recovery.recover(folder):  # what an earlier, killed call has left
            pass
        files = tuple(uploader.iter_files(folder))
        checkpoints = naming.find_checkpoints(folder)
        if not _confirms_all(folder, files, store):
            return 0
        if not _confirms_checkpoints(folder, checkpoints.values(), store.url):
            return 0
        size = sum((folder / file).stat().st_size for file in files)
        size += sum(map(disk.count_bytes, checkpoints.values()))
        for step in reversed(checkpoints):
            recovery.delete_checkpoint(folder, checkpoints[step])
        names = (uploader.NODE_FILE, UPLOAD_STATE_FILE, RUN_COPY, naming.LATEST_FILE)
        beats = (folder / "life").glob("*.beat")
        for path in (*(folder / name for name in names), *beats):
            path.unlink(missing_ok=True)
        for file in reversed(files):  # run.json last: it names the attempts
            (folder / file).unlink()
    return size


def _confirms_all(folder: Path, files: tuple[str, ...], store: ObjectStore) -> bool:
    """Return whether a manifest that is read anew lists every byte, in segments that are there."""
    with suppress(FileNotFoundError):
        node = (folder / uploader.NODE_FILE).read_text().split()[0]
        name = manifests.newest(entry.name for entry in store.list(MANIFESTS)).get(node)
        if name is None:
            return False
        manifest = manifests.decode(store.read(name), name)
        sizes = {entry.name: entry.size for entry in store.list(f"{SEGMENTS}{node}/")}
        return (
            manifest.closed
            and all(_has_file(manifest, folder, file) for file in files)
            and all(
                piece.offset + piece.size <= sizes.get(piece.segment, -1)
                for piece in manifest.pieces()
            )
        )
    return False


def _confirms_checkpoints(folder: Path, checkpoints: Collection[Path], url: str) -> bool:
    """Return whether the bucket has each checkpoint, complete and with the same manifest."""
    if naming.find_unfinished(folder) or any(folder.glob(f"{naming.CHECKPOINT_PREFIX}*.*")):
        return False  # one that is being written, or was set aside
    if not checkpoints:
        return True
    remote, patience = open_url(url, {}), RetryPolicy()
    copies = named_checkpoints(remote, patience.call(remote.sizes), patience)
    for path in checkpoints:
        try:
            manifest = manifest_file.read(path)
        except BadCheckpoint:
            return False
        names = {file.relative_to(path).as_posix() for file in disk.walk_files(path)}
        is_ours = names == {*manifest.files, naming.MANIFEST_FILE}
        if not is_ours or path.name not in copies or copies[path.name].manifest != manifest:
            return False
    return True


def _has_file(manifest: Manifest, folder: Path, file: str) -> bool:
    size = (folder / file).stat().st_size
    if file in manifest.rewritten:
        return manifest.rewritten[file].size == size
    return manifest.size(file) == size
