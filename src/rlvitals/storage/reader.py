"""A run folder's blocks of all attempts and ranks, and its events, since a cursor."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from rlvitals.storage import columns, events, typed
from rlvitals.storage.blocks import BlockCursor, Found, Scalars, Scan, scan
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.events import Event, EventCursor
from rlvitals.storage.run_folder import BLOCKS, EVENTS_FILE, BlockFile, block_files
from rlvitals.types import Series

Place = tuple[int, int]  # attempt, rank


@dataclass(frozen=True, slots=True)
class RunCursor:
    """Where to go on in each file of a run."""

    files: Mapping[Place, BlockCursor] = field(default_factory=lambda: MappingProxyType({}))
    events: EventCursor = field(default_factory=EventCursor)
    changed: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))  # settings


@dataclass(frozen=True, slots=True)
class Part:
    """What one attempt's rank wrote since the cursor."""

    file: BlockFile
    scan: Scan


@dataclass(frozen=True, slots=True)
class RunScan:
    """What a run wrote since the cursor: by attempt, then by rank."""

    parts: tuple[Part, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    replaced: bool  # a file is another one than it was: this is all there is, from its beginning
    cursor: RunCursor


def read(folder: Path, since: RunCursor | None = None) -> RunScan:
    """Read what is whole since a cursor. Raises UnreadableLog for a newer format."""
    found = _read(folder, since or RunCursor())
    return replace(_read(folder, RunCursor()), replaced=True) if found.replaced else found


def _read(folder: Path, since: RunCursor) -> RunScan:
    parts, notes = [], []
    files = block_files(folder)
    replaced = not set(since.files) <= {(one.attempt, one.rank) for one in files}
    for file in files:
        before = since.files.get((file.attempt, file.rank))
        try:
            part = Part(file, read_file(file, before))
        except FileNotFoundError:  # packed since it was listed
            file = next(  # noqa: PLW2901 - the same one, as it is now
                one for one in block_files(folder) if one.path == file.path
            )
            part = Part(file, read_file(file, before))
        except OSError as error:
            notes.append(f"{BLOCKS}/{file.path.name} not read: {error.strerror or error}")
            continue
        replaced |= part.scan.replaced
        parts.append(part)
    try:
        happened = events.read(folder / EVENTS_FILE, since.events)
    except OSError as error:
        notes.append(f"{EVENTS_FILE} not read: {error.strerror or error}")
        happened = events.EventScan((), 0, since.events)
    if happened.skipped:
        notes.append(f"{EVENTS_FILE}: {happened.skipped:,} lines are no events")
    notes += typed.summary([f"{EVENTS_FILE}: {one}" for one in happened.wrong])
    ends = {(p.file.attempt, p.file.rank): p.scan.cursor for p in parts}
    said = [one.settings for part in parts for one in part.scan.settings]
    changed = MappingProxyType({key: one[key] for one in (since.changed, *said) for key in one})
    cursor = RunCursor(MappingProxyType({**since.files, **ends}), happened.cursor, changed)
    return RunScan(tuple(parts), happened.events, tuple(notes), replaced, cursor)


def read_file(file: BlockFile, since: BlockCursor | None = None) -> Scan:
    """Read an attempt's rank since a cursor: the file that grows, and what is packed of it.

    Raises OSError, and UnreadableLog for a newer format.
    """
    grows = file.path.exists()
    if file.packed is None or (since is not None and grows):
        return scan(file.path, since)
    with PackedFile(file.packed) as packed:
        origin = packed.origin
        if origin is None and grows:  # which part it stands for is lost: the file itself is there
            return scan(file.path)
        begun = origin.cursor() if origin else BlockCursor()
        first = from_packed(packed, since)
    if not grows:
        return first
    rest = scan(file.path, begun)
    return rest if rest.replaced else joined(first, rest)


def from_packed(packed: PackedFile, since: BlockCursor | None = None) -> Scan:
    """Read a packed file behind a cursor in the file that it stands for."""
    if packed.origin is None:
        return _not_placed(packed, since)
    end = packed.origin.cursor()
    other = since is not None and since.head not in {b"", end.head}
    begin = BlockCursor() if since is None or other else since
    scalars = packed.all_scalars() if begin.rows < end.rows else []
    rest = (columns.after(part, begin.rows) for part in scalars)
    rows = tuple(part for part in rest if len(part.steps))
    return _found(packed, rows, begin.others, end, replaced=other)


def _not_placed(packed: PackedFile, since: BlockCursor | None) -> Scan:
    """Read what is whole of a packed file that has lost the place it stands for: once."""
    if since is not None:
        return Found(since).scan(replaced=False)
    rows = tuple(packed.all_scalars())
    end = BlockCursor(rows=sum(len(part.steps) for part in rows), others=len(packed.others))
    return _found(packed, rows, 0, end, replaced=False)


def _found(
    packed: PackedFile, rows: tuple[Scalars, ...], others: int, end: BlockCursor, *, replaced: bool
) -> Scan:
    found = Found(end)
    for frame in packed.others[others:]:
        found.other(frame)
    found.others = end.others
    found.damage += packed.damage
    return replace(found.scan(replaced=replaced), scalars=rows)


def joined(first: Scan, rest: Scan) -> Scan:
    """Put what follows in a file behind what is packed of it."""
    return Scan(
        first.scalars + rest.scalars,
        first.histograms + rest.histograms,
        first.texts + rest.texts,
        first.tables + rest.tables,
        first.settings + rest.settings,
        first.damage + rest.damage,
        rest.torn,
        rest.replaced,
        rest.cursor,
    )


def main_rank(parts: Iterable[Part]) -> int:
    """Return the rank that is the run: the lowest that wrote anything."""
    ranks = {part.file.rank for part in parts if part.scan.cursor.rows or part.scan.cursor.others}
    return min(ranks, default=0)


def key_of(key: str, rank: int, main: int) -> str:
    """Name a key of a rank: as it is for the run's own, else below `rank/<n>/`."""
    return key if rank == main else f"rank/{rank}/{key}"


def series(parts: Iterable[Part], main: int) -> dict[str, Series]:
    """Gather the series of all attempts and ranks: attempt after attempt."""
    found: dict[str, list[Series]] = {}
    for part in parts:
        for key, one in columns.series(part.scan.scalars).items():
            found.setdefault(key_of(key, part.file.rank, main), []).append(one)
    return {key: columns.chained(ones) for key, ones in found.items()}
