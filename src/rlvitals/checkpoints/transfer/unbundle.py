"""A run out of one file that may come from anybody: whole, in its folder alone, or not at all."""

import gzip
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.naming import MANIFEST
from rlvitals.checkpoints.transfer import archives, byte_text, copy_files, path_safety
from rlvitals.checkpoints.transfer.archives import Limit, Member, Refused, ZstdError
from rlvitals.checkpoints.transfer.backup_index import Version
from rlvitals.checkpoints.transfer.bundle import FORMAT, WRITER
from rlvitals.checkpoints.transfer.copy_files import Changed, Patience, Piece
from rlvitals.checkpoints.transfer.file_selection import BUNDLE
from rlvitals.checkpoints.transfer.filesystems import Folder
from rlvitals.checkpoints.transfer.work_folder import gathering, put_in_place
from rlvitals.errors import UnreadableLog, UsageError, VitalsError
from rlvitals.storage import typed

RATIO = 1000  # unpacked bytes for each packed one: logs reach 20, bombs a million
HARMLESS = 64 << 20  # unpacked bytes that are no bomb, whatever the ratio
MOST_FILES = 100_000
MOST_SAID = 64 << 20  # bytes of what an archive announces
HEADER = 16 << 10  # bytes that a file's header may take
BLOCK = 4096  # bytes of a disk that a file takes at least
DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, ZstdError, gzip.BadGzipFile,
    EOFError, ValueError, OverflowError, struct.error, NotImplementedError, RuntimeError,
)  # fmt: skip


@dataclass(slots=True)
class Unbundled:
    """What was unpacked."""

    folder: Path
    files: int
    size: int  # bytes
    steps: tuple[int, ...]  # of the checkpoints, ascending
    aside: Path | None = None  # where the folder lies that was in its place


@dataclass(frozen=True, slots=True)
class _Announced:
    name: str
    files: Mapping[str, Version]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.files.values())


def unbundle(
    archive: Path, folder: Path | None = None, *, force: bool = False, ratio: float = RATIO
) -> Unbundled:
    """Unpack a run into a folder (default: of the name that it had, here).

    Nothing is written outside of it, and nothing stays where anything is wrong. Raises
    UnreadableLog for what is no bundle, is damaged or refused, UsageError, OSError.
    """
    if not archive.is_file():
        problem = "this is a folder, a file is needed" if archive.is_dir() else "no such file"
        raise UnreadableLog(problem, where=str(archive))
    limit = Limit(MOST_SAID + HEADER)
    stream = archives.members(archive, limit)
    try:
        announced = _announced(next(stream, None))
        limit.most += announced.size + len(announced.files) * HEADER
        target = folder or Path(announced.name)
        _may(target, force=force)
        _fits(announced, archive, target, ratio)
        return _unpacked(stream, announced, target)
    except (Refused, Changed) as error:
        raise UnreadableLog(f"the archive is refused: {error}", where=str(archive)) from None
    except DAMAGED as error:
        problem, hint = f"the archive is damaged: {error}", "copy it here again, or pack it again"
        raise UnreadableLog(problem, where=str(archive), hint=hint) from None
    finally:
        stream.close()


def _announced(first: Member | None) -> _Announced:
    """Read what stands first. Raises Refused."""
    if first is None or first.name.rpartition("/")[2] != BUNDLE or first.size > MOST_SAID:
        raise Refused(
            "it does not begin with bundle.json, so it is no bundle of ours; "
            "`tar xf` or `unzip` unpack what other programs packed"
        )
    said: Any = typed.load(b"".join(first.chunks(0)))
    if not isinstance(said, dict) or said.get("written_by") != WRITER:
        raise Refused("its bundle.json is none of rlvitals")
    if not isinstance(said.get("format"), int) or said["format"] > FORMAT:
        raise Refused(
            f"it is of format {said.get('format')}, written by a newer rlvitals: "
            "pip install --upgrade rlvitals"
        )
    try:
        listed = [(str(name), Version(int(size), str(held))) for name, size, held in said["files"]]
        found = _Announced(str(said["name"]), dict(listed))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused(f"its bundle.json is damaged: {error!r}") from None
    _check(found, [name for name, _ in listed], first.name)
    return found


def _check(found: _Announced, listed: list[str], first: str) -> None:
    """Refuse names that lead elsewhere, or that some file systems take for one."""
    if len(listed) > MOST_FILES:
        raise Refused(f"it announces {len(listed):,} files, more than {MOST_FILES:,}")
    if path_safety.wrong(found.name) or "/" in found.name or first != f"{found.name}/{BUNDLE}":
        raise Refused(f"it names no folder: {found.name!r}")
    for name in listed:
        if why := path_safety.wrong(name):
            raise Refused(f"{name!r}: {why}")
        if found.files[name].size < 0:
            raise Refused(f"{name!r} has {found.files[name].size} bytes")
    for name, why in path_safety.clashing(listed).items():
        raise Refused(f"{name!r}: {why}")


def _may(target: Path, *, force: bool) -> None:
    there = target.exists() or target.is_symlink()
    if there and not target.is_dir():
        raise UsageError("this is a file, a folder is needed", where=str(target), hint="-o FOLDER")
    if there and any(target.iterdir()) and not force:
        hint = "name another folder with -o, or --force: what is there is set aside, not deleted"
        raise UsageError("a folder is there already", where=str(target), hint=hint)


def _fits(announced: _Announced, archive: Path, target: Path, ratio: float) -> None:
    """Refuse a bomb. Raises Refused, VitalsError where there is no room."""
    packed = archive.stat().st_size
    if announced.size > max(HARMLESS, ratio * packed):
        raise Refused(
            f"{packed:,} bytes announce {announced.size:,}: a bomb, by more than {ratio:,.0f} to 1 "
            "(--max-ratio allows it)"
        )
    needed = announced.size + BLOCK * len(announced.files)
    free = Folder(target.absolute().parent).room()
    if free is not None and free < needed:
        problem = byte_text.no_room(needed, free)
        raise VitalsError(problem, where=str(target), hint="name a folder on another disk with -o")


def _unpacked(stream: Iterator[Member], announced: _Announced, target: Path) -> Unbundled:
    with gathering(target, "unbundling", go_on=False) as made:
        _write(stream, announced, Folder(made))
        aside = put_in_place(made, target)
    tops = {path.split("/", 1)[0] for path in announced.files if path.endswith(f"/{MANIFEST}")}
    steps = sorted(int(found[1]) for top in tops if (found := naming.FINAL.fullmatch(top)))
    return Unbundled(target, len(announced.files), announced.size, tuple(steps), aside)


def _write(stream: Iterator[Member], announced: _Announced, made: Folder) -> None:
    """Write each file as it was announced, once; nothing else, and nothing less."""
    waiting = dict(announced.files)
    for member in stream:
        root, _, name = member.name.partition("/")
        said = waiting.pop(name, None) if root == announced.name else None
        if said is None:
            raise Refused(f"{member.name!r} comes unannounced, or twice")
        if member.size != said.size:
            raise Refused(f"{name!r} has {member.size:,} bytes, {said.size:,} were announced")
        piece = Piece(name, said.size, said.xxh3_128, member.chunks)
        made.write(name, _bounded(copy_files.checked(piece, Patience()), said.size))
    if waiting:
        raise Refused(f"{len(waiting):,} files are missing, {next(iter(waiting))!r} is one")


def _bounded(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """End what gives more than it announced before it is written."""
    for data in chunks:
        size -= len(data)
        if size < 0:
            raise Refused("more comes out of it than it announces")
        yield data
