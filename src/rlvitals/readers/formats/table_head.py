"""Tell a table of numbers from other text, and how its rows are read, by its first rows.

Of a growing file this may change with its rows: a column that counts in the first ones may turn
out to be in no order.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.readers.formats import column_guess, lines, step_order
from rlvitals.readers.formats.columns import parse_number
from rlvitals.startup.fast_dataclass import dataclass

MIN_LOG_ROWS = 8  # of a table without a step-like column, to be a run of its folder


@dataclass(frozen=True, slots=True)
class Table:
    """A table's head: its names, what separates cells, and where its rows begin."""

    names: tuple[str, ...]
    delimiter: str
    start: int  # byte offset of the first row
    lines: int  # lines before it
    unordered: frozenset[str] = frozenset()  # step-like names whose numbers count nothing
    short: int = 0  # cells of most rows, where the last columns are settings of the first row
    heads: tuple[tuple[str, ...], ...] = ()  # where later ones have other names: `names` has all

    @property
    def steps(self) -> tuple[str, ...]:
        """The step-like names, the most trusted first."""
        return tuple(key for key in column_guess.step_keys(self.names) if key not in self.unordered)

    @property
    def readable(self) -> bool:
        """True if it is a log: it has a step-like name, or measures of training."""
        return bool(self.steps) or any(map(column_guess.is_measure, self.names))


def head_of(data: bytes) -> Table | None:
    """Return the head of the table that a file starts with; None where it is no table.

    `data` is the file's beginning. Blank lines, `#` comments and the mark of a merge conflict may
    come before the names.
    """
    if b"\x00" in data:
        return None
    start = number = 0
    for raw in data.split(b"\n")[:-1]:
        start, number = start + len(raw) + 1, number + 1
        text = raw.decode("utf-8-sig", errors="replace").strip("\r")
        if text and not text.isspace() and not text.startswith(("#", "<<<<<<< ")):
            if text.lstrip().startswith(("{", "[")):  # JSON
                return None
            names, delimiter = _split(text)
            return Table(tuple(names), delimiter, start, number) if _are_names(names) else None
    return None


def names_rows(table: Table, head: bytes) -> bool:
    """Return True if the rows are few, and their first cells are texts that all differ."""
    rows = head[table.start :].decode(errors="replace").splitlines()
    first = [row.partition(table.delimiter)[0].strip() for row in rows if row.strip()]
    names = {cell for cell in first if cell_number(cell) is None and cell}
    return 0 < len(rows) < MIN_LOG_ROWS and len(names) == len(first)


def has_rows(table: Table, head: bytes) -> bool:
    """Return True unless most rows have other numbers of cells, or no number: prose has commas."""
    rows = head[table.start :].decode(errors="replace").splitlines()
    rows = rows[:-1] or rows  # the last one may be cut
    try:
        cells = [row for row in csv.reader(rows, delimiter=table.delimiter) if "".join(row).strip()]
    except csv.Error:
        return False
    fits = [
        row for row in cells if len(row) == len(table.names) and {*map(cell_number, row)} != {None}
    ]
    return 2 * len(fits) >= len(cells)


def read_table(file: BinaryIO, path: Path) -> Table:
    """Return the head of a file. Raises UnreadableLog where it is no log."""
    file.seek(0)
    data = file.read(lines.LINE_CHUNK_BYTES)
    table = head_of(data)
    if table is not None and table.readable:
        rows = _first_rows(table, data)
        table = replace(table, short=_short_width(table, rows))
        table = replace(table, unordered=_find_unordered(table, rows))
        heads = () if table.short else _heads(table, rows)
        all_names = dict.fromkeys(name for head in heads for name in head)
        return replace(table, heads=heads, names=tuple(all_names) or table.names)
    columns = f" among the columns {', '.join(table.names[:12])}" if table else ""
    names = (*column_guess.PLAIN_STEPS[:1], *column_guess.ENVIRONMENT_STEPS[:2])
    raise UnreadableLog(
        f"no table with a step-like column{columns}",
        where=str(path),
        hint=f"name one of its columns {', '.join(names)}",
    )


