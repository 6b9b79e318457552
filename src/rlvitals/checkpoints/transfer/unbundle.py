"""Unpack a run from an untrusted archive: complete, in its own folder only, or not at all."""

import gzip
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvitals.checkpoints import naming
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.checkpoints.transfer import archives, byte_text, copy_files, path_safety
from rlvitals.checkpoints.transfer.archives import ArchiveRefused, Limit, Member, ZstdError
from rlvitals.checkpoints.transfer.backup_index import Version
from rlvitals.checkpoints.transfer.bundle import BUNDLE_FORMAT
from rlvitals.checkpoints.transfer.copy_files import Piece, RetryPolicy, SourceChanged
from rlvitals.checkpoints.transfer.file_selection import BUNDLE_FILE
from rlvitals.checkpoints.transfer.filesystems import LocalFolder
from rlvitals.checkpoints.transfer.work_folder import open_work_folder, put_in_place
from rlvitals.errors import UnreadableLog, UsageError, VitalsError, join_first, quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed

MAX_BUNDLE_FILES = 100_000
MAX_ARCHIVE_HEADER_BYTES = 64 << 20  # bytes of what an archive announces
MAX_ENTRY_HEADER_BYTES = 16 << 10  # bytes that a file's header may take
ARCHIVE_ERRORS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, ZstdError, gzip.BadGzipFile,
    EOFError, ValueError, OverflowError, struct.error, NotImplementedError, RuntimeError,
)  # fmt: skip


@dataclass(slots=True)
class Unbundled:
    """Result of unpacking."""

    folder: Path
    files: int
    size: int  # bytes
    steps: tuple[int, ...]  # of the checkpoints, ascending
    aside: Path | None = None  # the folder that it replaced


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    files: Mapping[str, Version]

    @property
    def size(self) -> int:
        return sum(version.size for version in self.files.values())


# `ratio`: unpacked bytes for each packed one; logs reach 20, bombs a million.
def unbundle(
    archive: Path, folder: Path | None = None, *, force: bool = False, ratio: float = 1000
) -> Unbundled:
    """Unpack a run into a folder (default: its original name, in the working folder).

    Nothing is written outside the folder, and nothing stays after an error. Raises UnreadableLog
    for a file that is no bundle, is damaged or refused, UsageError, OSError.
    """
    if not archive.is_file():
        problem = "a folder, not a file" if archive.is_dir() else "no such file"
        raise UnreadableLog(problem, where=str(archive))
    limit = Limit(MAX_ARCHIVE_HEADER_BYTES + MAX_ENTRY_HEADER_BYTES)
    stream = archives.iter_members(archive, limit)
    try:
        header = _read_header(next(stream, None))
        limit.max_bytes += header.size + len(header.files) * MAX_ENTRY_HEADER_BYTES
        target = folder or Path(header.name)
        _check_target(target, force=force)
        _check_size(header, archive, target, ratio)
        with open_work_folder(target, "unbundling", go_on=False) as work_folder:
            _write_files(stream, header, LocalFolder(work_folder))
            aside = put_in_place(work_folder, target)
        tops = {
            path.split("/", 1)[0] for path in header.files if path.endswith(f"/{MANIFEST_FILE}")
        }
        steps = sorted(
            int(match[1]) for top in tops if (match := naming.CHECKPOINT_NAME.fullmatch(top))
        )
        return Unbundled(target, len(header.files), header.size, tuple(steps), aside)
    except (ArchiveRefused, SourceChanged) as error:
        raise UnreadableLog(f"the archive is refused: {error}", where=str(archive)) from None
    except ARCHIVE_ERRORS as error:
        problem, hint = f"the archive is damaged: {error}", "copy it here again, or pack it again"
        raise UnreadableLog(problem, where=str(archive), hint=hint) from None
    finally:
        stream.close()


