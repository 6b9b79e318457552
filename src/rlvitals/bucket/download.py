"""Copy a run from a bucket into a folder that every reader of run folders can read.

A look costs a listing, and the new bytes: segments never change, so that a copy is only
extended. What the bucket holds at one moment of a node is what its manifest lists.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import IO

from rlvitals.bucket import node_manifest as manifests
from rlvitals.bucket.node_manifest import BEATS, MANIFESTS, Manifest, Piece
from rlvitals.bucket.object_store import ObjectStore
from rlvitals.errors import UnreadableLog, VitalsError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import typed
from rlvitals.storage.run_folder import EVENTS_FILE, RUN_FILE
from rlvitals.storage.safe_files import atomic_write, inside, open_append
from rlvitals.tracking import clock, heartbeat
from rlvitals.tracking.spool import NODE_FOLDER

COPY_STATE_FILE = ".bucket.json"  # in the copy: what of the bucket it has
COPY_FORMAT = 1  # of the state; another one is made anew


@dataclass(slots=True)
class _State:
    """What a copy has; the files are brought to it before each look."""

    objects: dict[str, str] = field(default_factory=dict)  # by node: manifest's name and version
    sizes: dict[str, int] = field(default_factory=dict)  # by node and file: bytes that are copied
    heads: dict[str, str] = field(default_factory=dict)  # the same: checksum of its beginning
    attempts: dict[str, dict[str, int]] = field(default_factory=dict)  # by node: the bucket's
    files: dict[str, list[str]] = field(default_factory=dict)  # by node: growing ones
    events: int = 0  # bytes of the copy's events


def download(store: ObjectStore, folder: Path) -> bool:
    """Bring the copy of a run up to date; return whether a run is there.

    Raises VitalsError, and the errors of the store's back-end.
    """
    for _ in range(5):  # segments may be replaced during a read
        entries = {entry.name: entry.version for entry in store.list(MANIFESTS)}
        newest = manifests.newest(entries)
        if not newest:
            return False
        objects = {node: f"{name} {entries[name]}" for node, name in newest.items()}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock_copy(folder):
            try:
                _update(store, folder, newest, objects)
            except FileNotFoundError:  # merged meanwhile: the manifest is another one
                continue
            _write_beats(store, folder)
        return True
    problem = "the run changes faster than it can be read"
    raise VitalsError(problem, where=store.name, hint="try again")


def _update(
    store: ObjectStore, folder: Path, newest: Mapping[str, str], objects: Mapping[str, str]
) -> None:
    state = _read_state(folder)
    if state.objects == objects:
        return
    changed = {node for node, text in objects.items() if state.objects.get(node) != text}
    contents = store.read_many([newest[node] for node in sorted(changed)])
    nodes = {node: manifests.decode(_get(contents, newest[node]), newest[node]) for node in changed}
    for node in objects.keys() - changed:
        name = f"{NODE_FOLDER}/{node}.json"
        nodes[node] = manifests.decode((folder / name).read_bytes(), name)
    raw, nodes = nodes, manifests.distinct(nodes)
    files = {node: sorted(each.growing) for node, each in nodes.items()}
    if _is_renumbered(state, nodes):
        _empty(folder)
        state, changed = _State(), set(nodes)
    (folder / NODE_FOLDER).mkdir(exist_ok=True)
    # Cut off the lines that an interrupted look has appended.
    with suppress(FileNotFoundError):
        os.truncate(folder / EVENTS_FILE, state.events)
    for node in sorted(changed, key=lambda node: (_first_attempt(nodes[node]), node)):
        _Copier(store, folder, state, nodes[node]).copy()
    # Block files that no manifest lists any more were packed.
    listed = {
        manifests.reader_name(file, node.attempts)
        for node in nodes.values()
        for file in (*node.growing, *node.rewritten)
    }
    for path in (folder / "blocks").glob("*.rlv"):
        if f"blocks/{path.name}" not in listed:
            path.unlink()
    _write_run_file(folder, nodes)
    for node in changed:
        with atomic_write(folder / NODE_FOLDER / f"{node}.json") as file:
            file.write(raw[node].encode())
    state.files = files
    state.objects = dict(objects)
    state.attempts = {node: _text_keys(each.attempts) for node, each in nodes.items()}
    _write_state(folder, state)


def _get(contents: Mapping[str, bytes], name: str) -> bytes:
    if name not in contents:
        raise FileNotFoundError(name)
    return contents[name]


def _text_keys(attempts: Mapping[int, int]) -> dict[str, int]:
    return {str(local): number for local, number in attempts.items()}


def _is_renumbered(state: _State, nodes: Mapping[str, Manifest]) -> bool:
    """Return whether an attempt has another number than in the copy, or a file another node."""
    for node, attempts in state.attempts.items():
        if node not in nodes:
            return True
        current = _text_keys(nodes[node].attempts)
        if any(current.get(local) != number for local, number in attempts.items()):
            return True
        missing = set(state.files.get(node, ())) - set(nodes[node].growing)
        if any(
            not (file.startswith("blocks/") and file in nodes[node].compacted) for file in missing
        ):
            return True
    return False


class _Copier:
    """Copies what is new of one node."""

    def __init__(self, store: ObjectStore, folder: Path, state: _State, node: Manifest) -> None:
        self._store, self._folder, self._state, self._node = store, folder, state, node

    def copy(self) -> None:
        """Fetch the new parts of segments and put each piece into its file."""
        segments: dict[str, list[tuple[str, Piece]]] = {}
        for file, piece in self._new_pieces():
            segments.setdefault(piece.segment, []).append((file, piece))
        for batch in _batches(segments):
            ranges = [_range(name, pieces) for name, pieces in batch]
            for (_, pieces), (_, start, _), data in zip(
                batch, ranges, self._store.read_ranges(ranges), strict=True
            ):
                for file, piece in pieces:
                    offset = piece.offset - start
                    self._put(file, piece, data[offset : offset + piece.size])
        for file in self._node.growing:
            self._state.sizes[self._key(file)] = self._node.size(file)

    def _key(self, file: str) -> str:
        return f"{self._node.node}/{file}"

    def _new_pieces(self) -> Iterator[tuple[str, Piece]]:
        for file, pieces in self._node.growing.items():
            key, head = self._key(file), self._node.heads.get(file, "")
            size = self._state.sizes.get(key, 0)
            if size > self._node.size(file) or self._state.heads.get(key, head) != head:
                size = self._state.sizes[key] = 0
                if path := self._path(file):
                    path.unlink(missing_ok=True)
            if head:
                self._state.heads[key] = head
            for piece in pieces:
                if piece.end > size:
                    cut = max(0, size - piece.start)
                    yield (
                        file,
                        Piece(
                            piece.start + cut, piece.size - cut, piece.segment, piece.offset + cut
                        ),
                    )
        for file, piece in self._node.rewritten.items():
            yield file, piece

    def _path(self, file: str) -> Path | None:
        name = manifests.reader_name(file, self._node.attempts)
        return inside(self._folder, name) if name else None

    def _put(self, file: str, piece: Piece, data: bytes) -> None:
        if len(data) != piece.size:
            raise UnreadableLog(f"{piece.segment} is shorter than its manifest says")
        if file == RUN_FILE:
            self._write(self._folder / NODE_FOLDER / f"{self._node.node}.run.json", data)
        elif file == EVENTS_FILE:
            self._append_events(data)
        elif (path := self._path(file)) is None:
            return
        elif file in self._node.rewritten:
            self._write(path, data)
        else:
            path.parent.mkdir(exist_ok=True)
            with open(open_append(path), "ab") as target:  # noqa: PTH123 - a descriptor
                target.truncate(piece.start)  # what an interrupted look has put there
                target.write(data)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(exist_ok=True)
        with atomic_write(path) as file:
            file.write(data)

    def _append_events(self, data: bytes) -> None:
        """Append a node's lines, their attempts numbered as in the bucket."""
        attempts = self._node.attempts
        lines = []
        for line in data.splitlines():
            try:
                record = typed.load(line)
            except ValueError:
                lines.append(line)
                continue
            if isinstance(record, dict) and record.get("attempt") in attempts:
                record["attempt"] = attempts[record["attempt"]]
                line = json.dumps(record, separators=(",", ":")).encode()  # noqa: PLW2901
            lines.append(line)
        text = b"".join(line + b"\n" for line in lines)
        with open(open_append(self._folder / EVENTS_FILE), "ab") as target:  # noqa: PTH123
            target.write(text)
        self._state.events += len(text)


