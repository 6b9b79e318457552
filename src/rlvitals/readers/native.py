"""Our own run folders: `run.json` beside `blocks/` and `events.jsonl`.

A run is read whole by its `run.json`: every attempt, one after another. The lowest rank that wrote
is the run; what other ranks wrote stands under `rank/<n>/`, so that nothing counts twice. A block
file is a log of its own where it is asked for by name, or its `run.json` is lost. Settings are
those of `run.json` with the changes since; which table of names is taken says its `framework`.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.json_lines import flatten
from rlvitals.readers.formats.lines import REPLACED, opened
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.storage import blocks, frames, reader, run_folder, typed
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
from rlvitals.types import RECORDER_NOTE_PREFIX, Log, Setting, Table

T = TypeVar("T")
PACKED = ".packed.rlv"
MAX_NAMED = 3  # damaged places that a note names
MAX_TEXT = 500  # characters of a list among the settings
Pairs = Iterable[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Where a run's files were left, and what was said so far of how attempts ended."""

    run: RunCursor
    ends: tuple[Event, ...] = ()


def claims(path: Path, head: bytes) -> bool:
    """Claim a `run.json` that says it is ours, and what begins with one of our blocks."""
    if path.name == RUN_FILE:
        return b'"written_by": "rlvitals"' in head[:200] and b'"format"' in head[:200]
    return path.suffix == ".rlv" and head.startswith(frames.BLOCK_MAGIC)


