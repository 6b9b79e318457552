"""Render a table of runs with a reason each, beside the run or on lines of its own below it."""

import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.views.console import COLUMN_GAP


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """The cells before a run's name, the name, and the reason."""

    cells: Sequence[Text]
    name: str
    reason: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class ReasonTable:
    """Rows whose names and reasons are wrapped, never cut; `heads` are those of the cells."""

    heads: Sequence[Text]
    rows: Sequence[ReasonRow]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, fitted to the available width."""
        columns = zip(*(row.cells for row in self.rows), strict=True)
        fixed = [
            max(cell_len(head.plain), *(cell_len(cell.plain) for cell in cells))
            for head, cells in zip(self.heads, columns, strict=True)
        ]
        room = options.max_width - sum(fixed) - len(fixed) * COLUMN_GAP
        name = min(max(cell_len("run"), *(cell_len(row.name) for row in self.rows)), room)
        longest = max(cell_len("why"), *(cell_len(row.reason) for row in self.rows))
        reason_width = room - name - COLUMN_GAP
        if reason_width >= min(longest, 40):  # narrower, it takes more lines than one below
            yield self._grid([*fixed, name, min(longest, reason_width)], self.rows, head=True)
            return
        yield self._grid([*fixed, name], [], head=True)
        for row in self.rows:
            yield self._grid([*fixed, name], [row], head=False)
            if row.reason:
                yield Padding(Text(row.reason, row.style or "dim"), (0, 0, 0, COLUMN_GAP))

    def _grid(self, widths: Sequence[int], rows: Sequence[ReasonRow], *, head: bool) -> Table:
        """Return a table of the given columns, of which the last may be the reasons."""
        gap = (0, COLUMN_GAP, 0, 0)
        grid = Table(box=None, padding=gap, pad_edge=False, header_style="dim", show_header=head)
        for title, width in zip((*self.heads, Text("run"), Text("why")), widths, strict=False):
            grid.add_column(title, no_wrap=title.plain != "why", width=width)
        for row in rows:
            name = Text(break_name(row.name, widths[len(self.heads)]))
            cells = (*row.cells, name, Text(row.reason))
            grid.add_row(*cells[: len(widths)], style=row.style)
        return grid


def break_name(name: str, width: int) -> str:
    """Wrap a name between folders, and within a folder that is too long."""
    lines = [""]
    for piece in re.findall(r"[^/]*/|[^/]+", name):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1:] = chop_cells(lines[-1] + piece, width)
    return "\n".join(lines)
