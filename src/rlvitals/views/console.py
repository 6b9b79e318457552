"""Print to the console with the right width and colour."""

import os
import shutil
import sys
from io import StringIO
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Table

COLUMN_GAP = 2  # between the columns of a table
DEFAULT_WIDTH = 88  # columns of a file or a pipe


def console(file: TextIO | None = None, width: int | None = None) -> Console:
    """Return a console: coloured on a terminal unless NO_COLOR or FORCE_COLOR overrides it."""
    file = file or sys.stdout
    terminal = file.isatty()
    forced = bool(os.environ.get("FORCE_COLOR"))
    coloured = (terminal or forced) and not os.environ.get("NO_COLOR")
    if not width and not terminal and "COLUMNS" not in os.environ:
        width = DEFAULT_WIDTH
    elif not width:
        # Tables do not fit in fewer than 40 columns, lines are hard to read beyond 100.
        width = max(40, min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, 100))
    return Console(
        file=file,
        width=width,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        no_color=not coloured,
        markup=False,
        highlight=False,
        emoji=False,
        force_jupyter=False,
        legacy_windows=False,
    )


def emit(renderable: RenderableType, width: int | None = None) -> None:
    """Print to stdout: coloured on a terminal, else as text without trailing spaces."""
    out = console(width=width)
    if out.no_color:
        out.file.write(f"{plain(renderable, width=out.width)}\n")
    else:
        out.print(renderable)


def plain(renderable: RenderableType, width: int = DEFAULT_WIDTH) -> str:
    """Render to text without colour and trailing spaces."""
    file = StringIO()
    out = Console(
        file=file, width=width, color_system=None, force_jupyter=False, markup=False, emoji=False,
        highlight=False, force_terminal=False, legacy_windows=False,
    )  # fmt: skip
    out.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def grid(label: int) -> Table:
    """Return an empty grid with a label column of width `label` and a text column."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=label, no_wrap=True)
    table.add_column(overflow="fold")
    return table
