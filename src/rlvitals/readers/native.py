"""Read rlvitals' run folders: `run.json` next to `blocks/` and `events.jsonl`.

A run is read whole by its `run.json`: every attempt, one after another. The lowest rank that wrote
is the run; what other ranks wrote is under `rank/<n>/`, so that nothing counts twice. A block
file is a separate log if it is named explicitly, or its `run.json` is lost. Settings are
those of `run.json` with the changes since; which table of names is taken says its `framework`.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, TypeVar

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.json_lines import flatten
from rlvitals.readers.formats.lines import REPLACED_NOTE, open_log
from rlvitals.readers.reader import Cursor, Reader, ThinReading
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import blocks, frames, reader, run_folder, thin_read, typed
from rlvitals.storage.blocks import BlockCursor, Scan, ScanBuilder
from rlvitals.storage.columns import concatenate_tables
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.events import Event
from rlvitals.storage.frames import Damage
from rlvitals.storage.reader import RankScan, RunCursor, RunScan
from rlvitals.storage.run_folder import (
    BLOCKS_FOLDER,
    EVENTS_FILE,
    RUN_FILE,
    About,
    BlockFile,
    NewerFormat,
)
from rlvitals.tracking import exit_reason
from rlvitals.types import RECORDER_NOTE_PREFIX, Log, Series, Setting, Table

T = TypeVar("T")
MAX_DAMAGE_NOTES = 3  # damaged places that a note names
Pairs = Iterable[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position in a run's files, and the end events of its attempts so far."""

    run: RunCursor
    ends: tuple[Event, ...] = ()


def claims(path: Path, head: bytes) -> bool:
    """Claim a `run.json` that says it is ours, and what begins with one of our blocks."""
    if path.name == RUN_FILE:
        return b'"written_by": "rlvitals"' in head[:200] and b'"format"' in head[:200]
    return path.suffix == ".rlv" and head.startswith(frames.BLOCK_MAGIC)


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read what a run wrote since a cursor. Raises UnreadableLog."""
    if bare(path).name != RUN_FILE:
        return _read_file(path, previous)
    run_info, info_notes = _read_info(path)
    resume = previous if isinstance(previous, _Cursor) else None
    contents = reader.read(path.parent, resume.run if resume else None)
    old_ends = resume.ends if resume and not contents.replaced else ()
    ends = (*old_ends, *_end_events(contents))
    series = reader.series(contents.parts, reader.main_rank(contents.parts))
    log = _build_log(path, (run_info, info_notes), contents, series, ends)
    return log, _Cursor(contents.cursor, ends)


def read_thin(path: Path) -> ThinReading | None:
    """Read a large run with its metrics thinned; None for a run that is read whole. Raises OSError.

    A run is read whole if it is small, damaged, or its steps go back within an attempt.
    """
    if bare(path).name != RUN_FILE or (result := thin_read.read(path.parent)) is None:
        return None
    contents, thinners = result
    ends = tuple(_end_events(contents))
    log = _build_log(path, _read_info(path), contents, {}, ends)
    return ThinReading(log, _Cursor(contents.cursor, ends), thinners)


def _end_events(contents: RunScan) -> Iterator[Event]:
    return (event for event in contents.events if event.kind in exit_reason.END_KINDS)


def _build_log(
    path: Path,
    info: tuple[About, tuple[str, ...]],
    contents: RunScan,
    series: Mapping[str, Series],
    ends: tuple[Event, ...],
) -> Log:
    """Return the log of a run. `info`: its `run.json`, and notes on it; `ends`: its end events."""
    run_info, info_notes = info
    main = reader.main_rank(contents.parts)
    newest = max((attempt.number for attempt in run_info.attempts), default=1)
    noted = exit_reason.read(path.parent, ends, newest)
    # The last attempt is judged first.
    last = max((attempt for attempt, _ in contents.cursor.files), default=0)
    ranks = {rank for attempt, rank in contents.cursor.files if attempt == last}
    return Log(
        "rlvitals",
        series,
        _settings(run_info, contents.cursor.changed),
        (*info_notes, *typed.summary(run_info.wrong), *_notes(run_info, contents, main)),
        str(path),
        histograms=_gather(contents.parts, main, lambda scan: scan.histograms),
        texts=_gather(contents.parts, main, lambda scan: scan.texts),
        tables=_tables(contents.parts, main),
        ending=noted.ending,
        processes=noted.open,
        attempts=newest,
        framework=run_info.framework,
        step_unit=str(run_info.more.get("step_unit") or "steps"),
        ranks=(main, *sorted(ranks - {main})) if len(ranks) > 1 else (),
    )


def _read_info(path: Path) -> tuple[About, tuple[str, ...]]:
    """Read a `run.json` or its copy; without either, the blocks are read, with a note."""
    try:
        with open_log(path) as file:
            run = run_folder.parse_state(file.read(), path)
        stored = run_folder.choose_copy(run, run_folder.copy_state(path), path)
    except NewerFormat:
        raise
    except UnreadableLog as error:
        if not run_folder.block_files(path.parent):
            raise
        return About(), (f"who and what the run is cannot be read: {error.problem}",)
    return stored.about, (stored.damage,) if stored.damage else ()


def _read_file(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read one block file as a separate log. Raises UnreadableLog."""
    cursor: Cursor
    with open_log(path) as file:
        if bare(path).name.endswith(".packed.rlv"):
            scan, cursor = _read_packed_file(path, file, previous)
        else:
            scan = blocks.scan_file(
                file, path, previous if isinstance(previous, BlockCursor) else None
            )
            cursor = scan.cursor
    part = RankScan(BlockFile(1, 0, path), scan)
    changed = {key: value for item in scan.settings for key, value in item.settings.items()}
    notes = [REPLACED_NOTE] if scan.replaced else []
    notes += _damage(path.name, scan.damage, scan.torn)
    log = Log(
        "rlvitals",
        reader.series([part], 0),
        _settings(About(), changed),
        tuple(notes),
        str(path),
        histograms=_gather([part], 0, lambda one: one.histograms),
        texts=_gather([part], 0, lambda one: one.texts),
        tables=_tables([part], 0),
    )
    return log, cursor


