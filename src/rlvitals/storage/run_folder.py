"""Read and write the folder of a run: `run.json`, its copy, and the names of its other files.

    <run>/run.json                      who and what; rewritten whole, or not at all
    <run>/.run.json.copy                the same bytes, for where a bit of run.json has flipped
    <run>/blocks/<attempt>-<rank>.rlv   the numbers: one file for each process start and rank
    <run>/events.jsonl                  what happened

No absolute path is stored: a run can be moved. Two processes on one folder are two attempts.
"""

import json
import os
import re
import time as clock
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import payloads, redact, safe_files, temp_files, typed
from rlvitals.storage.events import Events
from rlvitals.storage.typed import Fields

RUN_FORMAT = 1
RUN_FILE = "run.json"
RUN_WRITER = "rlvitals"  # distinguishes this run.json from other programs' files
EVENTS_FILE = "events.jsonl"
BLOCKS_FOLDER = "blocks"
BLOCK_FILE = re.compile(r"(\d+)-(\d+)(?:\.packed)?\.rlv")
RUN_COPY = ".run.json.copy"
CHECKSUM_ENTRY = b',\n "checksum": "'  # the last entry of run.json, of all bytes before it


class NewerFormat(UnreadableLog):
    """A run folder that this version of the program must not guess at."""


class LostRun(UnreadableLog):
    """A folder in which `run.json` and its copy are damaged or missing."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A start of the run's process, or processes: all ranks of a launch share its number."""

    number: int  # from 1
    started: float  # seconds since the epoch
    launch: str = ""  # identifier of the launch: its ranks share an attempt
    host: str = ""
    pid: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True)
class About:
    """The metadata of a run: the content of `run.json`."""

    id: str = ""
    name: str = ""
    project: str = ""
    group: str = ""
    seed: int | None = None
    created: float = 0.0  # seconds since the epoch
    settings: Mapping[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""
    framework: str = ""  # whose keys the run logs, where a hook records it: "sb3", "trl"
    command: tuple[str, ...] = ()
    git: Mapping[str, object] = field(default_factory=dict)
    host: Mapping[str, object] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)  # what a caller adds: packages, seeds
    wrong: tuple[str, ...] = ()  # fields of the file that were dropped, in words; never written


@dataclass(frozen=True, slots=True)
class BlockFile:
    """The paths of the blocks of one rank of an attempt."""

    attempt: int
    rank: int
    path: Path  # of the file that grows; gone once it is packed
    packed: Path | None = None  # of the compacted file that replaces its beginning, or all of it

    @property
    def paths(self) -> tuple[Path, ...]:
        """The existing files of both."""
        packed_paths = () if self.packed is None else (self.packed,)
        return (*packed_paths, self.path) if self.path.exists() else packed_paths


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder and the content of its `run.json` when it was opened."""

    path: Path
    about: About

    @classmethod
    def create(cls, path: Path, info: About) -> "RunFolder":
        """Make a run folder, or open the existing one and keep its `run.json`.

        Damaged copies of `run.json` are written anew, and set aside as `run.json.corrupt`. Raises
        OSError, and UnreadableLog for a folder of a newer format.
        """
        safe_files.make_folders(path)
        safe_files.make_folder(path / BLOCKS_FOLDER)
        new_info = replace(
            info,
            id=info.id or os.urandom(16).hex(),
            name=info.name or path.resolve().name,
            created=info.created or clock.time(),
        )
        with safe_files.lock(path):
            try:
                stored = read_both(path / RUN_FILE)
            except LostRun:
                return cls(path, _write(path / RUN_FILE, new_info, damaged=True))
            if stored.damage:
                _write(path / RUN_FILE, stored.about, damaged=stored.from_copy)
        return cls(path, stored.about)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run folder. Raises UnreadableLog where it is none, damaged, or a newer one."""
        return cls(path, read_about(path / RUN_FILE))

    @property
    def events(self) -> Events:
        """The writer of the run's events."""
        return Events(self.path / EVENTS_FILE)

    @property
    def events_path(self) -> Path:
        """The file of events."""
        return self.path / EVENTS_FILE

    def update(self, **changes: object) -> "RunFolder":
        """Change parts of `run.json` in one rewrite; what others changed meanwhile stays.

        Raises OSError.
        """
        with safe_files.lock(self.path):
            stored = read_both(self.path / RUN_FILE)
            info = replace(stored.about, **changes)  # type: ignore[arg-type]
            _write(self.path / RUN_FILE, info, damaged=stored.from_copy)
        return RunFolder(self.path, info)

    def begin(
        self, rank: int = 0, *, launch: str = "", host: str = "", world_size: int = 1
    ) -> tuple["RunFolder", int, Path]:
        """Begin an attempt, or join that of the same launch. Return its number and block file.

        The file is made empty: it is this process's alone. Raises OSError.
        """
        with safe_files.lock(self.path):
            stored = read_both(self.path / RUN_FILE)
            info = stored.about
            claimed = {(file.attempt, file.rank) for file in self.block_files()}
            unclaimed = [a for a in info.attempts if (a.number, rank) not in claimed]
            if launch:
                number = next(
                    (attempt.number for attempt in unclaimed if attempt.launch == launch), None
                )
            else:
                # The launch is unknown: a later rank belongs to the newest attempt of rank 0.
                newest = max((attempt.number for attempt in info.attempts), default=0)
                is_unclaimed = any(attempt.number == newest for attempt in unclaimed)
                number = newest if rank and is_unclaimed else None
            while not (number and self._claim(number, rank)):
                number = max([number or 0, *(file.attempt for file in self.block_files())]) + 1
            if all(attempt.number != number for attempt in info.attempts):
                new = Attempt(number, clock.time(), launch, host, os.getpid(), world_size)
                info = replace(info, attempts=(*info.attempts, new))
                _write(self.path / RUN_FILE, info, damaged=stored.from_copy)
            path = self.block_path(number, rank)
            temp_files.remove_stale(self.path, path.stat().st_mtime)
        return RunFolder(self.path, info), number, path

    def _claim(self, number: int, rank: int) -> bool:
        path = self.block_path(number, rank)
        if path.with_suffix(".packed.rlv").exists():
            return False
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return False
        return True

    def block_path(self, attempt: int, rank: int) -> Path:
        """Name the block file of an attempt's rank."""
        return self.path / BLOCKS_FOLDER / f"{attempt}-{rank}.rlv"

    def block_files(self) -> tuple[BlockFile, ...]:
        """List the block files: by attempt, then by rank."""
        return block_files(self.path)