def read(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read what a run wrote since a cursor. Raises UnreadableLog."""
    if bare(path).name != RUN_FILE:
        return _read_file(path, since)
    about, lost = _about(path)
    seen = since if isinstance(since, _Seen) else None
    found = reader.read(path.parent, seen.run if seen else None)
    before = seen.ends if seen and not found.replaced else ()
    ends = (*before, *(event for event in found.events if event.kind in exit_reason.END_KINDS))
    series = reader.series(found.parts, main := reader.main_rank(found.parts))
    newest = max((one.number for one in about.attempts), default=1)
    noted = exit_reason.read(path.parent, ends, newest)
    log = Log(
        "rlvitals",
        series,
        _settings(about, found.cursor.changed),
        (*lost, *typed.summary(about.wrong), *_notes(about, found, main)),
        str(path),
        histograms=_listed(found.parts, main, lambda scan: scan.histograms),
        texts=_listed(found.parts, main, lambda scan: scan.texts),
        tables=_tables(found.parts, main),
        ending=noted.ending,
        processes=noted.open,
        attempts=newest,
        framework=about.framework,
        step_unit=str(about.more.get("step_unit") or "steps"),
    )
    return log, _Seen(found.cursor, ends)


def _about(path: Path) -> tuple[About, tuple[str, ...]]:
    """Read a `run.json` or its copy; without either, the blocks are read, with a note."""
    try:
        with opened(path) as file:
            run = run_folder.parse_state(file.read(), path)
        stored = run_folder.choose_copy(run, run_folder.copy_state(path), path)
    except NewerFormat:
        raise
    except UnreadableLog as error:
        if not run_folder.block_files(path.parent):
            raise
        return About(), (f"who and what the run is cannot be read: {error.problem}",)
    return stored.about, (stored.damage,) if stored.damage else ()


def _read_file(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read one block file, as a log of its own. Raises UnreadableLog."""
    cursor: Cursor
    with opened(path) as file:
        if bare(path).name.endswith(PACKED):
            scan, cursor = _read_packed(path, file, since)
        else:
            scan = blocks.scan_file(file, path, since if isinstance(since, BlockCursor) else None)
            cursor = scan.cursor
    part = RankScan(BlockFile(1, 0, path), scan)
    changed = {key: value for one in scan.settings for key, value in one.settings.items()}
    notes = [REPLACED] if scan.replaced else []
    notes += _damage(path.name, scan.damage, scan.torn)
    log = Log(
        "rlvitals",
        reader.series([part], 0),
        _settings(About(), changed),
        tuple(notes),
        str(path),
        histograms=_listed([part], 0, lambda one: one.histograms),
        texts=_listed([part], 0, lambda one: one.texts),
        tables=_tables([part], 0),
    )
    return log, cursor


def _read_packed(path: Path, file: IO[bytes], since: Cursor | None) -> tuple[Scan, Cursor]:
    """Read a packed file, which never grows: it is the one that was read, or another."""
    mark = zlib.crc32(file.read())
    with PackedFile(path, file) as packed:
        scan = reader.read_packed_file(packed)
    if mark == since:
        return ScanBuilder(scan.cursor).scan(replaced=False), mark
    return replace(scan, replaced=since is not None), mark


def _settings(about: About, changed: Mapping[str, object]) -> dict[str, Setting]:
    """Return the settings as they are now, with what names the run."""
    named = {"name": about.name, "project": about.project, "group": about.group, "id": about.id}
    found = {f"rlvitals/{key}": value for key, value in named.items() if value}
    found |= {"rlvitals/tags": ", ".join(about.tags)} if about.tags else {}
    said: dict[str, object] = {} if about.seed is None else {"seed": about.seed}
    said |= dict(flatten(about.settings))
    said |= dict(flatten(changed))
    return {**found, **dict(_plain(said.items()))}


def _plain(pairs: Pairs) -> Iterator[tuple[str, Setting]]:
    for key, value in pairs:
        if isinstance(value, Setting):
            yield key, value
        elif isinstance(value, list):
            yield key, json.dumps(value)[:MAX_TEXT]


def _notes(about: About, found: RunScan, main: int) -> Iterator[str]:
    """Say what a person should know of this reading."""
    if found.replaced:
        yield REPLACED
    yield from found.notes
    for part in found.parts:
        yield from _damage(f"{BLOCKS_FOLDER}/{_name(part)}", part.scan.damage, part.scan.torn)
    yield from _attempts([part for part in found.parts if part.file.rank == main])
    others = sorted({part.file.rank for part in found.parts} - {main})
    if others:
        ranks = f"rank {others[0]}" if len(others) == 1 else f"ranks {others[0]} to {others[-1]}"
        yield f"rank {main} is judged; what {ranks} logged stands under rank/<n>/"
    yield from _said(found.events)
    if about.attempts and not found.parts:
        yield "nothing was logged yet"


def _attempts(parts: Iterable[RankScan]) -> Iterator[str]:
    """Say where a later attempt goes on; one that goes back is a seam, which the steps show."""
    last: int | None = None
    for part in parts:
        rows = part.scan.scalars
        if not rows:
            continue
        first = int(rows[0].steps[0])
        if last is not None and not rows[0].first and first > last:
            yield f"attempt {part.file.attempt} goes on at step {first:,}"
        last = max(int(one.steps.max()) for one in rows)


def _said(happened: Iterable[Event]) -> Iterator[str]:
    """Repeat what the recorder noted: the newest count of each text."""
    counts: dict[str, int] = {}
    for event in happened:
        count = event.facts.get("count", 1)
        if event.kind == "note" and isinstance(count, int):
            counts[str(event.facts.get("text", ""))] = count
    for text, count in counts.items():
        yield f"{RECORDER_NOTE_PREFIX}{text}" + (f" ({count:,} times)" if count > 1 else "")


def _name(part: RankScan) -> str:
    return part.file.path.name if part.file.packed is None else part.file.packed.name


def _damage(name: str, damage: tuple[Damage, ...], torn: int) -> Iterator[str]:
    for one in damage[:MAX_NAMED]:
        yield f"{name} is damaged, the rest of it is read: {one}"
    if (more := len(damage) - MAX_NAMED) > 0:
        yield f"{name}: {more:,} more places are damaged"
    if torn:
        yield f"{name}: its last {torn:,} bytes are no whole block: left for the next reading"


def _listed(
    parts: Iterable[RankScan], main: int, pick: Callable[[Scan], Iterable[tuple[str, T]]]
) -> dict[str, list[T]]:
    """Gather what stands under each key: attempt after attempt."""
    found: dict[str, list[T]] = {}
    for part in parts:
        for key, one in pick(part.scan):
            found.setdefault(reader.key_of(key, part.file.rank, main), []).append(one)
    return found


def _tables(parts: Iterable[RankScan], main: int) -> dict[str, Table]:
    """Put the rows of each table one after another; a cell that a part lacks is None."""
    found = _listed(parts, main, lambda scan: scan.tables)
    return {key: concatenate_tables(tables) for key, tables in found.items()}


def _grows(path: Path) -> Iterator[Path]:
    """Yield the files that a run grows in."""
    if bare(path).name == RUN_FILE:
        yield path.parent / EVENTS_FILE
        yield from (one.path for one in run_folder.block_files(path.parent))


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
    home=home,
    in_parts=True,
    sums_up=True,
    grows=_grows,
)