def _read_packed_file(path: Path, file: IO[bytes], previous: Cursor | None) -> tuple[Scan, Cursor]:
    """Read a packed file, which never grows: it is the one that was read, or another."""
    mark = zlib.crc32(file.read())
    with PackedFile(path, file) as packed:
        scan = reader.read_packed_file(packed)
    if mark == previous:
        return ScanBuilder(scan.cursor).scan(replaced=False), mark
    return replace(scan, replaced=previous is not None), mark


def _settings(run_info: About, changed: Mapping[str, object]) -> dict[str, Setting]:
    """Return the settings as they are now, with what names the run."""
    ranks = run_info.attempts[-1].world_size if run_info.attempts else 1
    gpus = run_info.host.get("gpus")
    gpu_count = len(gpus) if isinstance(gpus, list) else 0
    identity: dict[str, Setting] = {
        "name": run_info.name,
        "project": run_info.project,
        "group": run_info.group,
        "id": run_info.id,
        "gpus": ranks if gpu_count and ranks > 1 else gpu_count,  # a rank of a launch has one
        "tags": ", ".join(run_info.tags),
    }
    run_settings = {f"rlvitals/{key}": value for key, value in identity.items() if value}
    settings: dict[str, object] = {} if run_info.seed is None else {"seed": run_info.seed}
    settings |= dict(flatten(run_info.settings))
    settings |= dict(flatten(changed))
    plain = {
        key: json.dumps(value)[:500] if isinstance(value, list) else value
        for key, value in settings.items()
        if isinstance(value, Setting | list)
    }
    return {**run_settings, **plain}


def _notes(run_info: About, contents: RunScan, main: int) -> Iterator[str]:
    """Return notes for the user."""
    if contents.replaced:
        yield REPLACED_NOTE
    yield from contents.notes
    for part in contents.parts:
        name = part.file.path.name if part.file.packed is None else part.file.packed.name
        yield from _damage(f"{BLOCKS_FOLDER}/{name}", part.scan.damage, part.scan.torn)
    yield from _thinning_notes(contents.parts)
    yield from _attempts([part for part in contents.parts if part.file.rank == main])
    other_ranks = sorted({part.file.rank for part in contents.parts} - {main})
    if other_ranks:
        ranks = (
            f"rank {other_ranks[0]}"
            if len(other_ranks) == 1
            else f"ranks {other_ranks[0]} to {other_ranks[-1]}"
        )
        yield f"rank {main} is judged; what {ranks} logged stands under rank/<n>/"
    counts: dict[str, int] = {}  # of what the recorder noted, the newest of each text
    for event in contents.events:
        count = event.facts.get("count", 1)
        if event.kind == "note" and isinstance(count, int):
            counts[str(event.facts.get("text", ""))] = count
    for text, count in counts.items():
        yield f"{RECORDER_NOTE_PREFIX}{text}" + (f" ({count:,} times)" if count > 1 else "")
    yield from _preflight_notes(contents.events)
    if run_info.attempts and not contents.parts:
        yield "nothing was logged yet"