def _range(name: str, pieces: Iterable[tuple[str, Piece]]) -> tuple[str, int, int]:
    """Return the part of a segment that holds some pieces."""
    starts = [piece.offset for _, piece in pieces]
    ends = [piece.offset + piece.size for _, piece in pieces]
    return name, min(starts), max(ends)


def _batches(
    segments: Mapping[str, list[tuple[str, Piece]]],
) -> Iterator[list[tuple[str, list[tuple[str, Piece]]]]]:
    """Group segments, the oldest first, so that each group fits into memory."""

    def age(name: str) -> tuple[int, int]:
        match = manifests.SEGMENT_NAME.fullmatch(name)
        # A merged segment replaces all that was there of its level: what is smaller is newer.
        return (-int(match["level"]), int(match["sequence"])) if match else (0, 0)

    batch: list[tuple[str, list[tuple[str, Piece]]]] = []
    total = 0
    for name in sorted(segments, key=age):
        _, start, end = _range(name, segments[name])
        if batch and total + end - start > 64 << 20:  # fetched at once, into memory
            yield batch
            batch, total = [], 0
        batch.append((name, segments[name]))
        total += end - start
    if batch:
        yield batch


def _write_run_file(folder: Path, nodes: Mapping[str, Manifest]) -> None:
    """Compose `run.json`: the id of the first attempt, the facts of the newest of rank 0."""
    records = {}
    for node in nodes.values():
        with suppress(FileNotFoundError, ValueError):
            data = (folder / NODE_FOLDER / f"{node.node}.run.json").read_bytes()
            record = typed.load(data)
            if isinstance(record, dict):
                records[node.node] = record
    if not records:
        return
    order = sorted(records, key=lambda name: _rank(nodes[name]))
    first = min(records, key=lambda name: (_first_attempt(nodes[name]), _rank(nodes[name])))
    attempts: dict[int, object] = {}
    for name in order:
        for attempt in records[name].get("attempts", []):
            if isinstance(attempt, dict) and attempt.get("number") in nodes[name].attempts:
                number = nodes[name].attempts[attempt["number"]]
                attempts.setdefault(number, {**attempt, "number": number})
    run_info = {key: item for key, item in records[order[0]].items() if key != "checksum"}
    run_info |= {key: records[first][key] for key in ("id", "created") if key in records[first]}
    run_info["attempts"] = [attempts[number] for number in sorted(attempts)]
    data = json.dumps(run_info, indent=1).encode()
    path = folder / RUN_FILE
    if not path.exists() or path.read_bytes() != data:
        with atomic_write(path) as file:
            file.write(data)


