"""What of a run's folder is moved: its sealed checkpoints, and every other file that is a part.

Left are what is hidden (being written, locks), links, checkpoints that are not sealed or were set
aside, and what this package writes anew elsewhere.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.resume import manifest as manifests
from rlvitals.resume import naming
from rlvitals.resume.manifest import BadCheckpoint, Manifest
from rlvitals.resume.moving.copying import Piece, of_file
from rlvitals.resume.shelf import Checkpoint
from rlvitals.store import folders
from rlvitals.store.run_folder import BLOCKS, RUN_FILE, is_run, read_about

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


def find(folder: Path) -> Content:
    """Look into a run's folder. Raises VitalsError where it holds nothing to move."""
    if not folder.is_dir():
        problem = "this is a file, a folder is needed" if folder.exists() else "no such folder"
        raise UnreadableLog(problem, where=str(folder), hint="name a run's folder")
    sealed, left = _checkpoints(folder)
    names, links = _names(folder)
    if links:
        left = (*left, f"{links} links are not followed")
    run_id = name = ""
    if is_run(folder):
        about = read_about(folder / RUN_FILE)
        run_id, name = about.id, about.name
    if not sealed and not is_run(folder) and not (folder / BLOCKS).is_dir():
        problem = f"no checkpoint that is whole: {left[0]}" if left else "no run is here"
        raise UnreadableLog(problem, where=str(folder), hint=_near(folder))
    newest = tuple(sorted(sealed, key=lambda one: -one.manifest.sequence))
    return Content(folder, run_id, name or folder.resolve().name, names, newest, left)


def pieces(one: Checkpoint) -> tuple[Piece, ...]:
    """Return a checkpoint's files as its seal names them, by names within the checkpoint."""
    return tuple(
        Piece(name, file.size, file.xxh3_128, of_file(one.folder / name, file.size))
        for name, file in sorted(one.manifest.files.items())
    )


def size(sealed: Manifest) -> int:
    """Count the bytes of a checkpoint's files."""
    return sum(file.size for file in sealed.files.values())


def _checkpoints(folder: Path) -> tuple[list[Checkpoint], tuple[str, ...]]:
    sealed, left = [], []
    for step, path in naming.steps(folder).items():
        try:
            sealed.append(Checkpoint(path, manifests.read(path, step)))
        except BadCheckpoint as error:
            left.append(f"{path.name} is left: {error.problem}")
    return sealed, tuple(left)


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
        runs = folders.run_folders(folder)
    except VitalsError:
        return "name the folder that holds run.json or checkpoint-<step>"
    return f"name one run: {runs[0]}"
