"""Upload a run folder while it is recorded: one process for each folder and machine.

    uploader = Uploader(Path("runs/x"), ObjectStore("s3://bucket/runs/x"))
    while not uploader.upload():   # False: there is more
        ...

Each round reads the complete blocks and lines that are new, writes them as one segment, and then
the manifest that lists it. A round that is cut anywhere is repeated: a segment has its content's
hash in its name, and what no manifest lists is not part of the run. The bucket's manifest, not
this machine, says where to continue.
"""

import hashlib
import json
import os
import secrets
import socket
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from itertools import accumulate
from pathlib import Path

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket.node_manifest import ATTEMPTS, BEATS, MANIFESTS, SEGMENTS, Manifest, Piece
from rlvitals.bucket.object_store import Conditions, ObjectStore
from rlvitals.bucket.store_dialects import Conflict
from rlvitals.errors import UnreadableLog
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import frames
from rlvitals.storage.frames import Tail
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE, About, Attempt, read_about
from rlvitals.storage.safe_files import open_regular

MAX_ROUND_BYTES = 16 << 20  # of one round: it is in memory
MAX_MERGED_BYTES = 64 << 20  # of a segment that replaces several
NODE_FILE = ".bucket.node"  # in the run folder: the name of its manifest
MERGE_COUNT = 16  # segments of a level that are merged: a reader fetches 16 times fewer
MAX_MERGES = 3  # merges of one byte: 16 ** 3 rounds of 10 s are eleven hours
GROWING_HEAD_BYTES = 64  # of a growing file: another beginning is another file


@dataclass(slots=True)
class _Segment:
    """The bytes of the next segment and the pieces in it."""

    data: bytearray = field(default_factory=bytearray)
    growing: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # start, size, offset
    rewritten: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def name(self, node: str, sequence: int, level: int = 0) -> str:
        digest = hashlib.sha256(self.data).hexdigest()[:32]
        return f"{SEGMENTS}{node}/{level}-{sequence:08d}-{digest}"


