"""A run's folder: who and what it is, and where its parts lie.

    <run>/run.json                      who and what; rewritten whole, or not at all
    <run>/blocks/<attempt>-<rank>.rlv   the numbers: one file for each process start and rank
    <run>/events.jsonl                  what happened

No absolute path is stored: a run can be moved. Two processes on one folder are two attempts.
"""

import json
import os
import re
import time as clock
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

from rlvitals import redact
from rlvitals.errors import UnreadableLog
from rlvitals.store import litter, payloads
from rlvitals.store.events import Events

FORMAT = 1
RUN_FILE = "run.json"
WRITER = "rlvitals"  # tells this run.json from other programs'
EVENTS_FILE = "events.jsonl"
BLOCKS = "blocks"
BLOCK_FILE = re.compile(r"(\d+)-(\d+)\.rlv")
PACKED_FILE = re.compile(r"(\d+)-(\d+)\.packed\.rlv")
LOCK_FILE = ".run.lock"
PATIENCE = 2.0  # seconds: a rewrite takes milliseconds, and a start must not hang on a dead disk


class NewerFormat(UnreadableLog):
    """A run folder that this version of the program must not guess at."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the run's process, or processes: all ranks of a launch share its number."""

    number: int  # from 1
    started: float  # seconds since the epoch
    launch: str = ""  # what tells a launch from others: ranks of the same one are one attempt
    host: str = ""
    pid: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True)
class About:
    """Who and what a run is: what `run.json` holds."""

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


@dataclass(frozen=True, slots=True)
class BlockFile:
    """Where an attempt's rank has its blocks."""

    attempt: int
    rank: int
    path: Path  # of the file that grows; gone once it is packed
    packed: Path | None = None  # of the file that stands for its beginning, or all of it

    @property
    def paths(self) -> tuple[Path, ...]:
        """Both files, those that are there."""
        both = () if self.packed is None else (self.packed,)
        return (*both, self.path) if self.path.exists() else both


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder and what its `run.json` said when it was opened."""

    path: Path
    about: About

    @classmethod
    def create(cls, path: Path, about: About) -> "RunFolder":
        """Make a run folder, or open the one that is there: then its own `run.json` holds.

        Raises OSError, and UnreadableLog for a folder of a newer format.
        """
        (path / BLOCKS).mkdir(parents=True, exist_ok=True)
        made = replace(
            without_secrets(about),
            id=about.id or os.urandom(16).hex(),
            name=about.name or path.resolve().name,
            created=about.created or clock.time(),
        )
        with lock(path):
            if not (path / RUN_FILE).exists():
                _write(path / RUN_FILE, made)
                return cls(path, made)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run folder. Raises UnreadableLog where it is none, damaged, or a newer one."""
        return cls(path, read_about(path / RUN_FILE))

    @property
    def events(self) -> Events:
        """What appends to the run's events."""
        return Events(self.path / EVENTS_FILE)

    @property
    def events_path(self) -> Path:
        """The file of events."""
        return self.path / EVENTS_FILE

    def update(self, **changes: object) -> "RunFolder":
        """Change parts of `run.json` in one rewrite; what others changed meanwhile stays.

        Raises OSError.
        """
        with lock(self.path):
            about = replace(read_about(self.path / RUN_FILE), **changes)  # type: ignore[arg-type]
            _write(self.path / RUN_FILE, about)
        return RunFolder(self.path, about)

    def begin(
        self, rank: int = 0, *, launch: str = "", host: str = "", world_size: int = 1
    ) -> tuple["RunFolder", int, Path]:
        """Begin an attempt, or join the one of the same launch: its number and its block file.

        The file is made empty: it is this process's alone. Raises OSError.
        """
        with lock(self.path):
            about = read_about(self.path / RUN_FILE)
            number = self._joined(about, rank, launch)
            while not (number and self._claim(number, rank)):
                number = max([number or 0, *(one.attempt for one in self.block_files())]) + 1
            if all(one.number != number for one in about.attempts):
                new = Attempt(number, clock.time(), launch, host, os.getpid(), world_size)
                about = replace(about, attempts=(*about.attempts, new))
                _write(self.path / RUN_FILE, about)
            path = self.block_path(number, rank)
            litter.clear(self.path, path.stat().st_mtime)
        return RunFolder(self.path, about), number, path

    def _joined(self, about: About, rank: int, launch: str) -> int | None:
        """Find the attempt that a rank belongs to; None for a new one."""
        taken = {(one.attempt, one.rank) for one in self.block_files()}
        open_ones = [one for one in about.attempts if (one.number, rank) not in taken]
        if launch:
            return next((one.number for one in open_ones if one.launch == launch), None)
        # Nothing tells the launch: a later rank belongs to the newest attempt of rank 0.
        newest = max((one.number for one in about.attempts), default=0)
        return next((one.number for one in open_ones if rank and one.number == newest), None)

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
        return self.path / BLOCKS / f"{attempt}-{rank}.rlv"

    def block_files(self) -> tuple[BlockFile, ...]:
        """List the block files: by attempt, then by rank."""
        return block_files(self.path)