def block_files(folder: Path) -> tuple[BlockFile, ...]:
    """List the block files of a run's folder: by attempt, then by rank."""
    try:
        names = {entry.name for entry in os.scandir(folder / BLOCKS_FOLDER)}
    except (FileNotFoundError, NotADirectoryError):
        return ()
    matches = [match for name in names if (match := BLOCK_FILE.fullmatch(name))]
    files = []
    for attempt, rank in sorted({(int(m[1]), int(m[2])) for m in matches}):
        path = folder / BLOCKS_FOLDER / f"{attempt}-{rank}.rlv"
        packed = path.with_suffix(".packed.rlv")
        files.append(BlockFile(attempt, rank, path, packed if packed.name in names else None))
    return tuple(files)


@dataclass(frozen=True, slots=True)
class Stored:
    """The combined content of `run.json` and its copy."""

    about: About
    damage: str = ""  # which of the two is damaged or missing, as a sentence
    from_copy: bool = False  # `run.json` is of no use


@dataclass(frozen=True, slots=True)
class FileState:
    """The result of reading one of the two files."""

    about: About | None = None
    same: bool | None = None  # whether its checksum holds; None: it has none
    error: UnreadableLog | None = None  # None: there is no such file
    data: bytes = b""  # where it was understood: a copy with the same bytes is not parsed again


def is_run(folder: Path) -> bool:
    """Return whether a folder contains `run.json` or its copy. Raises OSError."""
    return (folder / RUN_FILE).exists() or (folder / RUN_COPY).exists()


def read_about(path: Path) -> About:
    """Read a `run.json`, or its copy where that is damaged or gone.

    Raises UnreadableLog where neither can be read or understood, and for a newer format.
    """
    return read_both(path).about


def read_both(path: Path) -> Stored:
    """Read a `run.json` and its copy, and choose. Raises UnreadableLog as `read_about`."""
    return choose_copy(run := _read_state(path), _read_state(path.with_name(RUN_COPY), run), path)


def choose_copy(run: FileState, copy: FileState, path: Path) -> Stored:
    """Choose the file whose bytes are unchanged.

    A `run.json` without a checksum is one of an older version, which knows no copy. Raises LostRun
    where neither can be understood, and what was wrong with `run.json`.
    """
    if isinstance(run.error, NewerFormat) and run.same is not False:
        raise run.error
    wrong = run.error.problem if run.error else f"{RUN_FILE} is missing"
    if run.about is not None:
        if run.same is not False:
            has_copy = copy.error is not None or copy.about is not None
            spoilt = has_copy and copy.same is not True
            return Stored(run.about, f"{RUN_COPY} is damaged" if spoilt else "")
        wrong = f"{RUN_FILE} is not as it was written: its checksum differs"
        if not (copy.same and copy.about):
            return Stored(run.about, wrong)
    if copy.about is not None:
        return Stored(copy.about, f"{wrong}; its copy {RUN_COPY} is used", from_copy=True)
    if run.error is not None:
        raise run.error
    hint = "rlvitals diagnose PATH reads logs of all tools; a run folder holds run.json"
    raise LostRun("not a run folder", where=str(path.parent), hint=hint)


def parse_state(data: bytes, path: Path) -> FileState:
    """Read the bytes of a `run.json` or of its copy."""
    body, mark, end = data.rpartition(CHECKSUM_ENTRY)
    is_intact = end == safe_files.checksum(body) + b'"\n}' if mark else None
    try:
        return FileState(parse_about(data, path), is_intact, data=data)
    except UnreadableLog as error:
        return FileState(None, is_intact, error)


