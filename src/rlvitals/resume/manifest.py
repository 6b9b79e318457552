"""The seal of a checkpoint: which files it holds, how long they are, and what their hashes are.

A folder without a manifest is no checkpoint yet. torch and safetensors load a file in which a bit
has flipped without a word, and a trainer whose optimizer file is missing begins a new one: what
the manifest names must be there, to the bit.
"""

import json
import mmap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath

import xxhash

from rlvitals.errors import VitalsError
from rlvitals.resume import disk
from rlvitals.resume.naming import MANIFEST
from rlvitals.store import typed
from rlvitals.store.typed import Fields

FORMAT = 1
SEAL = "seal"  # of the manifest itself: its own hash
CHUNK = 16 << 20  # bytes that are hashed at once


class BadCheckpoint(VitalsError):  # noqa: N818 - the name says what went wrong
    """A checkpoint that does not hold what it must: it is not resumed from."""


class NotSealed(BadCheckpoint):
    """A folder that is no checkpoint of ours, or none that this version can read."""


@dataclass(frozen=True, slots=True)
class File:
    """One file as it was sealed."""

    size: int  # bytes
    xxh3_128: str  # hex


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint is and holds."""

    step: int
    sequence: int  # ascends with each save of a run: which is the newest, whatever the clock says
    files: Mapping[str, File]  # by path within the folder, parts joined by "/"
    run_id: str = ""
    attempt: int = 1  # which start of the run's process saved it
    parent: int | None = None  # the step that this attempt went on from
    created: float = 0.0  # seconds since the epoch
    world_size: int = 1
    settings_hash: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    health: str = ""  # the diagnosis at that step: "healthy", or what is wrong
    metrics: Mapping[str, float] = field(default_factory=dict)
    pinned: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)  # what its writer adds


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Hash a folder's files and write its manifest, last of all. OSError, BadCheckpoint."""
    sealed = replace(manifest, files={name: look(folder, name) for name in names(folder)})
    write(folder, sealed)
    return sealed


def names(folder: Path) -> list[str]:
    """List the files to be sealed. Raises OSError, BadCheckpoint for a link and where none are."""
    found = []
    for path in disk.files(folder):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST:
            continue
        if path.is_symlink():
            raise BadCheckpoint(
                f"{name} is a link: what it points to is not part of the checkpoint",
                where=str(folder),
                hint="copy the file into the checkpoint",
            )
        found.append(name)
    if not found:
        raise BadCheckpoint("nothing was saved", where=str(folder), hint="write files into it")
    return found


def look(folder: Path, name: str) -> File:
    """Read what is to be sealed of a file. OSError."""
    path = folder / name
    return File(path.stat().st_size, digest(path))


def sized(folder: Path, files: Mapping[str, File]) -> dict[str, File]:
    """See that files are as long as they were written. Raises OSError, BadCheckpoint."""
    for name, file in files.items():
        size = (folder / name).stat().st_size
        if size != file.size:
            problem = f"{name} has {size:,} bytes, {file.size:,} were written"
            raise BadCheckpoint(problem, where=str(folder))
    return dict(files)


def write(folder: Path, sealed: Manifest) -> None:
    """Write a manifest into a checkpoint's folder, whole or not at all. OSError."""
    said = {"format": FORMAT, "written_by": "rlvitals"}
    said |= {one.name: getattr(sealed, one.name) for one in fields(Manifest)}
    said |= {"files": {name: asdict(file) for name, file in sealed.files.items()}}
    disk.write_whole(folder / MANIFEST, _text({**said, SEAL: _seal(said)}))


