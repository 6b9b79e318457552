"""Lightning's `lightning_logs/version_N/metrics.csv`, of Trainer and of Fabric.

A row holds what one call logged, so most cells are empty; `step` counts optimiser steps. When a
new key appears the file is written anew: its columns sorted by name, the rows before with empty
cells under the new ones. So a cursor under another header counts rows, and knows the last one by
its cells. Source: `lightning/fabric/loggers/csv_logs.py` (`_ExperimentWriter`), 2.6.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import Columns, parse_number, whole
from rlvitals.readers.formats.lines import REPLACED, Lines, Position, opened
from rlvitals.readers.formats.rows import NO_ROW, Refused, Row, Rows, read_header
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.types import Log

NAME = "lightning"
STEP, EPOCH = "step", "epoch"
STEP_UNIT = "updates"
VERSION = re.compile(r"version_\d+")
REWRITTEN = "the file is being rewritten: left for the next reading"

Cells = tuple[tuple[str, str], ...]  # of a row: those that hold something, sorted by name


@dataclass(frozen=True, slots=True)
class _Seen:
    """Where the last reading ended under which header, how many rows it had passed, two of them."""

    names: tuple[str, ...]
    position: Position
    rows: int = 0
    first: Cells = ()
    last: Cells = ()


def claims(path: Path, head: bytes) -> bool:
    """Claim a `metrics.csv` with a step in a version's folder, or with an epoch by hparams.yaml."""
    cells = head.partition(b"\n")[0].decode(errors="replace").strip().split(",")
    if path.name != "metrics.csv" or STEP not in cells:
        return False
    in_version = VERSION.fullmatch(path.parent.name) is not None
    return in_version or (EPOCH in cells and (path.parent / "hparams.yaml").is_file())


def read(path: Path, since: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog where there is no step column."""
    seen = since if isinstance(since, _Seen) else None
    with opened(path) as file:
        header = read_header(file)
        if header is None:
            return Log(NAME, {}, {}, (NO_ROW,), str(path), STEP_UNIT), seen
        names, start = tuple(header[0]), header[1]
        if STEP not in names:
            raise UnreadableLog(
                f"not a log of Lightning's: no column {STEP}",
                where=str(path),
                hint="rlvitals readers",
            )
        found = _found(file, names, start, seen)
        if found is None:
            return Log(NAME, {}, {}, (REWRITTEN,), str(path), STEP_UNIT), seen
        replaced = seen is not None and found.rows == 0 and seen.rows > 0
        reading = _Reading(names, found)
        rows = Rows(Lines(file, found.position), len(names))
        for row in rows:
            reading.take(row, rows.refused)
        end = reading.cursor(rows.position())
        notes = (*([REPLACED] if replaced else []), *rows.notes(), *reading.cells.notes())
    return Log(NAME, reading.columns.series(), {}, notes, str(path), STEP_UNIT), end


def _found(
    file: BinaryIO, names: tuple[str, ...], start: Position, seen: _Seen | None
) -> _Seen | None:
    """Return the place of a cursor under the header that the file has now, or its start.

    None while Lightning is rewriting the file.
    """
    fresh = _Seen(names, start)
    if seen is None or not seen.rows:
        return fresh
    if names == seen.names:
        return fresh if Lines(file, seen.position).replaced else seen
    if not set(seen.names) < set(names):
        return fresh
    rows = Rows(Lines(file, start), len(names))
    for count, row in enumerate(rows, 1):
        cells = _cells(names, row)
        if count == 1 and cells != seen.first:
            return fresh
        if count == seen.rows:
            same = cells == seen.last
            place = _Seen(names, rows.position(), seen.rows, seen.first, seen.last)
            return place if same else fresh
    return None


def _cells(names: tuple[str, ...], row: Row) -> Cells:
    pairs = zip(names, row.fields, strict=True)
    return tuple(sorted((name, cell) for name, cell in pairs if cell))


class _Reading:
    """What the rows of one reading amount to."""

    def __init__(self, names: tuple[str, ...], seen: _Seen) -> None:
        self.columns, self.cells = Columns(), Refused("cell")
        self._names, self._seen = names, seen
        self._count = seen.rows
        self._first, self._last = seen.first, seen.last

    def take(self, row: Row, refused: Refused) -> None:
        """Take a row of the right width; refuse it where it has no step."""
        self._last = _cells(self._names, row)
        self._first = self._first or self._last
        self._count += 1
        values = dict(self._numbers(row.line))
        step = whole(values.pop(STEP, None))
        if step is None:
            refused.add(row.line, f"has no {STEP}")
        else:
            self.columns.add_row(step, values.items())

    def _numbers(self, line: int) -> Iterator[tuple[str, float | None]]:
        """Yield the last row's numbers; a cell of text is refused by itself."""
        for name, cell in self._last:
            try:
                yield name, parse_number(cell)
            except ValueError:
                self.cells.add(line, f"has {cell[:40]!r} under {name}")

    def cursor(self, position: Position) -> _Seen:
        """Return where to go on."""
        return _Seen(self._names, position, self._count, self._first, self._last)


READER = Reader(
    name=NAME,
    title="Lightning CSVLogger",
    looks_for="metrics.csv of lightning_logs/version_*",
    example="lightning_logs/version_0/metrics.csv",
    files=("metrics.csv",),
    claims=claims,
    read=read,
)
