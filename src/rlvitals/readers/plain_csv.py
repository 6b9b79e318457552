"""Read any table of numbers with a step-like column, separated by comma, tab or semicolon.

The step column is recognised by its name (`column_guess.py`); of several, the most trusted one
with whole numbers in the first row. Without one, a table that is clearly a training log is read
by row number, and a note reports so.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from rlvitals.errors import join_first, quantity
from rlvitals.readers import multi_run, table_runs
from rlvitals.readers.formats import column_guess, run_labels
from rlvitals.readers.formats.columns import (
    MAX_SETTING_CHARACTERS,
    NAN,
    Columns,
    parse_number,
    to_step,
)
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.lines import (
    REPLACED_NOTE,
    REREAD_NOTE,
    Lines,
    Position,
    open_log,
    position_at,
)
from rlvitals.readers.formats.rows import Refusals, Row, Rows
from rlvitals.readers.formats.table_head import (
    Table,
    cell_number,
    has_rows,
    head_of,
    names_rows,
    read_table,
)
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.table_runs import Selection
from rlvitals.readers.thin_columns import ThinReader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log, Setting

# One number as numpy and PyTorch print it: "tensor(0.5, grad_fn=<MulBackward0>)", "[0.5]".
PRINTED_TENSOR = re.compile(
    r"\s*(?:(?:tensor|array|np\.\w{1,10})\(|\[)+\s*([-+\w.]{1,40})\s*(?:\]+)?"
    r"(?:, (?:grad_fn|dtype|device|requires_grad)=[^,]{1,60}|\))*\)*\]*\s*"
)


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position of the last reading, the rows before it, their step column and their texts."""

    position: Position | None = None
    table: Table | None = None  # as the rows before were understood
    rows: int = 0
    step: str | None = None  # "" is the row number
    taken: int = 0  # rows that had a step
    texts: Mapping[str, frozenset[str]] = field(default_factory=dict)  # as `_Reading` has them
    left_out: Mapping[str, int] = field(default_factory=dict)  # cells, by column
    restarts: int = 0  # of the step column
    ends: tuple[int, int] | None = None  # the first and the last step
    head: int = 0  # of several, the last one above the rows


