"""Read Lightning's `lightning_logs/version_N/metrics.csv`, of Trainer and of Fabric.

A row holds what one call logged, so most cells are empty; `step` counts optimiser steps. When a
new key appears the file is written anew: its columns sorted by name, the rows before with empty
cells under the new ones. So a cursor under another header counts rows, and knows the last one by
its cells. Source: `lightning/fabric/loggers/csv_logs.py` (`_ExperimentWriter`), 2.6.
"""

import re
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import Columns, parse_number, to_step
from rlvitals.readers.formats.lines import REPLACED_NOTE, REWRITTEN_NOTE, Lines, Position, open_log
from rlvitals.readers.formats.rows import NO_ROW_NOTE, Refusals, Row, Rows, read_header
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log

LIGHTNING = "lightning"
LIGHTNING_STEP = "step"
LIGHTNING_STEP_UNIT = "updates"

Cells = tuple[tuple[str, str], ...]  # of a row: those that hold something, sorted by name


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position and header of the last reading, the number of rows, the first and last row."""

    names: tuple[str, ...]
    position: Position
    rows: int = 0
    first: Cells = ()
    last: Cells = ()


def claims(path: Path, head: bytes) -> bool:
    """Claim a `metrics.csv` with a step in a version's folder, or with an epoch by hparams.yaml."""
    cells = head.partition(b"\n")[0].decode(errors="replace").strip().split(",")
    if path.name != "metrics.csv" or LIGHTNING_STEP not in cells:
        return False
    in_version = re.fullmatch(r"version_\d+", path.parent.name) is not None
    return in_version or ("epoch" in cells and (path.parent / "hparams.yaml").is_file())


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog where there is no step column."""
    resume = previous if isinstance(previous, _Cursor) else None
    with open_log(path) as file:
        header = read_header(file)
        if header is None:
            return Log(LIGHTNING, {}, {}, (NO_ROW_NOTE,), str(path), LIGHTNING_STEP_UNIT), resume
        names, start = tuple(header[0]), header[1]
        if LIGHTNING_STEP not in names:
            raise UnreadableLog(
                f"not a log of Lightning's: no column {LIGHTNING_STEP}",
                where=str(path),
                hint="rlvitals readers",
            )
        cursor = _relocate(file, names, start, resume)
        if cursor is None:
            return Log(
                LIGHTNING,
                {},
                {},
                (REWRITTEN_NOTE,),
                str(path),
                LIGHTNING_STEP_UNIT,
            ), resume
        replaced = resume is not None and cursor.rows == 0 and resume.rows > 0
        reading = _Reading(names, cursor)
        rows = Rows(Lines(file, cursor.position), len(names))
        for row in rows:
            reading.take(row, rows.refused)
        end = reading.cursor(rows.position())
        notes = (*([REPLACED_NOTE] if replaced else []), *rows.notes(), *reading.cells.notes())
    return Log(LIGHTNING, reading.columns.series(), {}, notes, str(path), LIGHTNING_STEP_UNIT), end


def _relocate(
    file: BinaryIO, names: tuple[str, ...], start: Position, resume: _Cursor | None
) -> _Cursor | None:
    """Return the place of a cursor under the header that the file has now, or its start.

    None while Lightning is rewriting the file.
    """
    fresh = _Cursor(names, start)
    if resume is None or not resume.rows:
        return fresh
    if names == resume.names:
        return fresh if Lines(file, resume.position).replaced else resume
    if not set(resume.names) < set(names):
        return fresh
    rows = Rows(Lines(file, start), len(names))
    for count, row in enumerate(rows, 1):
        cells = _cells(names, row)
        if count == 1 and cells != resume.first:
            return fresh
        if count == resume.rows:
            is_same_row = cells == resume.last
            cursor = _Cursor(names, rows.position(), resume.rows, resume.first, resume.last)
            return cursor if is_same_row else fresh
    return None


def _cells(names: tuple[str, ...], row: Row) -> Cells:
    pairs = zip(names, row.fields, strict=True)
    return tuple(sorted((name, cell) for name, cell in pairs if cell))


class _Reading:
    """Points and state of the rows of one reading."""

    def __init__(self, names: tuple[str, ...], resume: _Cursor) -> None:
        self.columns, self.cells = Columns(), Refusals("cell")
        self._names, self._seen = names, resume
        self._count = resume.rows
        self._first, self._last = resume.first, resume.last

    def take(self, row: Row, refused: Refusals) -> None:
        """Take a row of the right width; refuse it where it has no step."""
        self._last = _cells(self._names, row)
        self._first = self._first or self._last
        self._count += 1
        values: dict[str, float | None] = {}
        for name, cell in self._last:
            try:
                values[name] = parse_number(cell)
            except ValueError:  # a cell of text is refused by itself
                self.cells.add(row.line, f"has {cell[:40]!r} under {name}")
        step = to_step(values.pop(LIGHTNING_STEP, None))
        if step is None:
            refused.add(row.line, f"has no {LIGHTNING_STEP}")
        else:
            self.columns.add_row(step, values.items())

    def cursor(self, position: Position) -> _Cursor:
        """Return the position to resume from."""
        return _Cursor(self._names, position, self._count, self._first, self._last)


READER = Reader(
    name=LIGHTNING,
    title="Lightning CSVLogger",
    looks_for="metrics.csv of lightning_logs/version_*",
    example="lightning_logs/version_0/metrics.csv",
    files=("metrics.csv",),
    claims=claims,
    read=read,
)
