"""What of a run's folder is moved: its sealed checkpoints, and every other file that is a part.

Left are what is hidden (being written, locks), links, checkpoints that are not sealed or were set
aside, and what this package writes anew elsewhere.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint, Manifest
from rlvitals.checkpoints.naming import MANIFEST
from rlvitals.checkpoints.transfer.copy_files import Changed, Piece, look, of_file
from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.storage import find_run_folders
from rlvitals.storage.run_folder import BLOCKS_FOLDER, RUN_FILE, is_run, read_about

INDEX = "backup.json"
BUNDLE = "bundle.json"
OWN = (naming.LATEST, INDEX, BUNDLE)  # at the root: made anew wherever a run goes


@dataclass(frozen=True, slots=True)
class Content:
    """What a run's folder holds that can be moved."""

    folder: Path
    run_id: str  # "" where it holds checkpoints alone
    name: str
    logs: tuple[str, ...]  # names of files, sorted
    checkpoints: tuple[Checkpoint, ...]  # the newest first
    left: tuple[str, ...]  # what is left, and why: a sentence each
    unreadable: tuple[str, ...] = ()  # what should be moved, and cannot be read: a sentence each


def find(folder: Path) -> Content:
    """Look into a run's folder. Raises VitalsError where it holds nothing to move."""
    if not folder.is_dir():
        problem = "this is a file, a folder is needed" if folder.exists() else "no such folder"
        raise UnreadableLog(problem, where=str(folder), hint="name a run's folder")
    sealed, left, unreadable = _checkpoints(folder)
    names, links = _names(folder)
    if links:
        left = (*left, f"{links} links are not followed")
    run_id = name = ""
    if is_run(folder):
        about = read_about(folder / RUN_FILE)
        run_id, name = about.id, about.name
    if not sealed and not is_run(folder) and not (folder / BLOCKS_FOLDER).is_dir():
        why = next(iter((*unreadable, *left)), "")
        problem = f"no checkpoint that is whole: {why}" if why else "no run is here"
        raise UnreadableLog(problem, where=str(folder), hint=_near(folder))
    newest = tuple(sorted(sealed, key=lambda one: -one.manifest.sequence))
    name = name or folder.resolve().name
    return Content(folder, run_id, name, names, newest, left, unreadable)


def pieces(one: Checkpoint) -> tuple[Piece, ...]:
    """Return a checkpoint's files as its seal names them, by names within the checkpoint."""
    return tuple(
        Piece(name, file.size, file.xxh3_128, of_file(one.folder / name, file.size))
        for name, file in sorted(one.manifest.files.items())
    )


def seal(one: Checkpoint) -> Piece:
    """Return a checkpoint's seal. Raises Changed where it was saved anew since it was looked at."""
    piece = look(one.folder / MANIFEST, MANIFEST)
    try:
        same = manifests.parse(b"".join(piece.chunks(0)), str(one.folder)) == one.manifest
    except BadCheckpoint:
        same = False
    if not same:
        raise Changed(f"{one.folder.name} was saved anew meanwhile")
    return piece


def size(sealed: Manifest) -> int:
    """Count the bytes of a checkpoint's files."""
    return sum(file.size for file in sealed.files.values())


def _checkpoints(folder: Path) -> tuple[list[Checkpoint], tuple[str, ...], tuple[str, ...]]:
    """Return what is sealed, what is left, and what cannot be read: that is no damage."""
    sealed, left, unreadable = [], [], []
    for step, path in naming.steps(folder).items():
        try:
            with suppress(FileNotFoundError):
                (path / MANIFEST).read_bytes()
            sealed.append(Checkpoint(path, manifests.read(path, step)))
        except OSError as error:
            unreadable.append(f"{path.name} cannot be read: {error.strerror or error}")
        except BadCheckpoint as error:
            left.append(f"{path.name} is left: {error.problem}")
    return sealed, tuple(left), tuple(unreadable)


def _names(folder: Path) -> tuple[tuple[str, ...], int]:
    """List the files that are no part of a checkpoint, and count the links."""
    found, links = [], 0
    for root, inner, names in os.walk(folder):
        here = Path(root)
        links += sum((here / one).is_symlink() for one in (*inner, *names))
        inner[:] = sorted(one for one in inner if not _passed(here == folder, here / one))
        for name in names:
            path = here / name
            own = here == folder and name in OWN
            if not own and not name.startswith(".") and not path.is_symlink() and path.is_file():
                found.append(path.relative_to(folder).as_posix())
    return tuple(sorted(found)), links


def _passed(at_root: bool, path: Path) -> bool:  # noqa: FBT001 - one fact of two
    """Tell whether a folder is passed by: hidden, a link, or a checkpoint's, whole or not."""
    return path.name.startswith(".") or path.is_symlink() or (at_root and _is_step(path.name))


def _is_step(name: str) -> bool:
    head = name.split(".", 1)[0]
    return naming.FINAL.fullmatch(head) is not None


def _near(folder: Path) -> str:
    try:
        runs = find_run_folders.run_folders(folder)
    except VitalsError:
        return "name the folder that holds run.json or checkpoint-<step>"
    return f"name one run: {runs[0]}"