def claims(path: Path, head: bytes) -> bool:
    """Return True if the file starts as a table with a step-like column, or clearly is a log.

    A few rows with a name each and no step-like column are a table of results: it makes no run of
    its folder.
    """
    table = head_of(head)
    is_log = table is None or bool(table.steps) or not names_rows(table, head)
    return is_log and claims_single(path, head)


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the file starts as a table with a step-like column or a measure."""
    table = head_of(head)
    # Never a table, however damaged.
    return (
        path.suffix.lower() not in {".json", ".jsonl", ".ndjson", ".jsonlines"}
        and table is not None
        and table.readable
        and bool(table.steps or has_rows(table, head))
    )


def split(path: Path, head: bytes) -> Mapping[str, Reader]:
    """Return a reader for each run of a table. Raises UnreadableLog."""
    with open_log(path) as file:
        data = file.read(table_runs.MAX_SPLIT_BYTES + 1)
        table = read_table(file, path)
    if len(data) > table_runs.MAX_SPLIT_BYTES or len(head) > len(data) or table.heads:
        return {}
    text = data[table.start :].decode(errors="replace")
    measure = run_labels.measure_name(bare(path).stem)
    runs = table_runs.selections(table.names, table.steps, text, table.delimiter, measure)
    return multi_run.readers(READER, runs, _read)


def read(
    path: Path, previous: Cursor | None = None, columns: Columns | None = None
) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    return _read(path, previous, columns, run=Selection())


def _read(
    path: Path,
    previous: Cursor | None = None,
    columns: Columns | None = None,
    *,
    run: Selection,
) -> tuple[Log, Cursor]:
    resume = previous if isinstance(previous, _Cursor) else _Cursor()
    with open_log(path) as file:
        table = read_table(file, path)
        if not run.columns:
            run = replace(run, columns=run_labels.rename_value(table.names, bare(path).stem))
        first = position_at(file, table.start, table.lines)
        lines = Lines(file, resume.position or first)
        reread_note = REPLACED_NOTE if lines.replaced else ""
        if not reread_note and resume.table not in {None, table}:
            reread_note = REREAD_NOTE
        if reread_note:
            resume, lines = _Cursor(), Lines(file, first)
        refused = Refusals()
        rows = Rows(lines, len(table.names), refused, table.delimiter, table.short)
        rows.expect_heads(table.heads, resume.head)
        reading = _Reading(table, refused, resume, run, Columns() if columns is None else columns)
        for row in rows:
            reading.take(row)
        cursor = replace(reading.cursor(rows.position()), head=rows.head)
        notes = (*([reread_note] if reread_note else []), *reading.notes(), *rows.notes())
    unit = column_guess.step_unit(reading.step) if reading.step else "rows"
    series = reading.columns.drain()
    return Log("csv", series, reading.settings(), notes, str(path), unit), cursor


class _Reading:
    """Points and state of the rows of one reading."""

    def __init__(
        self, table: Table, refused: Refusals, resume: _Cursor, run: Selection, columns: Columns
    ) -> None:
        self.columns, self._run = columns, run
        self._restarts, self._ends = resume.restarts, resume.ends
        self.rows, self.step = resume.rows, resume.step
        self._table, self._refused = table, refused
        # A name's second column says which one it is.
        keys: list[str] = []
        used: set[str] = set()
        for number, name in enumerate(table.names, 1):
            key = name if name and name not in used else f"{name or 'column'} ({number})"
            used.add(key)
            keys.append(key)
        self._keys = keys
        self._time = column_guess.time_key(table.names)
        # Of each column of text, two texts at most.
        self._texts = {key: set(texts) for key, texts in resume.texts.items()}
        self._taken = resume.taken
        self._left_out = Counter(resume.left_out)

    def cursor(self, position: Position) -> _Cursor:
        """Return the position to resume from."""
        texts = {key: frozenset(values) for key, values in self._texts.items()}
        return _Cursor(
            *(
                position,
                self._table,
                self.rows,
                self.step,
                self._taken,
                texts,
                dict(self._left_out),
            ),
            restarts=self._restarts,
            ends=self._ends,
        )

    def take(self, row: Row) -> None:
        """Take one row of the right width; refuse it where it has no step."""
        if tuple(cell.strip() for cell in row.fields) == self._table.names:
            return  # the head again: a resumed run appended it
        cells = dict(zip(self._keys, row.fields, strict=True))
        if any(cells[key].strip() != text for key, text in self._run.cells.items()):
            return
        self.rows += 1
        step = self._step(cells)
        if step is None:
            step_name = self.step or self._table.steps[0]
            self._refused.add(row.line, f"holds {cells[step_name][:40]!r} as `{step_name}`")
            return
        if self._run.attempt is not None:
            first, last = self._ends or (step, step)
            self._restarts += table_runs.restarts(first, last, step)
            self._ends = (first, step)
            if self._restarts != self._run.attempt:
                return
        self._taken += 1
        time = column_guess.seconds(cells[self._time]) if self._time else None
        for key, cell in cells.items():
            if key == self.step or (key == self._time and time is not None):
                continue
            if key in self._run.cells or key in self._run.left_out:
                continue
            name = self._run.columns.get(key, key)
            self._cell(name, cell, step, NAN if time is None else time)

    def _cell(self, key: str, cell: str, step: int, time: float) -> None:
        if self._table.delimiter == ";" and cell.count(",") == 1 and "." not in cell:
            cell = cell.replace(",", ".")  # tables with semicolons write 0,5
        try:
            value = _parse_cell(cell)
        except ValueError:
            self._left_out[key] += 1
            texts = self._texts.setdefault(key, set())
            if len(texts) < 2:  # two texts show that a column changes
                texts.add(cell.strip()[:MAX_SETTING_CHARACTERS])
            return
        if value is not None:
            self.columns.add(key, step, value, time)

    def _step(self, cells: dict[str, str]) -> int | None:
        """Return a row's step; None where it has none. The first row with one decides how."""
        if self.step is None:
            by_name = {name: cell_number(cells[name]) for name in self._table.steps}
            fits = [name for name, value in by_name.items() if to_step(value) is not None]
            fractions = [value for value in by_name.values() if value and math.isfinite(value)]
            if fits or fractions or not by_name:
                self.step = fits[0] if fits else ""
        if self.step:
            return to_step(cell_number(cells[self.step]))
        return None if self.step is None else self.rows

    def settings(self) -> dict[str, Setting]:
        """Return the columns of text that never change."""
        return {
            key: next(iter(texts))
            for key, texts in self._texts.items()
            if len(texts) == 1 and self._left_out[key] == self._taken
        }

    def notes(self) -> list[str]:
        """Describe how rows were numbered, and which columns hold text."""
        notes = []
        if self.step == "" and self._table.unordered:
            names = ", ".join(f"`{name}`" for name in sorted(self._table.unordered))
            notes.append(f"{names} counts no steps, it goes back: points are numbered by row")
        elif self.step == "":
            notes.append("no step-like column: points are numbered by row")
        constant = self.settings()
        texts = [key for key in self._texts if key not in constant]
        if texts:
            count = sum(self._left_out[key] for key in texts)
            names = join_first([f"`{key}`" for key in texts], 4)
            notes.append(f"{quantity(count, 'cell')} without a number left out: {names}")
        return notes


def _parse_cell(cell: str) -> float | None:
    """Parse a number, or one as a tensor is printed. Raises ValueError."""
    try:
        return parse_number(cell)
    except ValueError:
        return parse_number(PRINTED_TENSOR.sub(r"\1", cell))


READER = Reader(
    name="csv",
    title="Any CSV with a step column",
    looks_for="*.csv or *.tsv with a step-like column",
    example="run/metrics.csv",
    files=("*.csv", "*.tsv", "*.txt", "*.log"),
    claims=claims,
    read=read,
    sums_up=True,
    claims_single=claims_single,
    split=split,
    read_thin=ThinReader(read),
    thins_alone=True,
)