def read(folder: Path, step: int | None = None) -> Manifest:
    """Read a checkpoint's manifest. Raises NotSealed, or BadCheckpoint where it is damaged.

    `step`: what it must be of, where that is known.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotSealed("it was never sealed: no manifest", where=str(folder)) from None
    except OSError as error:
        raise BadCheckpoint(f"its manifest cannot be read: {error}", where=str(path)) from None
    return parse(data, str(path), step)


def parse(data: bytes, where: str, step: int | None = None) -> Manifest:
    """Read the bytes of a manifest; `where` is what errors call it. Raises as `read`."""
    try:
        said = typed.load(data)
    except ValueError as error:
        raise BadCheckpoint(f"its manifest is damaged: {error}", where=where) from None
    if not isinstance(said, dict) or not isinstance(said.get("format"), int):
        raise NotSealed("its manifest is none of rlvitals", where=where)
    if said["format"] > FORMAT:
        raise NotSealed(
            f"its manifest is of format {said['format']}, written by a newer rlvitals",
            where=where,
            hint=f"this one reads formats up to {FORMAT}: pip install --upgrade rlvitals",
        )
    seal = said.pop(SEAL, "")
    if seal != _seal(said) or data != _text({**said, SEAL: seal}).encode():
        raise BadCheckpoint("its manifest is not as it was written", where=where)
    try:
        found = _manifest(said)
    except ValueError as error:
        raise BadCheckpoint(f"its manifest is damaged: {error}", where=where) from None
    if step is not None and found.step != step:
        raise BadCheckpoint(f"its manifest is of step {found.step:,}", where=where)
    return found


def verify(
    folder: Path, manifest: Manifest | None = None, share: tuple[int, int] = (0, 1)
) -> Manifest:
    """Compare every file with the seal. Raises BadCheckpoint, which names the first that differs.

    Files that were added later are no part of the checkpoint, and are not looked at. `share`: of
    so many, which part of the files (rank, processes).
    """
    sealed = read(folder) if manifest is None else manifest
    rank, processes = share
    for name, file in list(sealed.files.items())[rank::processes]:
        path = folder / PurePosixPath(name)
        try:
            size = path.lstat().st_size
            whole = size == file.size and not path.is_symlink()
            same = whole and digest(path) == file.xxh3_128
        except FileNotFoundError:
            raise BadCheckpoint(f"{name} is missing", where=str(folder)) from None
        except OSError as error:
            raise BadCheckpoint(f"{name} cannot be read: {error}", where=str(folder)) from None
        if not whole:
            problem = f"{name} has {size:,} bytes, {file.size:,} were sealed"
            raise BadCheckpoint(problem, where=str(folder))
        if not same:
            problem = f"{name} is not what was sealed: its hash differs"
            raise BadCheckpoint(problem, where=str(folder))
    return sealed


def digest(path: Path) -> str:
    """Return a file's xxh3_128, in hex. OSError."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        length = path.stat().st_size
        if length > CHUNK:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                for start in range(0, length, CHUNK):
                    with memoryview(view)[start : start + CHUNK] as part:
                        hashed.update(part)
        else:
            hashed.update(file.read())
    return str(hashed.hexdigest())


def _text(said: Mapping[str, object]) -> str:
    return json.dumps(said, indent=1, sort_keys=True) + "\n"


def _seal(said: Mapping[str, object]) -> str:
    return str(xxhash.xxh3_128(_text(said).encode()).hexdigest())


def _manifest(content: Mapping[str, object]) -> Manifest:
    """Take each field as its type: sealed, it must be right. Raises ValueError."""
    record = Fields(content, MANIFEST)
    files = Fields(record.values.get("files"), "files").values
    metrics = Fields(record.values.get("metrics", {}), "metrics")
    parent = record.values.get("parent")
    manifest = Manifest(
        step=typed.integer(record.values.get("step")),
        sequence=typed.count(record.values.get("sequence")),
        files={_inside(name): _file(item, name) for name, item in files.items()},
        run_id=record.take("run_id", typed.text, ""),
        attempt=record.take("attempt", typed.count, 1),
        parent=None if parent is None else record.take("parent", typed.integer, None),
        created=record.take("created", typed.moment, 0.0),
        world_size=record.take("world_size", typed.count, 1),
        settings_hash=record.take("settings_hash", typed.text, ""),
        versions={name: typed.text(item) for name, item in record.mapping("versions").items()},
        health=record.take("health", typed.text, ""),
        metrics={name: metrics.take(name, typed.real, 0.0) for name in metrics.values},
        pinned=record.values.get("pinned") is True,
        facts=record.mapping("facts"),
    )
    if wrong := [*record.wrong, *metrics.wrong]:
        raise ValueError(wrong[0])
    if not manifest.files:
        raise ValueError("it names no files")
    return manifest


def _file(value: object, name: str) -> File:
    record = Fields(value, name)
    return File(typed.count(record.values.get("size")), typed.text(record.values.get("xxh3_128")))


def _inside(name: str) -> str:
    """Refuse a name that leads out of the checkpoint's folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise ValueError(f"{name!r} lies outside the checkpoint")
    return name
