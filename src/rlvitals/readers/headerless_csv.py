"""Read a table of numbers without column names: `np.savetxt("rewards.csv", rewards)`.

One column is called as its file is. Of several, the first ones count where they hold whole numbers
that grow, the last of these is the step, and the others are numbered. The first of the others is
the reward where it alone holds negative numbers: loops write `episode, reward, length`. So is any
in a file that is named for an algorithm, `0.4, -18.4,` in `ddpg_log.txt`. A few long
rows are read as columns are, `[1.5, 2.0, ...]` in one line among them. A file without a measure's
name is read where a person names it.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rlvitals.errors import UnreadableLog, quantity
from rlvitals.metrics.outcome_words import ALGORITHM_WORDS
from rlvitals.readers.formats import column_guess, lists, run_labels
from rlvitals.readers.formats.columns import Columns, parse_number, to_step
from rlvitals.readers.formats.compressed import bare
from rlvitals.readers.formats.documents import points_after, read_document
from rlvitals.readers.formats.lines import (
    HEAD_BYTES,
    REREAD_NOTE,
    Lines,
    Position,
    open_log,
)
from rlvitals.readers.formats.rows import Refusals
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log

TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".dat")
HEADERLESS_DELIMITERS = (",", "\t", ";", " ")
MAX_HEADERLESS_COLUMNS = 8  # of a table without names: a wider one is data
PANDAS_HEADER = re.compile(r",0(?:,\d)*")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Layout of a file's rows, inferred from the first of them."""

    name: str  # of the only column; "" where there are several, or where the file's name says it
    width: int
    delimiter: str
    counters: int  # leading columns that count: the last of them is the step
    reward: int | None = None  # of the other columns the one that alone holds negative numbers


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Position of the last reading, the layout of the rows, and their number."""

    position: Position
    shape: _Shape
    rows: int


def claims(path: Path, head: bytes) -> bool:
    """Return True if the file is such a table, and its name or its column's is a measure's."""
    if column_guess.RESULT_FILE.match(path.stem.lower()):
        return False
    shape = _shape(path, head)
    if shape is None:
        return column_guess.is_measure(path.stem) and _lies(path, head)
    return column_guess.is_measure(shape.name or path.stem)


def claims_single(path: Path, head: bytes) -> bool:
    """Return True if the file is such a table, whatever it is called."""
    return _shape(path, head) is not None or _lies(path, head)


def read(path: Path, previous: Cursor | None = None) -> tuple[Log, Cursor]:
    """Read the rows after a cursor. Raises UnreadableLog."""
    with open_log(path) as file:
        if _lies(bare(path), file.read(HEAD_BYTES)):
            return _read_rows(path, previous)
    resume = previous if isinstance(previous, _Cursor) else None
    with open_log(path) as file:
        lines, resume, reread_notes = _start(file, path, resume)
        columns, refused, rows = Columns(), Refusals(), resume.rows
        shape = resume.shape
        for line in lines:
            cells = _cells(line.text, shape.delimiter)
            if cells is None or len(cells) != shape.width:
                if (
                    line.text.strip()
                    and not line.text.startswith("#")
                    and line.text.strip() != shape.name
                    and not PANDAS_HEADER.fullmatch(line.text.strip())
                ):
                    refused.add(line.number, f"is no row of {shape.width} numbers")
                continue
            rows += 1
            step = to_step(cells[shape.counters - 1]) if shape.counters else rows
            if step is None:
                refused.add(line.number, "has no whole number as its step")
                continue
            for key, value in zip(_keys(path, shape), cells[shape.counters :], strict=True):
                columns.add(key, step, value)
        end = lines.position()
        # What the columns are taken for without names.
        guesses = [] if shape.counters else ["no step-like column: points are numbered by row"]
        if shape.reward is not None and "reward" in _keys(path, shape):
            guesses.append(
                "no names: the only column with negative numbers is taken for the reward"
            )
    notes = (*reread_notes, *lines.notes(), *refused.notes(), *guesses)
    log = Log("headerless-csv", columns.series(), {}, notes, str(path), "rows")
    return log, _Cursor(end, shape, rows)


def _start(
    file: BinaryIO, path: Path, resume: _Cursor | None
) -> tuple[Lines, _Cursor, Sequence[str]]:
    """Return the lines after a cursor, the cursor, and a note where all are to be read again."""
    shape = _shape(bare(path), file.read(HEAD_BYTES))
    lines = Lines(file, resume.position if resume else None)
    if resume is not None and not lines.replaced:
        if shape is None or shape == resume.shape:
            return lines, resume, ()
        return Lines(file), _Cursor(Position(), shape, 0), (REREAD_NOTE,)
    if shape is None:
        raise UnreadableLog(
            "no table of numbers", where=str(path), hint="name its columns in the first row"
        )
    return lines, _Cursor(Position(), shape, 0), ()


def _lies(path: Path, head: bytes) -> bool:
    """Return True if a file starts with a long row of numbers, and holds at most a few rows."""
    if path.suffix.lower() not in TABLE_SUFFIXES or b"\x00" in head:
        return False
    rows = [row for raw in head.split(b"\n") if (row := _strip(raw.decode("utf-8-sig", "replace")))]
    if not 0 < len(rows) <= MAX_HEADERLESS_COLUMNS or len(rows[0]) > HEAD_BYTES:
        return False
    is_cut = len(head) >= HEAD_BYTES  # within the last number
    delimiter = _delimiter(rows[0])
    cells = [row.rpartition(delimiter)[0] if is_cut and row is rows[-1] else row for row in rows]
    numbers = [_cells(row, delimiter) for row in cells if row]
    return all(row is not None for row in numbers) and len(numbers[0] or ()) >= 10


def _strip(text: str) -> str:
    return text.strip().removeprefix("[").removesuffix("]").strip(", ")


def _delimiter(row: str) -> str:
    return next((delimiter for delimiter in HEADERLESS_DELIMITERS if delimiter in row), ",")


def _read_rows(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read a table that lies on its side: one row, or the mean over several of one length."""
    document = read_document(path).decode("utf-8-sig", "replace")
    notes = ["one row of numbers: they are numbered in their order"]
    if not document.endswith(("\n", "]")):  # its last number may be the beginning of one
        document = re.sub(r"[^,;\t ]*\Z", "", document)
        notes.append("no end of the row: the last number is left out")
    texts = [text for line in document.split("\n") if (text := _strip(line))]
    rows = [row for text in texts if (row := _cells(text, _delimiter(text))) is not None]
    width = len(rows[0]) if rows else 0
    array = np.array([row for row in rows if len(row) == width], dtype=np.float64)
    if len(array) < len(texts):
        notes.append(
            f"{quantity(len(texts) - len(array), 'row')} refused: no {quantity(width, 'number')}"
        )
    key = _keys(path, _Shape("", 1, ",", 0))[0]
    curve = lists.mean_curve(key, array, notes)
    columns = Columns()
    if curve is not None:
        columns.extend(key, np.arange(1, len(curve) + 1, dtype=np.int64), curve)
    series, cursor, replaced = points_after(columns.series(), previous)
    return Log("headerless-csv", series, {}, (*replaced, *notes), str(path), "rows"), cursor