def _first_rows(table: Table, data: bytes) -> list[str]:
    rows = data[table.start :].split(b"\n", 10_000)[:-1]  # the last one may be cut
    return [row.decode(errors="replace") for row in rows]


def _heads(table: Table, rows: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the first row of names and those below it that name other columns; else none.

    A logger writes its names again where a value is new, and a resumed run above its own rows.
    """
    heads: dict[tuple[str, ...], None] = {table.names: None}
    for text in map(str.strip, rows):
        if cell_number(text.partition(table.delimiter)[0].strip('"')) is not None:
            continue
        names, _ = _split(text, table.delimiter)
        shared = len({*names} & {*table.names})
        is_head = shared > 1 and 2 * shared >= min(len(names), len(table.names))
        if is_head and _are_names(names):
            heads[tuple(names)] = None
    are_unique = all(len({*head}) == len(head) for head in heads)
    return tuple(heads) if len(heads) > 1 and are_unique else ()


def _short_width(table: Table, rows: Sequence[str]) -> int:
    """Return the number of cells of most rows, where the first of them alone is complete; else 0.

    A script wrote its settings behind the first row and left the columns out afterwards.
    """
    widths = [len(row.split(table.delimiter)) for row in rows if row.strip()]
    width = len(table.names)
    first, rest = widths[:1], set(widths[1:])
    short = min(rest, default=width)
    columns = table.names[:short]
    is_log = bool(column_guess.step_keys(columns)) and any(map(column_guess.is_measure, columns))
    fits = first == [width] and len(rest) == 1 and 1 < short < width
    return short if fits and is_log and len(widths) >= MIN_LOG_ROWS else 0


def _find_unordered(table: Table, rows: Sequence[str]) -> frozenset[str]:
    """Return the step-like names whose numbers are in no order in the first rows.

    `Total_Steps` may be the steps of that episode: rows are never put in the order of those.
    """
    columns = {name: table.names.index(name) for name in table.steps}
    by_name: dict[str, list[float]] = {name: [] for name in columns}
    for row in rows:
        has_quotes = '"' in row
        cells = _split(row, table.delimiter)[0] if has_quotes else row.split(table.delimiter)
        if len(cells) not in {len(table.names), table.short}:
            continue
        for name, column in columns.items():
            if column >= len(cells):
                continue
            value = cell_number(cells[column].strip().strip('"'))
            if value is not None and math.isfinite(value):
                by_name[name].append(value)
    return step_order.columns_without_order(
        {name: np.array(values) for name, values in by_name.items()}
    )


def _split(text: str, delimiters: str = ",\t;") -> tuple[list[str], str]:
    best: tuple[list[str], str] = ([text], ",")
    for delimiter in delimiters:
        try:
            names = next(csv.reader([text], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > len(best[0]):
            best = names, delimiter
    return [name.strip() for name in best[0]], best[1]


def _are_names(cells: list[str]) -> bool:
    """Return True if a first row names columns: a table of numbers alone has no names."""
    words = Counter(re.sub(r" +\d+\Z", "", cell) for cell in cells)  # "Reward 1", "Reward 2"
    pair = r"\w ?[:=#] *[-+]?\d+(?:\.\d+)?\Z|^\w+ +\d+\Z"  # a line, not a head
    pairs = (c for c in cells if re.search(pair, c) and words[re.sub(r" +\d+\Z", "", c)] == 1)
    are_texts = next(pairs, None) is None and all(cell_number(cell) is None for cell in cells)
    return 1 < len(cells) <= 100_000 and are_texts


def cell_number(cell: str) -> float | None:
    """Return the number that a cell holds; None where it holds none."""
    try:
        return parse_number(cell)
    except ValueError:
        return None