def block_files(folder: Path) -> tuple[BlockFile, ...]:
    """List the block files of a run's folder: by attempt, then by rank."""
    try:
        names = {entry.name for entry in os.scandir(folder / BLOCKS)}
    except (FileNotFoundError, NotADirectoryError):
        return ()
    matches = [m for n in names if (m := BLOCK_FILE.fullmatch(n) or PACKED_FILE.fullmatch(n))]
    found = []
    for attempt, rank in sorted({(int(m[1]), int(m[2])) for m in matches}):
        path = folder / BLOCKS / f"{attempt}-{rank}.rlv"
        packed = path.with_suffix(".packed.rlv")
        found.append(BlockFile(attempt, rank, path, packed if packed.name in names else None))
    return tuple(found)


def read_about(path: Path) -> About:
    """Read a `run.json`. Raises UnreadableLog where it is none, damaged, or of a newer format."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        hint = "a run folder holds run.json and blocks/"
        raise UnreadableLog("not a run folder", where=str(path.parent), hint=hint) from None
    except OSError as error:
        raise UnreadableLog(f"cannot read: {error.strerror}", where=str(path)) from None
    return parse_about(data, path)


def parse_about(data: bytes, path: Path) -> About:
    """Read the bytes of a `run.json`; `path` is what errors call it. Raises UnreadableLog."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableLog("run.json is damaged", where=str(path)) from None
    if not isinstance(said, dict) or not isinstance(said.get("format"), int):
        raise UnreadableLog("no run.json of rlvitals", where=str(path))
    if said["format"] > FORMAT:
        raise NewerFormat(
            f"a run folder of format {said['format']}, written by a newer rlvitals",
            where=str(path),
            hint=f"this one reads formats up to {FORMAT}: pip install --upgrade rlvitals",
        )
    try:
        return _about(said)
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableLog(f"run.json is damaged: {error}", where=str(path)) from None


def _about(said: Mapping[str, object]) -> About:
    known = {one.name: said[one.name] for one in fields(About) if one.name in said}
    known["tags"] = tuple(map(str, _list(said.get("tags"))))
    known["command"] = tuple(map(str, _list(said.get("command"))))
    own = {one.name for one in fields(Attempt)}
    known["attempts"] = tuple(
        Attempt(**{k: v for k, v in one.items() if k in own}) for one in _list(said.get("attempts"))
    )
    return About(**known)  # type: ignore[arg-type]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def without_secrets(about: About) -> About:
    """Return what `run.json` may hold."""
    texts = ("name", "project", "group", "notes", "framework")
    clean: dict[str, Any] = {key: redact.text(str(getattr(about, key))) for key in texts}
    groups = ("settings", "git", "host", "more")
    clean |= {key: redact.written(getattr(about, key)) for key in groups}
    clean["tags"] = tuple(redact.text(str(tag)) for tag in about.tags)
    clean["command"] = tuple(map(redact.homeless, redact.command(about.command)))
    return replace(about, **clean)


def _write(path: Path, about: About) -> None:
    """Write beside, then rename: a reader finds the old one whole or the new one."""
    about = without_secrets(about)
    said = {
        "format": FORMAT,
        "written_by": WRITER,
        **{one.name: getattr(about, one.name) for one in fields(About)},
    }
    said["attempts"] = [asdict(one) for one in about.attempts]
    text = json.dumps(said, indent=1, default=payloads.plain).encode()
    with beside(path) as file:
        file.write(text)


@contextmanager
def beside(path: Path) -> Iterator[IO[bytes]]:
    """Write a file beside its place and rename it: there is the old one or the new. OSError."""
    made = litter.half(path)
    try:
        with made.open("xb") as file:
            litter.hold(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Let one process at a time rewrite; where the file system has no locks, go on without."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    with (folder / LOCK_FILE).open("a") as file:
        patience = clock.monotonic() + PATIENCE
        while clock.monotonic() < patience:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                clock.sleep(0.005)
            except OSError:  # no locks here
                break
        yield