def _keys(path: Path, shape: _Shape) -> list[str]:
    count = shape.width - shape.counters
    measure = shape.name or run_labels.measure_name(path.name.split(".")[0])
    name = measure or "values"
    if count == 1:
        return [name]
    names = [f"{name} ({n})" for n in range(1, count + 1)]
    if measure and shape.counters:  # beside a step the file's measure comes first
        return [measure, *names[1:]]
    if shape.reward is not None and not measure:
        names[shape.reward] = "reward"
    return names


def _shape(path: Path, head: bytes) -> _Shape | None:
    """Tell how the rows of a file are read; None where it is no such table."""
    if path.suffix.lower() not in TABLE_SUFFIXES or b"\x00" in head:
        return None
    texts = [
        text
        for raw in head.split(b"\n")[:-1][:200]
        if (text := raw.decode("utf-8-sig", errors="replace").strip()) and text[0] != "#"
    ]
    if len(texts) <= 3:
        return None
    name = ""
    if PANDAS_HEADER.fullmatch(texts[0]):  # of a frame without column names: ",0,1"
        texts.pop(0)
    elif not any(_cells(texts[0], d) for d in HEADERLESS_DELIMITERS) and not set(texts[0]) & {
        *("{", "[", "<", "=")
    }:
        name = texts.pop(0)
        if any(delimiter in name for delimiter in ",\t;") or len(name.split()) > 4:
            return None
    for delimiter in HEADERLESS_DELIMITERS:
        rows = [_cells(text, delimiter) for text in texts]
        widths = {0 if row is None else len(row) for row in rows}
        if len(widths) != 1 or 0 in widths:
            continue
        width = widths.pop()
        if width > (1 if name else MAX_HEADERLESS_COLUMNS):
            return None
        numbers = [row for row in rows if row]
        counters = _counters(numbers)
        columns = list(zip(*numbers, strict=True))[counters:]
        negative = [n for n, column in enumerate(columns) if min(column) < 0]
        label = run_labels.split_label(path.stem)[0]
        is_named = not ALGORITHM_WORDS.isdisjoint(label.split("_"))
        is_reward = len(negative) == 1 < len(columns) and (
            is_named or (counters and not negative[0])
        )
        return _Shape(name, width, delimiter, counters, negative[0] if is_reward else None)
    return None


def _counters(rows: list[list[float]]) -> int:
    """Count the leading columns of whole numbers that grow from row to row, all but the last.

    A column may start again: the run was started anew and appended.
    """
    count = 0
    for column in list(zip(*rows, strict=True))[:-1]:
        counts = all(to_step(value) is not None for value in column)
        grows = len(set(column)) > len(column) // 2
        if not counts or not grows or any(a >= b > column[0] for a, b in pairwise(column)):
            break
        count += 1
    return count if len(rows) >= 8 else min(count, 1)  # fewer numbers may grow by chance


def _cells(text: str, delimiter: str) -> list[float] | None:
    """Return a row's numbers; None where one of its cells is none. It may end with a delimiter."""
    row = text.strip()
    cells = row.split() if delimiter == " " else row.removesuffix(delimiter).split(delimiter)
    try:
        numbers = [parse_number(cell) for cell in cells]
    except ValueError:
        return None
    return None if None in numbers else [n for n in numbers if n is not None]


READER = Reader(
    name="headerless-csv",
    title="A table of numbers without names",
    looks_for="*.csv or *.txt named for rewards, returns, scores or losses",
    example="results/episode_rewards.csv",
    files=("*.csv", "*.tsv", "*.txt"),
    claims=claims,
    read=read,
    claims_single=claims_single,
)