class Uploader:
    """Uploads one run folder. Errors of the store are the caller's to retry: call again."""

    def __init__(self, folder: Path, store: ObjectStore, node: str = "") -> None:
        """Set the folder; `node` is the name of its manifest (default: kept in the folder)."""
        self.folder, self.store = folder, store
        self.node = node or node_name(folder)
        self.conditions: Conditions | None = None
        self.manifest = Manifest(self.node)
        self._version = ""  # of the manifest in the bucket; "": there is none
        self._loaded = False
        self._seen: dict[str, tuple[int, int]] = {}  # whole files: size and time as uploaded
        self._attempts: dict[str, int] = {}  # the bucket's, by key
        self._attempt_keys: dict[tuple[str, str], str] = {}  # by name and version of its object
        self._has_garbage = True  # segments that no manifest lists may be there

    @property
    def uploaded_bytes(self) -> int:
        """Bytes of growing files that the bucket has."""
        return sum(self.manifest.size(file) for file in self.manifest.growing)

    def upload(self, *, closing: bool = False) -> bool:
        """Do one round; return whether all that is complete in the folder is in the bucket.

        `closing`: no process writes the folder, which the manifest then says.
        """
        if not self._loaded:
            self._load()
        segment, is_all = self._gather()
        is_new = bool(segment.data) or self._forget_packed()
        is_closed = closing and is_all
        if is_new or self.manifest.closed != is_closed:
            name = segment.name(self.node, self.manifest.sequence + 1)
            if segment.data:
                with suppress(Conflict):  # the same bytes: an earlier try got through
                    self.store.create(name, bytes(segment.data))
            growing = {file: Piece(*_with(name, item)) for file, item in segment.growing.items()}
            rewritten = {
                file: Piece(*_with(name, item)) for file, item in segment.rewritten.items()
            }
            self._commit(replace(self.manifest.add(growing, rewritten), closed=is_closed))
            if self.conditions is not None and self.conditions.replace and self._loaded:
                self._merge()
                if self._loaded and self._has_garbage:
                    # A process that wrote a segment that no manifest lists can no longer commit it:
                    # this manifest is newer than what it has read, and its next segment has a
                    # higher sequence.
                    listed, sequence = self.manifest.segments(), self.manifest.sequence
                    names = [entry.name for entry in self.store.list(f"{SEGMENTS}{self.node}/")]
                    self.store.delete(
                        [
                            name
                            for name in names
                            if name not in listed and _level_and_sequence(name)[1] <= sequence
                        ]
                    )
                    self._has_garbage = False
        return is_all and self._loaded

    def beat(self) -> None:
        """Write the heartbeats of the folder's processes; readers take the store's clock."""
        beats = {
            f"life/{path.name}": path.read_bytes().decode("latin-1")
            for path in sorted((self.folder / "life").glob("*.beat"))
        }
        record = {"now": clock.time(), "beats": beats}
        self.store.write(f"{BEATS}{self.node}.json", json.dumps(record).encode())

    def _load(self) -> None:
        """Read what the bucket has: after a start, and after another process wrote."""
        if self.conditions is None:
            self.conditions = self.store.probe()
        entries = {entry.name: entry for entry in self.store.list(MANIFESTS)}
        name = manifests.newest(entries).get(self.node)
        if name is None:
            started = self.store.clock()
            self.manifest, self._version = Manifest(self.node, started=started), ""
        else:
            self.manifest = manifests.decode(self.store.read(name), name)
            self._version = entries[name].version if self.conditions.replace else name
        self._seen.clear()
        self._loaded = True

    def _gather(self) -> tuple[_Segment, bool]:
        """Return the new complete bytes of the folder, and whether they are all there are."""
        segment, is_all = _Segment(), True
        try:
            run_info = read_about(self.folder / RUN_FILE)
        except UnreadableLog:
            run_info = About()
        for file in iter_files(self.folder):
            if (attempt := manifests.local_attempt(file)) is not None:
                self._claim(attempt, run_info)
            if len(segment.data) >= MAX_ROUND_BYTES:
                return segment, False
            try:
                if _is_whole(file):
                    self._take_whole(file, segment)
                else:
                    is_all &= self._take_growth(file, segment)
            except FileNotFoundError:  # packed or rotated since it was listed
                continue
        return segment, is_all

    def _take_growth(self, file: str, segment: _Segment) -> bool:
        path = self.folder / file
        start = self.manifest.size(file)
        with open_regular(path) as source:
            head = _head(file, source.read(GROWING_HEAD_BYTES))
            size = os.fstat(source.fileno()).st_size
            known_head = self.manifest.heads.get(file, head)
            if start and (size < start or (head and known_head != head)):
                self._forget(file)
                start = 0
            limit = MAX_ROUND_BYTES
            data = b""
            while start < size and not data:
                source.seek(start)
                new = frames.read(source, min(limit, size - start))
                data = new[: _complete(file, new, start)]
                if start + len(new) >= size:
                    break
                limit *= 4  # one block is larger
        if not data:
            return True
        if head:
            self.manifest = replace(self.manifest, heads={**self.manifest.heads, file: head})
        segment.growing[file] = start, len(data), len(segment.data)
        segment.data += data
        return start + len(new) >= size

    def _forget(self, file: str) -> None:
        """Take a file as new: another one has its name."""
        growing = {name: item for name, item in self.manifest.growing.items() if name != file}
        heads = {name: item for name, item in self.manifest.heads.items() if name != file}
        self.manifest = replace(self.manifest, growing=growing, heads=heads)

    def _forget_packed(self) -> bool:
        """Forget block files that were packed; return whether there were any."""
        packed_files = [
            file
            for file in self.manifest.growing
            if file.endswith(".rlv")
            and not (self.folder / file).exists()
            and (self.folder / file).with_suffix(".packed.rlv").exists()
        ]
        for file in packed_files:
            self._forget(file)
        return bool(packed_files)

    def _take_whole(self, file: str, segment: _Segment) -> None:
        path = self.folder / file
        status = path.stat()
        state = status.st_size, status.st_mtime_ns
        if self._seen.get(file) == state or not status.st_size:
            return
        with open_regular(path) as source:
            data = source.readall() or b""
        segment.rewritten[file] = 0, len(data), len(segment.data)
        segment.data += data
        self._seen[file] = state

    def _claim(self, attempt: int, run_info: About) -> None:
        """Number an attempt of this folder among those of the bucket, once."""
        if attempt in self.manifest.attempts:
            return
        key = _attempt_key(attempt, run_info)
        if key not in self._attempts:
            self._attempts = self._read_attempts()
        while key not in self._attempts:
            number = max(self._attempts.values(), default=0) + 1
            is_exact = self.conditions is not None and self.conditions.create
            suffix = "" if is_exact else f"-{_checksum(key.encode())}"
            name = f"{ATTEMPTS}{number:06d}{suffix}.json"
            with suppress(Conflict):
                self.store.create(name, json.dumps({"key": key}).encode())
            self._attempts = self._read_attempts()
        attempts = {**self.manifest.attempts, attempt: self._attempts[key]}
        self.manifest = replace(self.manifest, attempts=attempts)

    def _read_attempts(self) -> dict[str, int]:
        keys = self._attempt_keys  # an attempt's object never changes
        versions = {entry.name: entry.version for entry in self.store.list(ATTEMPTS)}
        new_names = [name for name, version in versions.items() if (name, version) not in keys]
        for name, content in self.store.read_many(new_names).items():
            keys[name, versions[name]] = str(json.loads(content)["key"])
        numbers: dict[str, int] = {}
        for name, version in versions.items():
            match = manifests.ATTEMPT_NAME.fullmatch(name)
            if match and (name, version) in keys:
                numbers.setdefault(keys[name, version], int(match["number"]))
        return numbers

    def _commit(self, new: Manifest) -> None:
        """Write the manifest where it is still the one that was read; else read it again."""
        new = replace(new, cost=asdict(self.store.cost))
        data, name = new.encode(), f"{MANIFESTS}{self.node}.json"
        has_replace = self.conditions is not None and self.conditions.replace
        # An answer that is lost leaves unknown what the bucket has.
        self._loaded = False
        try:
            if not has_replace:
                unique = f"{self.node}.{new.sequence:08d}-{secrets.token_hex(8)}"
                name = f"{MANIFESTS}{unique}.json"
                self.store.create(name, data)
                if self._version:
                    self.store.delete([self._version])
                self._version = name
            elif self._version:
                self._version = self.store.replace(name, data, self._version)
            else:
                self._version = self.store.create(name, data)
        except Conflict:
            return  # another process of this folder was faster: the next round reads what it wrote
        self.manifest, self._loaded = new, True

    def _merge(self) -> None:
        """Replace many small segments by a large one, so that a reader needs few requests."""
        sizes = self.manifest.segments()
        for level in range(MAX_MERGES):
            names = [name for name in sizes if _level_and_sequence(name)[0] == level]
            if len(names) >= MERGE_COUNT:
                names.sort(key=_level_and_sequence)
                totals = list(accumulate(sizes[name] for name in names))
                count = sum(total <= MAX_MERGED_BYTES for total in totals)
                self._merge_segments(names[: max(count, 1)], level + 1)
                return

    def _merge_segments(self, names: Sequence[str], level: int) -> None:
        contents = self.store.read_many(names)
        if len(contents) < len(names):
            raise UnreadableLog("segments are missing from the bucket", where=self.store.name)
        segment, offsets = _Segment(), {}
        for piece in self.manifest.pieces():
            if piece.segment in contents:
                offsets[piece] = len(segment.data)
                segment.data += contents[piece.segment][piece.offset : piece.offset + piece.size]
        name = segment.name(self.node, self.manifest.sequence + 1, level)
        with suppress(Conflict):
            self.store.create(name, bytes(segment.data))
        moves = {
            piece: replace(piece, segment=name, offset=offset) for piece, offset in offsets.items()
        }
        self._commit(self.manifest.move(moves))
        self._has_garbage = True