def _read_header(first: Member | None) -> _Header:
    """Read the first file, the list of files. Raises ArchiveRefused."""
    if (
        first is None
        or first.name.rpartition("/")[2] != BUNDLE_FILE
        or first.size > MAX_ARCHIVE_HEADER_BYTES
    ):
        raise ArchiveRefused(
            "it does not begin with bundle.json, so it is no archive of rlvitals; "
            "`tar xf` or `unzip` unpack what other programs packed"
        )
    content: Any = typed.load(b"".join(first.chunks(0)))
    if not isinstance(content, dict) or content.get("written_by") != "rlvitals":
        raise ArchiveRefused("its bundle.json was not written by rlvitals")
    if not isinstance(content.get("format"), int) or content["format"] > BUNDLE_FORMAT:
        raise ArchiveRefused(
            f"it is of format {content.get('format')}, written by a newer rlvitals: "
            "pip install --upgrade rlvitals"
        )
    try:
        entries = [
            (str(name), Version(int(size), str(digest))) for name, size, digest in content["files"]
        ]
        header = _Header(str(content["name"]), dict(entries))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArchiveRefused(f"its bundle.json is damaged: {error!r}") from None
    _check_names(header, [name for name, _ in entries], first.name)
    return header


def _check_names(header: _Header, names: list[str], first: str) -> None:
    """Raise ArchiveRefused for names that leave the folder, or that clash on some system."""
    if len(names) > MAX_BUNDLE_FILES:
        raise ArchiveRefused(f"it announces {len(names):,} files, more than {MAX_BUNDLE_FILES:,}")
    if (
        path_safety.find_problem(header.name)
        or "/" in header.name
        or first != f"{header.name}/{BUNDLE_FILE}"
    ):
        raise ArchiveRefused(f"it names no folder: {header.name!r}")
    for name in names:
        if reason := path_safety.find_problem(name):
            raise ArchiveRefused(f"{name!r}: {reason}")
        if header.files[name].size < 0:
            raise ArchiveRefused(f"{name!r} has {header.files[name].size} bytes")
    for name, reason in path_safety.find_clashes(names).items():
        raise ArchiveRefused(f"{name!r}: {reason}")


def _check_target(target: Path, *, force: bool) -> None:
    exists = target.exists() or target.is_symlink()
    if exists and not target.is_dir():
        raise UsageError("this is a file, a folder is needed", where=str(target), hint="-o FOLDER")
    if exists and any(target.iterdir()) and not force:
        hint = "name another folder with -o, or --force: what is there is set aside, not deleted"
        raise UsageError("a folder is there already", where=str(target), hint=hint)


def _check_size(header: _Header, archive: Path, target: Path, ratio: float) -> None:
    """Refuse a bomb. Raises ArchiveRefused, VitalsError if the disk has no room."""
    packed_bytes = archive.stat().st_size
    if header.size > max(64 << 20, ratio * packed_bytes):  # bytes: no bomb, whatever the ratio
        raise ArchiveRefused(
            f"{packed_bytes:,} bytes announce {header.size:,}: a bomb, by more than {ratio:,.0f} "
            "to 1 (--max-ratio allows it)"
        )
    needed_bytes = header.size + 4096 * len(header.files)
    free_bytes = LocalFolder(target.absolute().parent).room()
    if free_bytes is not None and free_bytes < needed_bytes:
        problem = byte_text.format_no_room(needed_bytes, free_bytes)
        raise VitalsError(problem, where=str(target), hint="name a folder on another disk with -o")


def _write_files(stream: Iterator[Member], header: _Header, work_folder: LocalFolder) -> None:
    """Write each announced file once; raise ArchiveRefused for any other, or a missing one."""
    remaining = dict(header.files)
    for member in stream:
        root, _, name = member.name.partition("/")
        version = remaining.pop(name, None) if root == header.name else None
        if version is None:
            raise ArchiveRefused(f"{member.name!r} comes unannounced, or twice")
        if member.size != version.size:
            raise ArchiveRefused(
                f"{name!r} has {member.size:,} bytes, {version.size:,} were announced"
            )
        piece = Piece(name, version.size, version.xxh3_128, member.chunks)
        work_folder.write(
            name, _limit_chunks(copy_files.verify_chunks(piece, RetryPolicy()), version.size)
        )
    if remaining:
        raise ArchiveRefused(
            f"{quantity(len(remaining), 'file')} missing: {join_first([*map(repr, remaining)], 1)}"
        )


def _limit_chunks(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Raise ArchiveRefused before more bytes than announced are written."""
    for data in chunks:
        size -= len(data)
        if size < 0:
            raise ArchiveRefused("more comes out of it than it announces")
        yield data
