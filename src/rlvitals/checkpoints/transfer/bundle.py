"""A run in one file: what it holds stands first, and the same run gives the same bytes."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import xxhash

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.transfer import archives, copy_files, file_selection, path_safety
from rlvitals.checkpoints.transfer.copy_files import Changed, Patience, Piece
from rlvitals.checkpoints.transfer.file_selection import BUNDLE, Content
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.safe_files import atomic_write

FORMAT = 1
WRITER = "rlvitals"
WHICH = ("all", "latest", "none")


@dataclass(slots=True)
class Bundled:
    """What was packed."""

    archive: Path
    files: int = 0
    size: int = 0  # bytes of the archive
    unpacked: int = 0  # bytes of what is in it
    checkpoints: list[int] = field(default_factory=list)  # steps, the newest first
    left: list[str] = field(default_factory=list)  # what is not in it, and need not be
    damaged: list[str] = field(default_factory=list)  # what should be


def bundle(folder: Path, archive: Path, *, which: str = "all", force: bool = False) -> Bundled:
    """Pack a run into an archive: there whole or not at all. `which`: all, latest or none.

    The archive's name says its kind. Raises UsageError, VitalsError, OSError.
    """
    archives.kind_of(archive.name)
    _may(folder, archive, force=force)
    found = file_selection.find(folder)
    done = Bundled(archive, left=list(found.left), damaged=list(found.unreadable))
    root = folder.resolve().name
    try:
        pieces = _fitting(_pieces(found, _chosen(found, which, done), done), done)
        with atomic_write(archive) as file, archives.writer(archive.name, file) as packed:
            for piece in (_announced(found, root, pieces), *pieces):
                packed.add(f"{root}/{piece.name}", piece, copy_files.checked(piece, Patience()))
    except Changed as error:
        problem = f"the run changed while it was packed: {error}"
        raise VitalsError(problem, where=str(folder), hint="the same again") from None
    done.files, done.size = len(pieces), archive.stat().st_size
    done.unpacked = sum(piece.size for piece in pieces)
    return done


def _may(folder: Path, archive: Path, *, force: bool) -> None:
    if archive.is_dir():
        raise UsageError("this is a folder, a file is needed", where=str(archive))
    if archive.exists() and not force:
        raise UsageError("a file is there already", where=str(archive), hint="--force")
    if not archive.absolute().parent.is_dir():
        hint = f"mkdir {archive.parent}"
        raise UsageError("no such folder", where=str(archive.parent), hint=hint)
    if folder.resolve() in archive.resolve().parents:
        problem = "the archive would lie in the run"
        raise UsageError(problem, where=str(archive), hint="name another folder with -o")


def _chosen(found: Content, which: str, done: Bundled) -> list[Checkpoint]:
    """Return the checkpoints to pack, each verified now."""
    chosen: list[Checkpoint] = []
    for one in found.checkpoints if which != "none" else ():
        try:
            manifests.verify(one.folder, one.manifest)
        except BadCheckpoint as error:
            done.damaged.append(f"{one.folder.name} is damaged, not packed: {error.problem}")
            continue
        chosen.append(one)
        if which == "latest":
            break
    done.checkpoints = [one.step for one in chosen]
    return chosen


def _pieces(found: Content, chosen: list[Checkpoint], done: Bundled) -> list[Piece]:
    pieces = []
    for name in found.logs:
        try:
            pieces.append(copy_files.look(found.folder / name, name))
        except Changed:
            done.left.append(f"{name} is gone meanwhile")
    if chosen:
        pieces.append(of_bytes(naming.LATEST, f"{chosen[0].folder.name}\n".encode()))
    for one in chosen:
        name = one.folder.name
        inner = (*file_selection.pieces(one), file_selection.seal(one))
        pieces += [replace(each, name=f"{name}/{each.name}") for each in inner]
    return pieces


def _fitting(pieces: list[Piece], done: Bundled) -> list[Piece]:
    """Leave what could not be unpacked everywhere."""
    why = {piece.name: path_safety.wrong(piece.name) for piece in pieces}
    why |= path_safety.clashing(piece.name for piece in pieces)
    done.left += [f"{name!r} is left: {said}" for name, said in why.items() if said]
    return [piece for piece in pieces if not why[piece.name]]


def _announced(found: Content, root: str, pieces: list[Piece]) -> Piece:
    said = {
        "format": FORMAT,
        "written_by": WRITER,
        "run_id": found.run_id,
        "name": root,
        "files": [[one.name, one.size, one.xxh3_128] for one in pieces],
    }
    return of_bytes(BUNDLE, (json.dumps(said, indent=1) + "\n").encode())


def of_bytes(name: str, data: bytes) -> Piece:
    """Make a file of bytes."""
    held = xxhash.xxh3_128_hexdigest(data)
    return Piece(name, len(data), held, lambda start: iter((data[start:],)))
