"""Read a run folder's blocks of all attempts and ranks, and its events, since a cursor."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType

from rlvitals.errors import quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import columns, events, typed
from rlvitals.storage.blocks import BlockCursor, Scalars, Scan, ScanBuilder, scan
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.events import Event, EventCursor
from rlvitals.storage.run_folder import BLOCKS_FOLDER, EVENTS_FILE, BlockFile, block_files
from rlvitals.types import Series

Place = tuple[int, int]  # attempt, rank


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The position in each file of a run."""

    files: Mapping[Place, BlockCursor] = field(default_factory=lambda: MappingProxyType({}))
    events: EventCursor = field(default_factory=EventCursor)
    changed: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))  # settings


@dataclass(frozen=True, slots=True)
class RankScan:
    """The new content of one rank of an attempt; `span`: its first and its highest step."""

    file: BlockFile
    scan: Scan
    span: tuple[int, int] | None = None  # None without new rows


ReadPart = Callable[[BlockFile, BlockCursor | None], RankScan]


@dataclass(frozen=True, slots=True)
class RunScan:
    """The new content of a run: by attempt, then by rank."""

    parts: tuple[RankScan, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    replaced: bool  # a file is another one than it was: this is all there is, from its beginning
    cursor: RunCursor


def read(folder: Path, start: RunCursor | None = None) -> RunScan:
    """Read the complete blocks and events since a cursor. UnreadableLog for a newer format."""
    scan = read_files(folder, start or RunCursor())
    return replace(read_files(folder, RunCursor()), replaced=True) if scan.replaced else scan


def read_part(file: BlockFile, cursor: BlockCursor | None = None) -> RankScan:
    """Read a rank of an attempt as `read_file` does."""
    scan = read_file(file, cursor)
    logged = [rows.steps for rows in scan.scalars if len(rows.steps)]
    span = (int(logged[0][0]), max(int(steps.max()) for steps in logged)) if logged else None
    return RankScan(file, scan, span)


def read_files(folder: Path, start: RunCursor, read_part: ReadPart = read_part) -> RunScan:
    """Read a run's block files, each by `read_part`, and its events. UnreadableLog."""
    rank_scans, notes = [], []
    files = block_files(folder)
    replaced = not set(start.files) <= {(file.attempt, file.rank) for file in files}
    for file in files:
        file_start = start.files.get((file.attempt, file.rank))
        try:
            rank_scan = read_part(file, file_start)
        except FileNotFoundError:  # packed since it was listed
            file = next(  # noqa: PLW2901 - the same file, in its current state
                listed for listed in block_files(folder) if listed.path == file.path
            )
            rank_scan = read_part(file, file_start)
        except OSError as error:
            notes.append(f"{BLOCKS_FOLDER}/{file.path.name} not read: {error.strerror or error}")
            continue
        replaced |= rank_scan.scan.replaced
        rank_scans.append(rank_scan)
    try:
        event_scan = events.read(folder / EVENTS_FILE, start.events)
    except OSError as error:
        notes.append(f"{EVENTS_FILE} not read: {error.strerror or error}")
        event_scan = events.EventScan((), 0, start.events)
    if event_scan.skipped:
        notes.append(f"{EVENTS_FILE}: {quantity(event_scan.skipped, 'line')} not read as events")
    notes += typed.summary([f"{EVENTS_FILE}: {problem}" for problem in event_scan.wrong])
    ends = {(p.file.attempt, p.file.rank): p.scan.cursor for p in rank_scans}
    changes = [change.settings for item in rank_scans for change in item.scan.settings]
    changed = MappingProxyType(
        {key: settings[key] for settings in (start.changed, *changes) for key in settings}
    )
    cursor = RunCursor(MappingProxyType({**start.files, **ends}), event_scan.cursor, changed)
    return RunScan(tuple(rank_scans), event_scan.events, tuple(notes), replaced, cursor)


def read_file(file: BlockFile, cursor: BlockCursor | None = None) -> Scan:
    """Read a rank of an attempt since a cursor: the growing file and its compacted part.

    Raises OSError, and UnreadableLog for a newer format.
    """
    grows = file.path.exists()
    if file.packed is None or (cursor is not None and grows):
        return scan(file.path, cursor)
    with PackedFile(file.packed) as packed:
        origin = packed.origin
        if origin is None and grows:  # which part it stands for is lost: the file itself is there
            return scan(file.path)
        packed_end = origin.cursor() if origin else BlockCursor()
        first = read_packed_file(packed, cursor)
    if not grows:
        return first
    remainder = scan(file.path, packed_end)
    return remainder if remainder.replaced else concatenate_scans(first, remainder)


def read_packed_file(packed: PackedFile, cursor: BlockCursor | None = None) -> Scan:
    """Read a compacted file from a cursor in the file that it replaces."""
    if packed.origin is None:  # damaged: the file is read once, on the first call
        if cursor is not None:
            return ScanBuilder(cursor).scan(replaced=False)
        rows = tuple(packed.all_scalars())
        end = BlockCursor(rows=sum(len(chunk.steps) for chunk in rows), others=len(packed.others))
        return build_scan(packed, rows, 0, end, replaced=False)
    end = packed.origin.cursor()
    is_replaced = cursor is not None and cursor.head not in {b"", end.head}
    begin = BlockCursor() if cursor is None or is_replaced else cursor
    scalars = packed.all_scalars() if begin.rows < end.rows else []
    remainder = (columns.rows_from(chunk, begin.rows) for chunk in scalars)
    rows = tuple(chunk for chunk in remainder if len(chunk.steps))
    return build_scan(packed, rows, begin.others, end, replaced=is_replaced)


def build_scan(
    packed: PackedFile,
    rows: tuple[Scalars, ...],
    first_other: int,
    end: BlockCursor,
    *,
    replaced: bool,
) -> Scan:
    """Return the scan of a compacted file with these rows, and its content else."""
    builder = ScanBuilder(end)
    for frame in packed.others[first_other:]:
        builder.add_content(frame)
    builder.others = end.others
    builder.damage += packed.damage
    scan = builder.scan(replaced=replaced)
    return replace(scan, scalars=rows, tiers=tuple(packed.tiers.values()))


def concatenate_scans(first: Scan, remainder: Scan) -> Scan:
    """Append the scan of a growing file to that of its compacted part."""
    return Scan(
        first.scalars + remainder.scalars,
        first.histograms + remainder.histograms,
        first.texts + remainder.texts,
        first.tables + remainder.tables,
        first.settings + remainder.settings,
        first.damage + remainder.damage,
        remainder.torn,
        remainder.replaced,
        remainder.cursor,
    )


def main_rank(rank_scans: Iterable[RankScan]) -> int:
    """Return the lowest rank that wrote anything: its keys have no prefix."""
    ranks = {
        rank_scan.file.rank
        for rank_scan in rank_scans
        if rank_scan.scan.cursor.rows or rank_scan.scan.cursor.others
    }
    return min(ranks, default=0)


def key_of(key: str, rank: int, main: int) -> str:
    """Return the name of a rank's key: unchanged for the main rank, else below `rank/<n>/`."""
    return key if rank == main else f"rank/{rank}/{key}"


def series(rank_scans: Iterable[RankScan], main: int) -> dict[str, Series]:
    """Return the series of all attempts and ranks, attempt after attempt."""
    pieces: dict[str, list[Series]] = {}
    for rank_scan in rank_scans:
        for key, piece in columns.series(rank_scan.scan.scalars).items():
            pieces.setdefault(key_of(key, rank_scan.file.rank, main), []).append(piece)
    return {key: columns.concatenate_series(parts_of_key) for key, parts_of_key in pieces.items()}