def _preflight_notes(events: Sequence[Event]) -> Iterator[str]:
    """Say of each check that failed in the newest preflight what it saw, as its report has it."""
    newest = next((event for event in reversed(events) if event.kind == "preflight"), None)
    names = [] if newest is None else newest.facts.get("failed")
    if newest is None or not isinstance(names, list):
        return
    report = str(newest.facts.get("report", ""))
    details = re.findall(r"^ *failed  .*\n +(.+)$", report, re.MULTILINE)
    for name, detail in zip_longest(names[:8], details[:8], fillvalue=""):
        yield f"preflight failed: {name}: {detail}".removesuffix(": ")


def _thinning_notes(rank_scans: Iterable[RankScan]) -> Iterator[str]:
    """Say what is left of a run that was thinned, and what its tiers have counted."""
    listed = [tier for rank_scan in rank_scans for tier in rank_scan.scan.tiers]
    if not listed:
        return
    stored = sum(int(tier.stored.sum()) for tier in listed)
    points = sum(int(tier.points.sum()) for tier in listed)
    bad = sum(int((tier.nan + tier.above + tier.below).sum()) for tier in listed)
    buckets = max(map(len, listed))
    bad_text = f"; {bad:,} of all were NaN or infinite" if bad else ""
    yield (
        f"the run is thinned: {stored:,} of {points:,} points are left, of each of {buckets:,} "
        f"buckets the first, last, lowest and highest{bad_text}"
    )


def _attempts(parts: Iterable[RankScan]) -> Iterator[str]:
    """Describe where a later attempt continues; one that goes back is a seam."""
    last: int | None = None
    for part in parts:
        if part.span is None:
            continue
        first, highest = part.span
        rows = part.scan.scalars
        is_start = not rows or not rows[0].first
        if last is not None and is_start and first > last:
            yield f"attempt {part.file.attempt} goes on at step {first:,}"
        last = highest


def _damage(name: str, damage: tuple[Damage, ...], torn: int) -> Iterator[str]:
    for place in damage[:MAX_DAMAGE_NOTES]:
        yield f"{name} is damaged, the rest of it is read: {place}"
    if (more := len(damage) - MAX_DAMAGE_NOTES) > 0:
        yield f"{name}: {more:,} more places are damaged"
    if torn:
        yield f"{name}: its last {torn:,} bytes are no whole block: left for the next reading"


def _gather(
    parts: Iterable[RankScan], main: int, pick: Callable[[Scan], Iterable[tuple[str, T]]]
) -> dict[str, list[T]]:
    """Gather the points of each key, attempt after attempt."""
    by_key: dict[str, list[T]] = {}
    for part in parts:
        for key, value in pick(part.scan):
            by_key.setdefault(reader.key_of(key, part.file.rank, main), []).append(value)
    return by_key


def _tables(parts: Iterable[RankScan], main: int) -> dict[str, Table]:
    """Put the rows of each table one after another; a cell that a part lacks is None."""
    by_key = _gather(parts, main, lambda scan: scan.tables)
    return {key: concatenate_tables(tables) for key, tables in by_key.items()}


def _grows(path: Path) -> Iterator[Path]:
    """Yield the files that a run grows in."""
    if bare(path).name == RUN_FILE:
        yield path.parent / EVENTS_FILE
        yield from (block_file.path for block_file in run_folder.block_files(path.parent))


def home(path: Path) -> Path:
    """Return the run's folder."""
    return path.parent.parent if path.parent.name == BLOCKS_FOLDER else path.parent


READER = Reader(
    name="rlvitals",
    title="rlvitals run folder",
    looks_for="run.json, blocks/*.rlv",
    example="runs/my_run/run.json",
    files=(RUN_FILE, "*.rlv"),
    claims=claims,
    read=read,
    read_thin=read_thin,
    home=home,
    in_parts=True,
    sums_up=True,
    grows=_grows,
)
