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
        return sum(version.size for version in self.files.values())


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
        header = _announced(next(stream, None))
        limit.most += header.size + len(header.files) * HEADER
        target = folder or Path(header.name)
        _may(target, force=force)
        _fits(header, archive, target, ratio)
        return _unpacked(stream, header, target)
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
    content: Any = typed.load(b"".join(first.chunks(0)))
    if not isinstance(content, dict) or content.get("written_by") != WRITER:
        raise Refused("its bundle.json is none of rlvitals")
    if not isinstance(content.get("format"), int) or content["format"] > FORMAT:
        raise Refused(
            f"it is of format {content.get('format')}, written by a newer rlvitals: "
            "pip install --upgrade rlvitals"
        )
    try:
        entries = [
            (str(name), Version(int(size), str(digest))) for name, size, digest in content["files"]
        ]
        header = _Announced(str(content["name"]), dict(entries))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused(f"its bundle.json is damaged: {error!r}") from None
    _check(header, [name for name, _ in entries], first.name)
    return header


def _check(header: _Announced, names: list[str], first: str) -> None:
    """Refuse names that lead elsewhere, or that some file systems take for one."""
    if len(names) > MOST_FILES:
        raise Refused(f"it announces {len(names):,} files, more than {MOST_FILES:,}")
    if path_safety.wrong(header.name) or "/" in header.name or first != f"{header.name}/{BUNDLE}":
        raise Refused(f"it names no folder: {header.name!r}")
    for name in names:
        if reason := path_safety.wrong(name):
            raise Refused(f"{name!r}: {reason}")
        if header.files[name].size < 0:
            raise Refused(f"{name!r} has {header.files[name].size} bytes")
    for name, reason in path_safety.clashing(names).items():
        raise Refused(f"{name!r}: {reason}")


def _may(target: Path, *, force: bool) -> None:
    exists = target.exists() or target.is_symlink()
    if exists and not target.is_dir():
        raise UsageError("this is a file, a folder is needed", where=str(target), hint="-o FOLDER")
    if exists and any(target.iterdir()) and not force:
        hint = "name another folder with -o, or --force: what is there is set aside, not deleted"
        raise UsageError("a folder is there already", where=str(target), hint=hint)


def _fits(header: _Announced, archive: Path, target: Path, ratio: float) -> None:
    """Refuse a bomb. Raises Refused, VitalsError where there is no room."""
    packed_bytes = archive.stat().st_size
    if header.size > max(HARMLESS, ratio * packed_bytes):
        raise Refused(
            f"{packed_bytes:,} bytes announce {header.size:,}: a bomb, by more than {ratio:,.0f} "
            "to 1 (--max-ratio allows it)"
        )
    needed_bytes = header.size + BLOCK * len(header.files)
    free_bytes = Folder(target.absolute().parent).room()
    if free_bytes is not None and free_bytes < needed_bytes:
        problem = byte_text.no_room(needed_bytes, free_bytes)
        raise VitalsError(problem, where=str(target), hint="name a folder on another disk with -o")


def _unpacked(stream: Iterator[Member], header: _Announced, target: Path) -> Unbundled:
    with gathering(target, "unbundling", go_on=False) as work_folder:
        _write(stream, header, Folder(work_folder))
        aside = put_in_place(work_folder, target)
    tops = {path.split("/", 1)[0] for path in header.files if path.endswith(f"/{MANIFEST}")}
    steps = sorted(int(match[1]) for top in tops if (match := naming.FINAL.fullmatch(top)))
    return Unbundled(target, len(header.files), header.size, tuple(steps), aside)


def _write(stream: Iterator[Member], header: _Announced, work_folder: Folder) -> None:
    """Write each file as it was announced, once; nothing else, and nothing less."""
    remaining = dict(header.files)
    for member in stream:
        root, _, name = member.name.partition("/")
        version = remaining.pop(name, None) if root == header.name else None
        if version is None:
            raise Refused(f"{member.name!r} comes unannounced, or twice")
        if member.size != version.size:
            raise Refused(f"{name!r} has {member.size:,} bytes, {version.size:,} were announced")
        piece = Piece(name, version.size, version.xxh3_128, member.chunks)
        work_folder.write(name, _bounded(copy_files.checked(piece, Patience()), version.size))
    if remaining:
        raise Refused(f"{len(remaining):,} files are missing, {next(iter(remaining))!r} is one")


def _bounded(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """End what gives more than it announced before it is written."""
    for data in chunks:
        size -= len(data)
        if size < 0:
            raise Refused("more comes out of it than it announces")
        yield data
