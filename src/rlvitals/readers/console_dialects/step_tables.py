"""Tables of text with a step a row: Markdown, as people paste them, and columns set by spaces.

`| Step | reward | kl |`            `Step   reward   kl`
`|-----:|-------:|---:|`            `10     0.31     0.002`
`| 10 | **0.31** | 0.002 |`         `20     0.35     0.003`

The bars at both ends may be missing, as where a notebook's table is pasted into an issue.
A heading without a number, a step-like column and a measure among its cells, and rows with as many
cells. A range of steps, "101-150", counts as its end; a cell that holds no number is missing.
"""

import re
from typing import ClassVar

from rlvitals.readers.console_dialects.dialect import Dialect, Page, Pair, number
from rlvitals.readers.formats import column_guess
from rlvitals.readers.formats.columns import to_step
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(slots=True)
class Tables:
    """The heading of the table that is being read."""

    max_line_length: ClassVar[int] = 2000  # characters
    max_name_length: ClassVar[int] = 60  # characters: a longer cell is prose
    max_other_lines: ClassVar[int] = 3  # between two rows: "Saving the model..."
    open: bool = False
    names: tuple[str, ...] = ()
    other_lines: int = 0  # since the last row
    last: int = 0  # its step
    step: int = 0  # index of the column
    piped: bool = False

    def take(self, page: Page) -> None:
        """Read a heading, a rule below it or a row; a few other lines end the table."""
        text = page.text.strip().removeprefix("> ")  # as issues quote
        if len(text) > self.max_line_length:
            self.open = False
            return
        if self.open and re.fullmatch(r"[\s|:+─━┼╪=.…-]+", text):  # a rule, or rows left out
            return
        piped = text.startswith("|") and text.endswith("|")
        if piped:
            cells = text[1:-1].split("|")
        elif text.count(" | ") >= 2:  # a table of a web page, as GitHub pastes it
            cells, piped = text.split("|"), True
        else:
            cells = re.split(r" {2,}", text)
        cells = [re.sub(r"[*`~]", "", cell).strip() for cell in cells]
        if self.open and not piped and len(cells) != len(self.names):
            cells = text.split()
        if self.open and piped == self.piped and self._row(page, cells):
            return
        self.other_lines += 1
        is_open, self.open = self.open and self.other_lines <= self.max_other_lines, False
        names = tuple(_name(cell) for cell in cells)
        steps = column_guess.step_keys(names)
        is_heading = bool(
            steps
            and all(len(name) <= self.max_name_length and number(name) is None for name in names)
            and any(map(column_guess.is_measure_of_row, names))
        )
        if is_heading:
            self.names, self.step, self.piped = names, names.index(steps[0]), piped
            self.open, self.other_lines, self.last = True, 0, -1
        self.open |= is_open

    def _row(self, page: Page, cells: list[str]) -> bool:
        if len(cells) != len(self.names):
            return False
        step_cell = re.sub(r"^\d{1,15} ?[-–] ?(\d{1,15})$", r"\1", cells[self.step])
        value = number(step_cell.partition("/")[0])  # "12/500"
        step = to_step(value)
        if step is None or (self.other_lines and step <= self.last):
            return False
        self.other_lines, self.last = 0, step
        pairs: list[Pair] = [
            (name, value)
            for name, cell in zip(self.names, cells, strict=True)
            if name and name != self.names[self.step] and (value := number(cell)) is not None
        ]
        if pairs:
            unit = column_guess.step_unit(self.names[self.step])
            page.add_regular(step, pairs, unit, page.time)
        return True


def _name(cell: str) -> str:
    """Return a column's name as loggers write it: "Mean KL" is "mean_kl"."""
    name = re.sub(r"[^\x21-\x7e ]+", " ", cell).strip()
    name = re.sub(r"\s*\([^()]*\)$", "", name)  # the unit
    name = re.sub(r"\s*/\s*", "/", name)  # as notebooks head their columns
    name = re.sub(r"^step\b.*", "step", name, flags=re.IGNORECASE)
    return name if "/" in name else re.sub(r"[\s_-]+", "_", name).lower()


DIALECT = Dialect(
    "tables",
    "tables of text with a step a row",
    # Columns two spaces apart are looked for by the first of them.
    ("|", "   ", "tep  ", "poch  ", "isode  ", "ation  ", "pdate  "),
    Tables,
)
