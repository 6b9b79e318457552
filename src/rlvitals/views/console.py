"""Where text goes: how wide, and whether in colour."""

import os
import shutil
import sys
from io import StringIO
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Table

NARROWEST, WIDEST = 40, 100  # columns: narrower cannot be laid out, wider is hard to read
PLAIN = 88  # columns where there is no terminal to ask: a file, a pipe


def console(file: TextIO | None = None, width: int | None = None) -> Console:
    """Open a console: colour on a terminal alone, unless NO_COLOR or FORCE_COLOR says otherwise."""
    file = file or sys.stdout
    terminal = file.isatty()
    forced = bool(os.environ.get("FORCE_COLOR"))
    coloured = (terminal or forced) and not os.environ.get("NO_COLOR")
    return Console(
        file=file,
        width=width or _width(terminal=terminal),
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
    """Write to stdout: in colour for a person at a terminal, else without trailing blanks."""
    out = console(width=width)
    if out.no_color:
        out.file.write(f"{plain(renderable, width=out.width)}\n")
    else:
        out.print(renderable)


def _width(*, terminal: bool) -> int:
    if not terminal and "COLUMNS" not in os.environ:
        return PLAIN
    return max(NARROWEST, min(shutil.get_terminal_size((PLAIN, 24)).columns, WIDEST))


def plain(renderable: RenderableType, width: int = PLAIN) -> str:
    """Render to text without colour and without trailing blanks."""
    file = StringIO()
    out = Console(
        file=file, width=width, color_system=None, force_jupyter=False, markup=False, emoji=False,
        highlight=False, force_terminal=False, legacy_windows=False,
    )  # fmt: skip
    out.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def grid(label: int) -> Table:
    """Begin a grid of labels, in `label` columns, and texts beside them."""
    made = Table.grid(padding=(0, 1, 0, 0))
    made.add_column(width=label, no_wrap=True)
    made.add_column(overflow="fold")
    return made
