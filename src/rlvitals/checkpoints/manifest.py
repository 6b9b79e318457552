"""The manifest (seal) of a checkpoint: its files, their sizes and their hashes.

A folder without a manifest is not a checkpoint. torch and safetensors load a file with a flipped
bit without a warning, and a trainer whose optimizer file is missing begins a new one: every file
in the manifest must be present, bit for bit.
"""

import errno
import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, field, fields, replace
from pathlib import Path, PurePosixPath

import xxhash

from rlvitals.checkpoints import disk, naming
from rlvitals.checkpoints.naming import MANIFEST_FILE
from rlvitals.errors import VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.storage.safe_files import NotAFile, read_regular
from rlvitals.storage.typed import Fields

MANIFEST_FORMAT = 1
SEAL_KEY = "seal"  # of the manifest itself: its own hash


class CannotResume(VitalsError):  # noqa: N818 - the name says what went wrong
    """A run cannot continue, and is not started at step 0 either: nothing was changed."""


class UnreadableCheckpoint(CannotResume):
    """A file of a checkpoint could not be read: a file system error proves no damage."""

    def __init__(self, path: Path, error: OSError) -> None:
        """Store the path and the system's error."""
        number = error.errno if error.errno is not None else 0
        # By the kind of a read error: what a person can do about it.
        remedies = {
            errno.EACCES: "give this user the right to read it (chmod -R u+rX, chown)",
            errno.EPERM: "give this user the right to read it (chmod -R u+rX, chown)",
            errno.EIO: "the disk reports a read error: look at dmesg, "
            "or copy the folder to another disk",
            errno.ESTALE: "mount the network file system again",
            errno.EMFILE: "allow the process more open files (ulimit -n)",
            errno.ENFILE: "close programs with many open files, or raise fs.file-max",
            errno.ENOMEM: "free memory",
        }
        remedy = remedies.get(number, "mend the file system")
        super().__init__(
            f"cannot be read: {error.strerror or error}",
            where=error.filename if isinstance(error.filename, str) else str(path),
            hint=f"{remedy}, then run the same command again; the checkpoints are as they were",
        )


class BadCheckpoint(VitalsError):  # noqa: N818 - the name says what went wrong
    """A checkpoint that lacks required content: it is not resumed from."""


class NotSealed(BadCheckpoint):
    """A folder without a manifest that this version can read."""


class NewerSeal(NotSealed):
    """A manifest of a newer version of this package."""


@dataclass(frozen=True, slots=True)
class File:
    """One file as it was sealed."""

    size: int  # bytes
    xxh3_128: str  # hex


@dataclass(frozen=True, slots=True)
class Manifest:
    """Metadata and files of a checkpoint."""

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
    code: Mapping[str, str] = field(default_factory=dict)  # training code: file, its digests
    health: str = ""  # the diagnosis at that step: "healthy", or what is wrong
    metrics: Mapping[str, float] = field(default_factory=dict)
    pinned: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)  # what its writer adds
    process: str = ""  # that saved it


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Hash a folder's files and write its manifest, last of all. OSError, BadCheckpoint."""
    sealed = replace(
        manifest, files={name: describe_file(folder, name) for name in list_files(folder)}
    )
    write(folder, sealed)
    return sealed


def list_files(folder: Path) -> list[str]:
    """List the files to seal. Raises OSError; BadCheckpoint for a link, or without files."""
    files = []
    for path in disk.walk_files(folder):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST_FILE:
            continue
        if path.is_symlink():
            raise BadCheckpoint(
                f"{name} is a link: what it points to is not part of the checkpoint",
                where=str(folder),
                hint="copy the file into the checkpoint",
            )
        files.append(name)
    if not files:
        raise BadCheckpoint("nothing was saved", where=str(folder), hint="write files into it")
    return files


def describe_file(folder: Path, name: str) -> File:
    """Return the size and hash of a file. Raises OSError."""
    path = folder / name
    return File(path.stat().st_size, file_digest(path))


def check_sizes(folder: Path, files: Mapping[str, File]) -> dict[str, File]:
    """Check that files have the size that was written. Raises OSError, BadCheckpoint."""
    for name, file in files.items():
        size = (folder / name).stat().st_size
        if size != file.size:
            problem = f"{name} has {size:,} bytes, {file.size:,} were written"
            raise BadCheckpoint(problem, where=str(folder))
    return dict(files)


def write(folder: Path, sealed: Manifest) -> None:
    """Write a manifest into a checkpoint's folder, atomically. Raises OSError."""
    content = {"format": MANIFEST_FORMAT, "written_by": "rlvitals"}
    content |= {spec.name: getattr(sealed, spec.name) for spec in fields(Manifest)}
    content |= {"files": {name: asdict(file) for name, file in sealed.files.items()}}
    disk.replace_text(
        folder / MANIFEST_FILE, _to_json({**content, SEAL_KEY: _hash_content(content)})
    )


def read(folder: Path, step: int | None = None) -> Manifest:
    """Read a checkpoint's manifest. Raises NotSealed, or BadCheckpoint if it is damaged.

    `step`: the expected step, if known. Raises UnreadableCheckpoint if the file cannot be read.
    """
    path = folder / MANIFEST_FILE
    try:
        data = read_regular(path)
    except FileNotFoundError:
        if not folder.is_dir():
            hint = f"rlvitals checkpoints {folder.parent}"
            raise NotSealed("there is no such checkpoint", where=str(folder), hint=hint) from None
        raise NotSealed("it was never sealed: no manifest", where=str(folder)) from None
    except (NotAFile, NotADirectoryError) as error:
        raise BadCheckpoint(
            f"its manifest is not a file: {error.strerror}", where=str(path)
        ) from None
    except OSError as error:
        raise UnreadableCheckpoint(path, error) from None
    return parse(data, str(path), step)


