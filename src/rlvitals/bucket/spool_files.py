"""Delete the spool files of a finished run once its bucket has all of them.

The node's name goes first: an upload that a killed deletion leaves half of begins under another
name, and readers count what two names hold once. Files that are not this package's stay.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket import run_index, uploader
from rlvitals.bucket.node_manifest import MANIFESTS, SEGMENTS, Manifest
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.checkpoints import naming
from rlvitals.storage import holds, safe_files, tail_index
from rlvitals.storage.run_folder import RUN_COPY
from rlvitals.tracking.spool import UPLOAD_STATE_FILE

SPOOL_STATE_FILES = (uploader.NODE_FILE, UPLOAD_STATE_FILE, RUN_COPY)


def remove(folder: Path, store: ObjectStore) -> int:
    """Delete what the bucket confirms; return the bytes, 0 where anything speaks against it.

    Kept whole are runs that did not finish, are written to or on hold, have checkpoints, which a
    resume takes from here, and those of which the bucket lacks a byte. Raises OSError, errors of
    the store's back-end.
    """
    with safe_files.lock(folder):
        files = tuple(uploader.iter_files(folder))
        if _must_stay(folder) or not _confirms_all(folder, files, store):
            return 0
        size = sum((folder / file).stat().st_size for file in files)
        for path in (*(folder / name for name in SPOOL_STATE_FILES), *_beats(folder)):
            path.unlink(missing_ok=True)
        for file in reversed(files):  # run.json last: it names the attempts
            (folder / file).unlink()
    return size


def _must_stay(folder: Path) -> bool:
    return (
        run_index.read_status(folder) != "finished"
        or tail_index.has_writer(folder)
        or holds.applies(folder)
        or bool(naming.find_checkpoints(folder))
    )


def _beats(folder: Path) -> Iterator[Path]:
    yield from (folder / "life").glob("*.beat")


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


def _has_file(manifest: Manifest, folder: Path, file: str) -> bool:
    size = (folder / file).stat().st_size
    if file in manifest.rewritten:
        return manifest.rewritten[file].size == size
    return manifest.size(file) == size
