"""Pack a run into one archive: its list of files is first, and the bytes are reproducible."""

import json
from dataclasses import field, replace
from pathlib import Path

import xxhash

from rlvitals.checkpoints import manifest as manifests
from rlvitals.checkpoints import naming
from rlvitals.checkpoints.catalog import Checkpoint
from rlvitals.checkpoints.manifest import BadCheckpoint
from rlvitals.checkpoints.transfer import archives, copy_files, file_selection, path_safety
from rlvitals.checkpoints.transfer.copy_files import Piece, RetryPolicy, SourceChanged
from rlvitals.checkpoints.transfer.file_selection import BUNDLE_FILE, Content
from rlvitals.errors import UsageError, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import atomic_write

BUNDLE_FORMAT = 1


@dataclass(slots=True)
class Bundled:
    """Result of packing a run."""

    archive: Path
    files: int = 0
    size: int = 0  # bytes of the archive
    unpacked: int = 0  # bytes of what is in it
    checkpoints: list[int] = field(default_factory=list)  # steps, the newest first
    left: list[str] = field(default_factory=list)  # what is not in it, and need not be
    damaged: list[str] = field(default_factory=list)  # what should be


def bundle(folder: Path, archive: Path, *, selection: str = "all", force: bool = False) -> Bundled:
    """Pack a run into an archive, atomically. `selection`: all, latest or none.

    The suffix of the archive's name selects its kind. Raises UsageError, VitalsError, OSError.
    """
    archives.archive_kind(archive.name)
    _check_archive(folder, archive, force=force)
    content = file_selection.find_content(folder)
    result = Bundled(archive, left=list(content.skipped), damaged=list(content.unreadable))
    root = folder.resolve().name
    try:
        # Files whose names cannot be unpacked on every system are left.
        all_pieces = _collect_pieces(
            content, _verify_checkpoints(content, selection, result), result
        )
        reasons = {piece.name: path_safety.find_problem(piece.name) for piece in all_pieces}
        reasons |= path_safety.find_clashes(piece.name for piece in all_pieces)
        result.left += [f"{name!r} is left: {reason}" for name, reason in reasons.items() if reason]
        pieces = [piece for piece in all_pieces if not reasons[piece.name]]
        with (
            atomic_write(archive) as file,
            archives.open_archive(archive.name, file) as archive_writer,
        ):
            for piece in (_header_piece(content, root, pieces), *pieces):
                archive_writer.add(
                    f"{root}/{piece.name}", piece, copy_files.verify_chunks(piece, RetryPolicy())
                )
    except SourceChanged as error:
        problem = f"the run changed while it was packed: {error}"
        raise VitalsError(problem, where=str(folder), hint="run the same command again") from None
    result.files, result.size = len(pieces), archive.stat().st_size
    result.unpacked = sum(piece.size for piece in pieces)
    return result


def _check_archive(folder: Path, archive: Path, *, force: bool) -> None:
    if archive.is_dir():
        raise UsageError("a folder, not a file", where=str(archive))
    if archive.exists() and not force:
        raise UsageError("a file is there already", where=str(archive), hint="--force")
    if not archive.absolute().parent.is_dir():
        hint = f"mkdir {archive.parent}"
        raise UsageError("no such folder", where=str(archive.parent), hint=hint)
    if folder.resolve() in archive.resolve().parents:
        problem = "the archive would lie in the run"
        raise UsageError(problem, where=str(archive), hint="name another folder with -o")


def _verify_checkpoints(content: Content, selection: str, result: Bundled) -> list[Checkpoint]:
    """Return the checkpoints to pack, each verified now."""
    checkpoints: list[Checkpoint] = []
    for checkpoint in content.checkpoints if selection != "none" else ():
        try:
            manifests.verify(checkpoint.folder, checkpoint.manifest)
        except BadCheckpoint as error:
            result.damaged.append(
                f"{checkpoint.folder.name} is damaged, not packed: {error.problem}"
            )
            continue
        checkpoints.append(checkpoint)
        if selection == "latest":
            break
    result.checkpoints = [checkpoint.step for checkpoint in checkpoints]
    return checkpoints


def _collect_pieces(
    content: Content, checkpoints: list[Checkpoint], result: Bundled
) -> list[Piece]:
    pieces = []
    for name in content.logs:
        try:
            pieces.append(copy_files.read_piece(content.folder / name, name))
        except SourceChanged:
            result.left.append(f"{name} is gone meanwhile")
    if checkpoints:
        pieces.append(
            piece_of_bytes(naming.LATEST_FILE, f"{checkpoints[0].folder.name}\n".encode())
        )
    for checkpoint in checkpoints:
        name = checkpoint.folder.name
        inner = (
            *file_selection.checkpoint_pieces(checkpoint),
            file_selection.manifest_piece(checkpoint),
        )
        pieces += [replace(each, name=f"{name}/{each.name}") for each in inner]
    return pieces


def _header_piece(content: Content, root: str, pieces: list[Piece]) -> Piece:
    header = {
        "format": BUNDLE_FORMAT,
        "written_by": "rlvitals",
        "run_id": content.run_id,
        "name": root,
        "files": [[piece.name, piece.size, piece.xxh3_128] for piece in pieces],
    }
    return piece_of_bytes(BUNDLE_FILE, (json.dumps(header, indent=1) + "\n").encode())


def piece_of_bytes(name: str, data: bytes) -> Piece:
    """Return a file to move with the given bytes."""
    digest = xxhash.xxh3_128_hexdigest(data)
    return Piece(name, len(data), digest, lambda start: iter((data[start:],)))
