"""Select the files of a run folder to copy: its sealed checkpoints, and all other files of the run.

Skipped are hidden files (being written, locks), links, checkpoints that are not sealed or were set
aside, and files that this package regenerates elsewhere.
"""

import os
from contextlib import suppress
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.transfer.copy_files import Piece, SourceChanged, file_chunks, read_piece
from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import find_run_folders
from rlvitals.storage.missing_path import missing_path
from rlvitals.storage.run_folder import BLOCKS_FOLDER, RUN_FILE, is_run, read_about

BACKUP_INDEX_FILE = "backup.json"
BUNDLE_FILE = "bundle.json"
# At the root: regenerated at each copy.
GENERATED_FILES = (naming.LATEST_FILE, BACKUP_INDEX_FILE, BUNDLE_FILE)


@dataclass(frozen=True, slots=True)
class Content:
    """The files of a run folder that can be copied."""

    folder: Path
    run_id: str  # "" if it has only checkpoints
    name: str
    logs: tuple[str, ...]  # names of files, sorted
    checkpoints: tuple[Checkpoint, ...]  # the newest first
    skipped: tuple[str, ...]  # what is left, and why: a sentence each
    unreadable: tuple[str, ...] = ()  # what should be moved, and cannot be read: a sentence each


def find_content(folder: Path) -> Content:
    """Find the files of a run folder. Raises VitalsError if there is nothing to copy."""
    if not folder.exists():
        raise missing_path(folder)
    if not folder.is_dir():
        problem = "this is a file, a folder is needed"
        raise UnreadableLog(problem, where=str(folder), hint="name a run's folder")
    sealed, skipped, unreadable = _find_checkpoints(folder)
    names, links = _find_files(folder)
    if links:
        skipped = (*skipped, f"{links} links are not followed")
    run_id = name = ""
    if is_run(folder):
        run_info = read_about(folder / RUN_FILE)
        run_id, name = run_info.id, run_info.name
    if not sealed and not is_run(folder) and not (folder / BLOCKS_FOLDER).is_dir():
        reason = next(iter((*unreadable, *skipped)), "")
        problem = f"no checkpoint that is whole: {reason}" if reason else "no run is here"
        try:
            hint = f"name one run: {find_run_folders.run_folders(folder)[0]}"
        except VitalsError:
            hint = "name the folder that holds run.json or checkpoint-<step>"
        raise UnreadableLog(problem, where=str(folder), hint=hint)
    newest = tuple(sorted(sealed, key=lambda checkpoint: -checkpoint.manifest.sequence))
    name = name or folder.resolve().name
    return Content(folder, run_id, name, names, newest, skipped, unreadable)


def checkpoint_pieces(checkpoint: Checkpoint) -> tuple[Piece, ...]:
    """Return a checkpoint's files as its manifest names them, relative to the checkpoint."""
    return tuple(
        Piece(name, file.size, file.xxh3_128, file_chunks(checkpoint.folder / name, file.size))
        for name, file in sorted(checkpoint.manifest.files.items())
    )


def manifest_piece(checkpoint: Checkpoint) -> Piece:
    """Return a checkpoint's manifest. Raises SourceChanged if it was saved again since."""
    piece = read_piece(checkpoint.folder / MANIFEST_FILE, MANIFEST_FILE)
    try:
        is_same = (
            manifests.parse(b"".join(piece.chunks(0)), str(checkpoint.folder))
            == checkpoint.manifest
        )
    except BadCheckpoint:
        is_same = False
    if not is_same:
        raise SourceChanged(f"{checkpoint.folder.name} was saved anew meanwhile")
    return piece


def checkpoint_bytes(sealed: Manifest) -> int:
    """Return the size of a checkpoint's files in bytes."""
    return sum(file.size for file in sealed.files.values())


def _find_checkpoints(folder: Path) -> tuple[list[Checkpoint], tuple[str, ...], tuple[str, ...]]:
    """Return the sealed, the skipped and the unreadable: the last are not damaged."""
    sealed, skipped, unreadable = [], [], []
    for step, path in naming.find_checkpoints(folder).items():
        try:
            with suppress(FileNotFoundError):
                (path / MANIFEST_FILE).read_bytes()
            sealed.append(Checkpoint(path, manifests.read(path, step)))
        except OSError as error:
            unreadable.append(f"{path.name} cannot be read: {error.strerror or error}")
        except BadCheckpoint as error:
            skipped.append(f"{path.name} is left: {error.problem}")
    return sealed, tuple(skipped), tuple(unreadable)


def _find_files(folder: Path) -> tuple[tuple[str, ...], int]:
    """List the files that belong to no checkpoint, and count the links."""
    paths, links = [], 0
    for root, inner, names in os.walk(folder):
        folder_path = Path(root)
        links += sum((folder_path / name).is_symlink() for name in (*inner, *names))
        inner[:] = sorted(
            name
            for name in inner
            if not _is_other_folder(folder_path == folder, folder_path / name)
        )
        for name in names:
            path = folder_path / name
            is_own = folder_path == folder and name in GENERATED_FILES
            if not is_own and not name.startswith(".") and not path.is_symlink() and path.is_file():
                paths.append(path.relative_to(folder).as_posix())
    return tuple(sorted(paths)), links


def _is_other_folder(is_top_level: bool, path: Path) -> bool:  # noqa: FBT001 - one fact of two
    """Return whether a folder is skipped: hidden, a link, or any checkpoint's."""
    return (
        path.name.startswith(".")
        or path.is_symlink()
        or (
            is_top_level
            and naming.CHECKPOINT_NAME.fullmatch(path.name.split(".", 1)[0]) is not None
        )
    )
