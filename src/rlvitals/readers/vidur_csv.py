"""Read the serving-scheduler stack's mixed-row CSV: `metrics/ppo_metrics_*.csv`.

One row a decision (`data_type` training), one an update (ppo_update), one a rollout. Its writer
appends a batch under the header of the first one even where the batch lacks columns or has new
ones: values then stand under the names of their neighbours, and a throughput reads as a
temperature. So no row is believed for its width alone: see `scheduler_rows.py`.
"""

import csv
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats.columns import NAN, Columns, parse_number, to_step
from rlvitals.readers.formats.lines import Lines, Position, open_log
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.vidur_rows import BASE_COLUMNS, VIDUR_TEXT_COLUMNS, Header, align_row
from rlvitals.types import Log, Setting


def claims(_: Path, head: bytes) -> bool:
    """Return True if the first line names the stack's base columns."""
    first, newline, _rest = head.partition(b"\n")
    return bool(newline) and set(BASE_COLUMNS) <= set(_cells(first.decode(errors="replace")) or ())


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    with open_log(path) as file:
        header = Header.of(_header(file, path))
        lines = Lines(file, previous if isinstance(previous, Position) else None)
        rows = _Reading(header)
        for line in lines:
            if line.start and line.text and not line.text.isspace():
                rows.take(line.number, line.text)
        cursor = lines.position()
    log = Log(
        source="scheduler-csv",
        series=rows.columns.series(),
        settings=rows.settings(),
        notes=(*lines.notes(), *rows.notes()),
        where=str(path),
        step_unit="decisions",
    )
    return log, cursor


def _cells(text: str) -> list[str] | None:
    try:
        rows = list(csv.reader([text]))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _header(file: BinaryIO, path: Path) -> list[str]:
    file.seek(0)
    text = file.readline(2**20).decode("utf-8-sig", errors="replace")
    names = _cells(text.rstrip("\r\n")) if text.endswith("\n") else None
    if names is None or not set(BASE_COLUMNS) <= set(names):
        raise UnreadableLog(
            f"no header with {', '.join(BASE_COLUMNS)}: not a scheduler's metrics",
            where=f"{path}, line 1",
            hint="rlvitals readers",
        )
    if doubles := [name for name, count in Counter(names).items() if count > 1]:
        raise UnreadableLog(
            f"the header names {doubles[0]!r} twice: no telling which column is which",
            where=f"{path}, line 1",
            hint="export the metrics again with one column for each name",
        )
    return names


class _Reading:
    """Points and state of the rows of one reading."""

    def __init__(self, header: Header) -> None:
        self.columns = Columns()
        self._header = header
        self._refused: dict[str, Refusals] = {}
        self._realigned: Counter[tuple[int, str]] = Counter()
        self._texts: dict[str, Counter[str]] = {}

    def take(self, number: int, text: str) -> None:
        """Place one line's cells under their names, or refuse the line."""
        cells = _cells(text)
        if cells is None:
            refusals = self._refused.setdefault("unreadable", Refusals())
            refusals.add(number, "is not comma-separated text")
            return
        placed = align_row(self._header, cells)
        if isinstance(placed, str):
            self._refused.setdefault(f"{len(cells)} fields", Refusals()).add(number, placed)
            return
        if placed.missing:
            self._realigned[len(cells), placed.missing] += 1
        row = dict(zip(self._header.names, placed.cells, strict=True))
        step = to_step(parse_number(row["step"]))
        time = parse_number(row["timestamp"])
        if step is None:  # `place` lets no such row through
            return
        for name, cell in row.items():
            if name in VIDUR_TEXT_COLUMNS:
                if name not in BASE_COLUMNS and cell:
                    self._texts.setdefault(name, Counter())[cell] += 1
            elif name not in BASE_COLUMNS and (value := parse_number(cell)) is not None:
                self.columns.add(name, step, value, NAN if time is None else time)

    def settings(self) -> dict[str, Setting]:
        """Return the text columns that never change."""
        return {
            name: next(iter(values)) for name, values in self._texts.items() if len(values) == 1
        }

    def notes(self) -> list[str]:
        """Describe refused, realigned and dropped rows."""
        notes = [note for refused in self._refused.values() for note in refused.notes()]
        for (width, name), count in self._realigned.items():
            notes.append(
                f"{count:,} row{'s'[: count != 1]} of {width} fields realigned: `{name}` is the "
                f"missing column, proven by {self._header.checks} typed columns"
            )
        notes += [
            f"`{name}` is text that changes ({', '.join(sorted(values)[:4])}): not a metric"
            for name, values in self._texts.items()
            if len(values) > 1
        ]
        return notes


READER = Reader(
    name="scheduler-csv",
    title="Serving scheduler, mixed-row CSV",
    looks_for="ppo_metrics_*.csv",
    example="run/metrics/ppo_metrics_20250917_201349.csv",
    files=("*.csv",),
    claims=claims,
    read=read,
    in_parts=True,
)
