"""Read rows of a comma-separated log that may be growing or damaged.

    with opened(path) as file:
        rows = Rows(Lines(file, since), width=len(names))   # width 0: the first row's
        for row in rows:                        # Row(line, fields), all of one width
            ...
        cursor, notes = rows.position(), rows.notes()

Rows of another width are refused and counted with the first one's line, never shifted.
"""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

from rlvitals.errors import quantity
from rlvitals.readers.formats.lines import MAX_LINE_BYTES, Line, Lines, Position

NO_ROW_NOTE = "no complete row yet"
csv.field_size_limit(MAX_LINE_BYTES)


def read_header(file: BinaryIO) -> tuple[list[str], Position] | None:
    """Return the names in the first row that is not blank, and where the rows begin.

    Duplicate names get suffixes as in pandas ("loss", "loss.1"), an empty one by its
    column ("column 3"), so that none is lost and none shadows another. None where there is no
    complete first row yet.
    """
    rows = Rows(Lines(file))
    row = next(iter(rows), None)
    if row is None:
        return None
    names: dict[str, None] = {}
    for column, cell in enumerate(row.fields, 1):
        name = base = cell.strip() or f"column {column}"
        number = 0
        while name in names:
            number += 1
            name = f"{base}.{number}"
        names[name] = None
    return list(names), rows.position()


class Refusals:
    """Counts what was refused, and remembers the first of it."""

    def __init__(self, noun: str = "row", position_noun: str = "line") -> None:
        """Name what is counted, and what its numbers count, in the singular."""
        self.what, self.place, self.count, self.first = noun, position_noun, 0, ""

    def add(self, number: int, reason: str) -> None:
        """Refuse one: `why` completes "line 318 ..."."""
        self.count += 1
        self.first = self.first or f"{self.place} {number} {reason}"

    def notes(self) -> list[str]:
        """Return "2 rows refused: line 318 has 57 fields under 56 names", or nothing."""
        plural = "" if self.count == 1 else "s"
        return [f"{self.count:,} {self.what}{plural} refused: {self.first}"] if self.count else []


class Row(NamedTuple):
    """One row: the line it starts on (from 1) and its cells."""

    line: int
    fields: list[str]


class Rows:
    """Iterates over the complete rows of a width; see the module for its use.

    Quotes are read as Excel's dialect has them. A row with an open quote goes on over the
    next lines, unless one of these is by itself a row of the right width: then the quote is
    damage, and the row that opened it is refused.
    """

    def __init__(
        self,
        lines: Lines,
        width: int = 0,
        refused: Refusals | None = None,
        delimiter: str = ",",
        short: int = 0,
    ) -> None:
        """Read rows of `width` fields; 0 takes the first row's width.

        Rows of `short` fields end before the last columns: these are empty.
        """
        self.width, self._short = width, short
        self._heads: list[list[str]] = []
        self._columns: list[str] = []  # the names of all heads
        self.head = 0
        self._delimiter = delimiter
        self.refused = refused or Refusals()
        self._lines = lines
        self._last: Line | None = None
        self._start = lines.position()

    def expect_heads(self, heads: Sequence[Sequence[str]], head: int) -> None:
        """Take the last of several `heads` above a row for its names, at first that number `head`.

        A row then has a field for each name of all of them.
        """
        self._heads, self.head = [list(names) for names in heads], head
        self._columns = list(dict.fromkeys(chain(*heads)))

    @property
    def last_text(self) -> str:
        """The text of the last complete row's last line, refused or not; empty for none."""
        return self._last.text if self._last else ""

    def position(self) -> Position:
        """Return the position to resume from: after the last complete row, refused or not."""
        return self._lines.position(self._last) if self._last else self._start

    def notes(self) -> list[str]:
        """Return notes for the user; empty without problems."""
        return [*self._lines.notes(), *self.refused.notes()]

    def __iter__(self) -> Iterator[Row]:
        """Yield every complete row of the right width once, in order; blank lines are none."""
        pending: list[Line] = []
        for line in self._lines:
            closed = line.text.count('"') % 2 == 0
            if not pending and closed:
                yield from self._row([line])
                continue
            pending.append(line)
            if not closed and len(pending) > 1:  # the quote that was open is closed
                yield from self._row(pending)
                pending = []
            # A quoted cell may contain newlines; an unclosed quote must not consume the file.
            elif (
                (closed and self._fits(line))
                or len(pending) > 64
                or pending[-1].end - pending[0].start > MAX_LINE_BYTES
            ):
                # The lines after the one that opened a quote are read on their own.
                self.refused.add(pending[0].number, "opens a quote that it does not close")
                self._last = pending[0]
                for next_line in pending[1:]:
                    yield from self._row([next_line])
                pending = []

    def _row(self, lines: list[Line]) -> Iterator[Row]:
        self._last = lines[-1]
        texts = [f"{line.text}\n" for line in lines]
        if len(texts) == 1 and texts[0].isspace():
            return
        try:
            (fields,) = csv.reader(texts, delimiter=self._delimiter)
        except (csv.Error, ValueError) as error:
            self.refused.add(lines[0].number, f"is not comma-separated text ({error})")
            return
        self.width = self.width or len(fields)
        if len(fields) == self._short:
            fields += [""] * (self.width - len(fields))
        if self._heads and (names := [field.strip() for field in fields]) in self._heads:
            self.head = self._heads.index(names)
            return
        width = len(self._heads[self.head]) if self._heads else self.width
        if len(fields) != width:
            problem = f"has {quantity(len(fields), 'field')} under {quantity(width, 'name')}"
            self.refused.add(lines[0].number, problem)
            return
        if self._heads:
            cells = dict(zip(self._heads[self.head], fields, strict=True))
            fields = [cells.get(name, "") for name in self._columns]
        yield Row(lines[0].number, fields)

    def _fits(self, line: Line) -> bool:
        try:
            rows = csv.reader([line.text], delimiter=self._delimiter)
            widths = {self.width, *map(len, self._heads)}
            return any(len(row) in widths and len(row) > 1 for row in rows)
        except csv.Error:
            return False