def copy_state(path: Path) -> FileState:
    """Read the copy of a `run.json`. Raises UnreadableLog where it is there and cannot be read."""
    return _read_state(path.with_name(RUN_COPY))


def _read_state(path: Path, twin: FileState | None = None) -> FileState:
    try:
        data = safe_files.read_regular(path)
        return twin if twin and twin.data == data else parse_state(data, path)
    except (FileNotFoundError, NotADirectoryError):
        return FileState()
    except OSError as error:
        hint = "nothing was changed: mend the rights or the disk, and try again"
        problem = f"cannot read: {error.strerror}"
        raise UnreadableLog(problem, where=str(path), hint=hint) from None


def parse_about(data: bytes, path: Path) -> About:
    """Read the bytes of a `run.json`; `path` is what errors call it. Raises UnreadableLog."""
    try:
        record = typed.load(data)
    except ValueError:
        raise LostRun("run.json is damaged", where=str(path)) from None
    if not isinstance(record, dict) or not isinstance(record.get("format"), int):
        raise UnreadableLog("no run.json of rlvitals", where=str(path))
    if record["format"] > RUN_FORMAT:
        raise NewerFormat(
            f"a run folder of format {record['format']}, written by a newer rlvitals",
            where=str(path),
            hint=f"this one reads formats up to {RUN_FORMAT}: pip install --upgrade rlvitals",
        )
    return parse_fields(Fields(record, RUN_FILE))


def parse_fields(record: Fields) -> About:
    """Convert each field to its type; a wrong one is named in `wrong` and gets its default."""
    listed = record.values.get("attempts", [])
    if not isinstance(listed, list):
        record.drop("attempts", typed.WrongTypeError("is not a list"))
        listed = []
    attempts = [_attempt(attempt, f"attempts[{i}]", record) for i, attempt in enumerate(listed)]
    return About(
        id=record.take("id", typed.text, ""),
        name=record.take("name", typed.text, ""),
        project=record.take("project", typed.text, ""),
        group=record.take("group", typed.text, ""),
        seed=record.take("seed", typed.seed, None),
        created=record.take("created", typed.moment, 0.0),
        settings=record.mapping("settings"),
        tags=record.take("tags", typed.texts, ()),
        notes=record.take("notes", typed.text, ""),
        framework=record.take("framework", typed.text, ""),
        command=record.take("command", typed.texts, ()),
        git=record.mapping("git"),
        host=record.mapping("host"),
        attempts=tuple(attempt for attempt in attempts if attempt is not None),
        more=record.mapping("more"),
        wrong=tuple(record.wrong),
    )


def _attempt(value: object, name: str, parent: Fields) -> Attempt | None:
    try:
        record = Fields(value, f"{parent.where}: {name}")
        number = typed.count(record.values.get("number"))
    except ValueError as error:
        parent.drop(name, error)
        return None
    attempt = Attempt(
        number,
        record.take("started", typed.moment, 0.0),
        record.take("launch", typed.text, ""),
        record.take("host", typed.text, ""),
        record.take("pid", typed.count, 0),
        record.take("world_size", typed.count, 1),
    )
    parent.wrong += record.wrong
    return attempt


def without_secrets(info: About) -> About:
    """Return the metadata without secrets, as `run.json` stores it."""
    texts = ("name", "project", "group", "notes", "framework")
    clean: dict[str, Any] = {key: redact.clean_text(getattr(info, key)) for key in texts}
    groups = ("settings", "git", "host", "more")
    clean |= {key: redact.clean_mapping(getattr(info, key)) for key in groups}
    clean["tags"] = tuple(map(redact.clean_text, info.tags))
    clean["command"] = tuple(map(redact.hide_home, redact.command(info.command)))
    return replace(info, **clean)


def _write(path: Path, info: About, *, damaged: bool = False) -> About:
    """Write both files atomically: a reader finds the old version or the new one.

    `damaged`: the existing `run.json` is set aside first. Returns what was written.
    """
    info = without_secrets(info)
    record = {
        "format": RUN_FORMAT,
        "written_by": RUN_WRITER,
        **{item.name: getattr(info, item.name) for item in fields(About) if item.name != "wrong"},
    }
    record["attempts"] = [asdict(attempt) for attempt in info.attempts]
    body = json.dumps(record, indent=1, default=payloads.plain).encode().removesuffix(b"\n}")
    if damaged and os.path.lexists(path):
        path.replace(safe_files.free_name(path))
    data = body + CHECKSUM_ENTRY + safe_files.checksum(body) + b'"\n}'
    with safe_files.atomic_write(path) as file:
        file.write(data)
    with suppress(OSError), safe_files.atomic_write(path.with_name(RUN_COPY)) as file:
        file.write(data)  # without room for it, the next rewrite makes it
    return info
