"""Render a manual page, written in a small subset of Markdown, for the terminal."""

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rlvitals.errors import harmless

INLINE_MARKUP = re.compile(r"(\*\*[^*]+\*\*|`[^`]+`)")


def page(markdown: str) -> RenderableType:
    """Render headings, paragraphs, lists and indented formulas."""
    return Group(*(_block(kind, text) for kind, text in blocks(markdown)))


def blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of each block; the lines of a paragraph or item are joined."""
    kind, lines = "", list[str]()
    for line in [*markdown.splitlines(), ""]:
        mark = re.match(r"(#+ |- |    (?=\S))", line)
        starts = bool(mark) and not (mark and mark[0] == "    " and kind == "item")
        ends = starts or not line.strip() or kind.startswith("heading")
        if ends and lines:
            yield kind, " ".join(lines)
            kind, lines = "", []
        if not line.strip():
            yield "blank", ""
        elif starts and mark:
            kinds = {"- ": "item", "    ": "formula"}
            kind = kinds.get(mark[0], f"heading {len(mark[0]) - 1}")
            lines = [line[len(mark[0]) :].strip()]
        else:
            kind = kind or "paragraph"
            lines.append(line.strip())


def _block(kind: str, text: str) -> RenderableType:
    if kind.startswith("heading"):
        style = "bold reverse" if kind == "heading 1" else "bold"
        return Text(f" {text} " if kind == "heading 1" else harmless(text), style)
    if kind == "item":
        item = Table.grid(padding=(0, 1, 0, 0))
        item.add_row(Text("•"), spans(text))
        return Padding(item, (0, 0, 0, 2), expand=False)
    if kind == "formula":
        return Padding(Text(harmless(text), "cyan"), (0, 0, 0, 4), expand=False)
    return spans(text)


def spans(text: str) -> Text:
    """Render **bold** and `code`."""
    line = Text()
    for piece in INLINE_MARKUP.split(text):
        if piece.startswith("**") and len(piece) > 4:  # the marks themselves
            line.append(harmless(piece[2:-2]), "bold")
        elif piece.startswith("`") and len(piece) > 2:  # the same
            line.append(harmless(piece[1:-1]), "cyan")
        else:
            line.append(harmless(piece))
    return line