def _first_attempt(node: Manifest) -> int:
    return min(node.attempts.values(), default=1 << 31)


def _rank(node: Manifest) -> tuple[bool, int, str]:
    """Order nodes: those with a file of rank 0 first, of them the newest attempt."""
    has_first = any(file.endswith("-0.rlv") for file in node.growing)
    return not has_first, -max(node.attempts.values(), default=0), node.node


def _write_beats(store: ObjectStore, folder: Path) -> None:
    """Write the heartbeats of live nodes, by this machine's clock: a node's may be wrong.

    The age of a heartbeat is what its node and the store count between two moments of their own.
    """
    state = _read_state(folder)
    entries = [entry for entry in store.list(BEATS) if entry.modified is not None]
    names = {f"{BEATS}{node}.json": attempts for node, attempts in state.attempts.items()}
    live = [entry for entry in entries if entry.name in names]
    if not live:
        return
    contents, store_s = store.read_many([entry.name for entry in live]), store.clock()
    for entry in live:
        with suppress(KeyError, TypeError, ValueError):
            record = typed.load(contents[entry.name])
            attempts = {int(local): number for local, number in names[entry.name].items()}
            age_s = max(0.0, store_s - (entry.modified or store_s))
            for file, text in record["beats"].items():  # type: ignore[index]
                name = manifests.reader_name(file, attempts)
                data = _with_age(text.encode("latin-1"), age_s, float(record["now"]))  # type: ignore[index]
                if name:
                    path = inside(folder, name)
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(data)


def _with_age(beat: bytes, age_s: float, written: float) -> bytes:
    """Return a heartbeat file with the time of the beat by this machine's clock."""
    line, _, remainder = beat.partition(b"\n")
    moment, _, fields = line.partition(b" ")
    time = clock.now() - age_s - max(0.0, written - float(moment))
    text = f"{time:.3f} ".encode() + fields.strip()
    return text.ljust(heartbeat.BEAT_LINE_BYTES - 1) + b"\n" + remainder


@contextmanager
def _lock_copy(folder: Path) -> Iterator[None]:
    """Let one process at a time bring a copy up to date."""
    lock: IO[bytes]
    with open(open_append(folder / ".bucket.lock"), "ab") as lock:  # noqa: PTH123 - a descriptor
        with suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield


def _empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path.name != ".bucket.lock":
            path.unlink()


def _read_state(folder: Path) -> _State:
    try:
        record = typed.load((folder / COPY_STATE_FILE).read_bytes())
        if isinstance(record, dict) and record.pop("format") == COPY_FORMAT:
            return _State(**record)
    except (OSError, ValueError, TypeError, KeyError):
        pass
    _empty(folder)
    return _State()


def _write_state(folder: Path, state: _State) -> None:
    record = {
        "format": COPY_FORMAT, "objects": state.objects, "sizes": state.sizes,
        "heads": state.heads, "attempts": state.attempts, "files": state.files,
        "events": state.events,
    }  # fmt: skip
    with atomic_write(folder / COPY_STATE_FILE) as file:
        file.write(json.dumps(record).encode())