def parse(data: bytes, where: str, step: int | None = None) -> Manifest:
    """Parse the bytes of a manifest; `where` names them in errors. Raises as `read`."""
    try:
        content = typed.load(data)
    except ValueError as error:
        raise BadCheckpoint(f"its manifest is damaged: {error}", where=where) from None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise NotSealed("its manifest was not written by rlvitals", where=where)
    if content["format"] > MANIFEST_FORMAT:
        raise NewerSeal(
            f"its manifest is of format {content['format']}, written by a newer rlvitals",
            where=where,
            hint=f"this one reads formats up to {MANIFEST_FORMAT}: pip install --upgrade rlvitals",
        )
    seal = content.pop(SEAL_KEY, "")
    if seal != _hash_content(content) or data != _to_json({**content, SEAL_KEY: seal}).encode():
        raise BadCheckpoint("its manifest is not as it was written", where=where)
    try:
        manifest = _parse_manifest(content)
    except ValueError as error:
        raise BadCheckpoint(f"its manifest is damaged: {error}", where=where) from None
    if step is not None and manifest.step != step:
        raise BadCheckpoint(f"its manifest is of step {manifest.step:,}", where=where)
    return manifest


def verify(
    folder: Path, manifest: Manifest | None = None, share: tuple[int, int] = (0, 1)
) -> Manifest:
    """Compare every file with the manifest. Raises BadCheckpoint naming the first that differs.

    Raises UnreadableCheckpoint for a file that cannot be read: it may be intact. Files added later
    are not part of the checkpoint, and are ignored. `share`: (rank, processes), to verify only this
    rank's part of the files.
    """
    sealed = read(folder) if manifest is None else manifest
    rank, processes = share
    for name, file in list(sealed.files.items())[rank::processes]:
        if problem := _find_difference(folder / PurePosixPath(name), name, file):
            raise BadCheckpoint(problem, where=str(folder))
    return sealed


def _find_difference(path: Path, name: str, file: File) -> str:
    """Return how a file differs from the manifest; "" if not. Raises UnreadableCheckpoint."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return f"{name} is not a regular file"
        if status.st_size != file.size:
            return f"{name} has {status.st_size:,} bytes, {file.size:,} were sealed"
        is_same = file_digest(path) == file.xxh3_128
    except (FileNotFoundError, NotADirectoryError):
        return f"{name} is missing"
    except OSError as error:
        raise UnreadableCheckpoint(path, error) from None
    return "" if is_same else f"{name} is not what was sealed: its hash differs"


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Raise UnreadableCheckpoint for an OSError: an unreadable file may be intact."""
    try:
        yield
    except OSError as error:
        raise UnreadableCheckpoint(path, error) from None


def find_run_id(folder: Path) -> str:
    """Return the run id of the newest checkpoint of a folder; "" if none. Raises OSError.

    Damaged manifests are skipped.
    """
    newest_sequence, newest_id = -1, ""
    for path in naming.find_checkpoints(folder).values():
        try:
            sealed = parse(read_regular(path / MANIFEST_FILE), str(path))
        except (BadCheckpoint, FileNotFoundError, NotAFile):
            continue
        if sealed.run_id and sealed.sequence > newest_sequence:
            newest_sequence, newest_id = sealed.sequence, sealed.run_id
    return newest_id


def file_digest(path: Path) -> str:
    """Return a file's xxh3_128 as hex. Raises OSError."""
    # A chunk fits a processor's cache.
    hashed, chunk = xxhash.xxh3_128(), memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(chunk):  # not mapped: a read error there kills the process
            hashed.update(chunk[:size])
    return str(hashed.hexdigest())


def _to_json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _hash_content(content: Mapping[str, object]) -> str:
    return str(xxhash.xxh3_128(_to_json(content).encode()).hexdigest())


def _parse_manifest(content: Mapping[str, object]) -> Manifest:
    """Parse each field by its type. Raises ValueError."""
    record = Fields(content, MANIFEST_FILE)
    files = Fields(record.values.get("files"), "files").values
    metrics = Fields(record.values.get("metrics", {}), "metrics")
    parent = record.values.get("parent")
    manifest = Manifest(
        step=typed.integer(record.values.get("step")),
        sequence=typed.count(record.values.get("sequence")),
        files={_check_name(name): _parse_file(item, name) for name, item in files.items()},
        run_id=record.take("run_id", typed.text, ""),
        attempt=record.take("attempt", typed.count, 1),
        parent=None if parent is None else record.take("parent", typed.integer, None),
        created=record.take("created", typed.moment, 0.0),
        world_size=record.take("world_size", typed.count, 1),
        settings_hash=record.take("settings_hash", typed.text, ""),
        versions={name: typed.text(item) for name, item in record.mapping("versions").items()},
        code={name: typed.text(item) for name, item in record.mapping("code").items()},
        health=record.take("health", typed.text, ""),
        metrics={name: metrics.take(name, typed.real, 0.0) for name in metrics.values},
        pinned=record.values.get("pinned") is True,
        facts=record.mapping("facts"),
        process=record.take("process", typed.text, ""),
    )
    if wrong := [*record.wrong, *metrics.wrong]:
        raise ValueError(wrong[0])
    if not manifest.files:
        raise ValueError("it names no files")
    return manifest


def _parse_file(value: object, name: str) -> File:
    record = Fields(value, name)
    return File(typed.count(record.values.get("size")), typed.text(record.values.get("xxh3_128")))


def _check_name(name: str) -> str:
    """Return the name; raise ValueError if it leads out of the checkpoint's folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise ValueError(f"{name!r} lies outside the checkpoint")
    return name