def node_name(folder: Path) -> str:
    """Return the name of this folder's manifests, made at the first call. Raises OSError."""
    path = folder / NODE_FILE
    with suppress(FileExistsError):
        text = f"{secrets.token_hex(8)} {socket.gethostname()}\n"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    return path.read_text().split()[0]


def unsent_bytes(folder: Path, uploaded: int) -> int:
    """Return how many bytes of growing files the bucket lacks."""
    total = 0
    for file in iter_files(folder):
        if not _is_whole(file):
            with suppress(FileNotFoundError):
                total += (folder / file).stat().st_size
    return max(0, total - uploaded)


def iter_files(folder: Path) -> Iterator[str]:
    """Iterate over the files to upload: what was logged first, so that it is never the last."""
    for file in (RUN_FILE, EVENTS_FILE):
        if (folder / file).exists():
            yield file
    for inner in ("blocks", "rollouts", "life"):
        with suppress(FileNotFoundError):
            for name in sorted(entry.name for entry in os.scandir(folder / inner)):
                file = f"{inner}/{name}"
                if manifests.local_attempt(file) is not None and not name.endswith(".beat"):
                    yield file


def _is_whole(file: str) -> bool:
    """Return whether a file is rewritten, not appended to."""
    return file == RUN_FILE or file.endswith((".crash", ".packed.rlv"))


def _head(file: str, data: bytes) -> str:
    """Return what tells a file from another of its name; "" where it is too short so far."""
    if file == EVENTS_FILE and b"\n" in data:
        return _checksum(data.partition(b"\n")[0])
    return _checksum(data) if len(data) == GROWING_HEAD_BYTES else ""


def _complete(file: str, data: bytes, start: int) -> int:
    """Return how many of the new bytes are complete blocks or lines."""
    if file == EVENTS_FILE:
        return data.rfind(b"\n") + 1
    if not file.endswith(".rlv"):
        return len(data)
    end = start + len(data)
    for item in frames.walk(data, start):
        if isinstance(item, Tail):
            end = item.offset
    return end - start


def _attempt_key(number: int, run_info: About) -> str:
    """Return what all nodes of an attempt share: the launch, and which of its starts this is."""
    starts = [attempt for attempt in run_info.attempts if attempt.number == number]
    attempt = starts[0] if starts else Attempt(number, 0.0)
    if not attempt.launch:
        return f"{run_info.id}/{number}/{attempt.host}/{attempt.pid}/{attempt.started}"
    earlier = sum(
        start.launch == attempt.launch and start.number < number for start in run_info.attempts
    )
    return f"{attempt.launch}#{earlier}"


def _with(name: str, item: tuple[int, int, int]) -> tuple[int, int, str, int]:
    return item[0], item[1], name, item[2]


def _level_and_sequence(name: str) -> tuple[int, int]:
    """Return the level and the sequence of a segment."""
    match = manifests.SEGMENT_NAME.fullmatch(name)
    return (int(match["level"]), int(match["sequence"])) if match else (0, 0)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
