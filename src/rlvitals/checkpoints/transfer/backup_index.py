"""What a backup says of itself, at its root: whose it is, and what it put there.

A file's entry has two versions while it is on its way: whichever is there, it is known whole.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvitals.checkpoints.transfer.copy_files import Patience, first
from rlvitals.checkpoints.transfer.file_selection import INDEX
from rlvitals.checkpoints.transfer.filesystems import Place
from rlvitals.errors import UsageError, VitalsError
from rlvitals.storage.run_folder import RUN_FILE

FORMAT = 1
WRITER = "rlvitals"
LARGEST = 256 << 20  # bytes of an index: more is none of ours


@dataclass(frozen=True, slots=True)
class Version:
    """A file's content."""

    size: int  # bytes
    xxh3_128: str  # hex


ABSENT = Version(-1, "")  # the version before the first


@dataclass(frozen=True, slots=True)
class Index:
    """What a backup holds, and whose it is."""

    run_id: str
    name: str  # of the run's folder
    source: str = ""  # tells one source folder from another, where a run has no id
    files: Mapping[str, tuple[Version, ...]] = field(default_factory=dict)  # the newest last
    checkpoints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # folder: its files


def read(place: Place, sizes: Mapping[str, int], patience: Patience) -> Index | None:
    """Read a place's index; None where there is none. Raises VitalsError for a newer one."""
    said = _json(place, INDEX, sizes, patience)
    if not isinstance(said, dict) or said.get("written_by") != WRITER:
        return None
    if not isinstance(said.get("format"), int) or said["format"] > FORMAT:
        raise VitalsError(
            f"a backup of format {said.get('format')}, written by a newer rlvitals",
            where=place.name,
            hint=f"this one reads formats up to {FORMAT}: pip install --upgrade rlvitals",
        )
    try:
        return _index(said)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def write(place: Place, index: Index, patience: Patience) -> None:
    """Replace a place's index."""
    said = {
        "format": FORMAT,
        "written_by": WRITER,
        "run_id": index.run_id,
        "name": index.name,
        "source": index.source,
        "files": {
            name: [[one.size, one.xxh3_128] for one in versions]
            for name, versions in sorted(index.files.items())
        },
        "checkpoints": {name: list(files) for name, files in sorted(index.checkpoints.items())},
    }
    data = (json.dumps(said, indent=1) + "\n").encode()
    patience.call(lambda: place.write(INDEX, (data,)))


def owned(place: Place, sizes: Mapping[str, int], mine: Index, patience: Patience) -> Index:
    """Return what this run's backup holds so far. Raises UsageError where it is another's place."""
    found = read(place, sizes, patience)
    if found is not None:
        same = found.run_id == mine.run_id and (mine.run_id or found.source == mine.source)
        if not same:
            raise UsageError(
                f"this holds a backup of another run: {found.name}",
                where=place.name,
                hint="name a folder of its own for each run",
            )
        return Index(mine.run_id, mine.name, mine.source, found.files, found.checkpoints)
    others = sorted(name for name in sizes if not name.startswith((".", "lost+found")))
    if others and not (mine.run_id and _run_id(place, sizes, patience) == mine.run_id):
        raise UsageError(
            f"this is not empty and holds no backup of this run: {others[0]}",
            where=place.name,
            hint="name a folder of its own for each run",
        )
    return mine


def _run_id(place: Place, sizes: Mapping[str, int], patience: Patience) -> str:
    said = _json(place, RUN_FILE, sizes, patience)
    return str(said.get("id", "")) if isinstance(said, dict) else ""


def _json(place: Place, name: str, sizes: Mapping[str, int], patience: Patience) -> object:
    if name not in sizes or sizes[name] > LARGEST:
        return None
    try:
        return json.loads(patience.call(lambda: first(place.read(name), LARGEST)))
    except (ValueError, RecursionError):
        return None


def _index(said: Mapping[str, Any]) -> Index:
    return Index(
        run_id=str(said["run_id"]),
        name=str(said["name"]),
        source=str(said["source"]),
        files={
            str(name): tuple(Version(int(size), str(hashed)) for size, hashed in versions)
            for name, versions in said["files"].items()
        },
        checkpoints={
            str(name): tuple(map(str, files)) for name, files in said["checkpoints"].items()
        },
    )
