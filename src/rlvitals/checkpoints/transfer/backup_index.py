"""Read and write the index of a backup: the run it belongs to, and the files it wrote.

A file's entry has two versions while it is being copied: either is valid.
"""

import json
from collections.abc import Mapping
from dataclasses import field

from rlvitals.checkpoints.transfer.copy_files import RetryPolicy, read_small
from rlvitals.checkpoints.transfer.file_selection import BACKUP_INDEX_FILE
from rlvitals.checkpoints.transfer.filesystems import RemoteFiles
from rlvitals.errors import UsageError, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.run_folder import RUN_FILE

INDEX_FORMAT = 1
MAX_INDEX_BYTES = 256 << 20  # bytes of an index: more is none of ours


@dataclass(frozen=True, slots=True)
class Version:
    """Content of a file."""

    size: int  # bytes
    xxh3_128: str  # hex


NO_VERSION = Version(-1, "")  # the version before the first


@dataclass(frozen=True, slots=True)
class Index:
    """The run of a backup, and its files."""

    run_id: str
    name: str  # of the run's folder
    source: str = ""  # identifies the source folder if the run has no id
    files: Mapping[str, tuple[Version, ...]] = field(default_factory=dict)  # the newest last
    checkpoints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # folder: its files


def read_index(
    remote: RemoteFiles, sizes: Mapping[str, int], patience: RetryPolicy
) -> Index | None:
    """Read a backup's index; None if there is none. Raises VitalsError for a newer format."""
    content = _read_json(remote, BACKUP_INDEX_FILE, sizes, patience)
    if not isinstance(content, dict) or content.get("written_by") != "rlvitals":
        return None
    if not isinstance(content.get("format"), int) or content["format"] > INDEX_FORMAT:
        raise VitalsError(
            f"a backup of format {content.get('format')}, written by a newer rlvitals",
            where=remote.name,
            hint=f"this one reads formats up to {INDEX_FORMAT}: pip install --upgrade rlvitals",
        )
    try:
        return Index(
            run_id=str(content["run_id"]),
            name=str(content["name"]),
            source=str(content["source"]),
            files={
                str(name): tuple(Version(int(size), str(digest)) for size, digest in versions)
                for name, versions in content["files"].items()
            },
            checkpoints={
                str(name): tuple(map(str, files)) for name, files in content["checkpoints"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def write_index(remote: RemoteFiles, index: Index, patience: RetryPolicy) -> None:
    """Replace a backup's index."""
    content = {
        "format": INDEX_FORMAT,
        "written_by": "rlvitals",
        "run_id": index.run_id,
        "name": index.name,
        "source": index.source,
        "files": {
            name: [[version.size, version.xxh3_128] for version in versions]
            for name, versions in sorted(index.files.items())
        },
        "checkpoints": {name: list(files) for name, files in sorted(index.checkpoints.items())},
    }
    data = (json.dumps(content, indent=1) + "\n").encode()
    patience.call(lambda: remote.write(BACKUP_INDEX_FILE, (data,)))


def claim_index(
    remote: RemoteFiles,
    sizes: Mapping[str, int],
    own_index: Index,
    patience: RetryPolicy,
    mirror_prefixes: tuple[str, ...] = (),
) -> Index:
    """Return the index of this run's backup. Raises UsageError if the place is another run's.

    `mirror_prefixes`: beginnings of the names of the run's uploaded rows, which may be there.
    """
    index = read_index(remote, sizes, patience)
    if index is not None:
        is_same_run = index.run_id == own_index.run_id and (
            own_index.run_id or index.source == own_index.source
        )
        if not is_same_run:
            raise UsageError(
                f"this holds a backup of another run: {index.name}",
                where=remote.name,
                hint="name a folder of its own for each run",
            )
        return Index(
            own_index.run_id, own_index.name, own_index.source, index.files, index.checkpoints
        )
    other_files = sorted(
        name for name in sizes if not name.startswith((".", "lost+found", *mirror_prefixes))
    )
    if other_files and not (
        own_index.run_id and _read_run_id(remote, sizes, patience) == own_index.run_id
    ):
        raise UsageError(
            f"this is not empty and holds no backup of this run: {other_files[0]}",
            where=remote.name,
            hint="name a folder of its own for each run",
        )
    return own_index


def _read_run_id(remote: RemoteFiles, sizes: Mapping[str, int], patience: RetryPolicy) -> str:
    content = _read_json(remote, RUN_FILE, sizes, patience)
    return str(content.get("id", "")) if isinstance(content, dict) else ""


def _read_json(
    remote: RemoteFiles, name: str, sizes: Mapping[str, int], patience: RetryPolicy
) -> object:
    if name not in sizes or sizes[name] > MAX_INDEX_BYTES:
        return None
    try:
        return json.loads(patience.call(lambda: read_small(remote.read(name), MAX_INDEX_BYTES)))
    except (ValueError, RecursionError):
        return None
