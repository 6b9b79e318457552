"""Make the elements of a page: sections, tables, charts, lists and rule pages."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter

from rlvitals.errors import quantity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.views.charts.chart import Chart
from rlvitals.views.manual_page import INLINE_MARKUP, blocks
from rlvitals.views.phrases import Line
from rlvitals.views.report.markup import Html, breakable, el, join, paragraphs
from rlvitals.views.report.page import Grid


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a run's page with its heading."""

    title: str
    inner: Html
    count: str = ""

    def laid_out(self, run: int) -> Html:
        """Return the section as HTML; `run` makes its anchor unique."""
        count = el("span", self.count, class_="count") if self.count else Html("")
        head = el("h3", join(self.title, " "), count)
        return el("section", head, self.inner, id=self.anchor(run))

    def anchor(self, run: int) -> str:
        """Return the anchor that a link uses."""
        return f"run{run}-{self.title.lower().replace(' ', '-')}"


def section(title: str, *parts: Html, count: str = "") -> Section:
    """Return a section of several parts."""
    return Section(title, join(*parts), count)


def fold(title: str, inner: Html) -> Html:
    """Return a folded block with its title."""
    return el("details", el("summary", title), inner)


def chart(drawing: Chart | None) -> Html:
    """Return the placeholder of a chart; empty without a chart."""
    if drawing is None:
        return Html("")
    return el(
        "div",
        class_="chart",
        data_chart=drawing.name,
        style=f"--tall:{drawing.tall}px" if drawing.tall else None,
    )


def details(lines: Sequence[Line]) -> Html:
    """Return a list of labelled lines, each label once."""
    rows = []
    for label, group in groupby(lines, key=lambda line: line.label):
        rows += [el("dt", label), *(el("dd", line.text) for line in group)]
    return el("dl", *rows, class_="facts")


def doc(text: str) -> Html:
    """Return a rule's page as HTML: headings, paragraphs, lists, formulas."""
    blocks_drawn: list[Html] = []
    for kind, group in groupby(blocks(text.strip()), key=itemgetter(0)):
        name = {"item": "li", "formula": "pre", "paragraph": "p"}.get(kind)
        if kind.startswith("heading"):
            name = "h5"
        if name:
            drawn = [el(name, *_spans(items)) for _, items in group]
            blocks_drawn += [el("ul", *drawn)] if name == "li" else drawn
    return el("div", *blocks_drawn, class_="doc")


def _spans(text: str) -> Iterator[Html]:
    for piece in INLINE_MARKUP.split(text):
        if piece.startswith("**"):
            yield el("strong", piece.strip("*"))
        elif piece.startswith("`"):
            yield el("code", piece.strip("`"))
        else:
            yield join(piece)


def named_table(name: str, grid: Grid) -> Html:
    """Return a table with its name; a long list is folded."""
    is_long = len(grid.rows) > 12 and not grid.heads  # longer lists are folded
    summary = el("summary", el("code", name), join(f" · {quantity(len(grid.rows), 'row')}"))
    return el("details", summary, table(grid), open=not is_long)


def table(grid: Grid, *, stacked: bool = False) -> Html:
    """Return a table as HTML; on a narrow screen a `stacked` one has a block for each row."""
    head = el("thead", el("tr", *(el("th", breakable(text), scope="col") for text in grid.heads)))
    heads = grid.heads if stacked else ()
    lines = (
        el("tr", *(_cell(text, name) for text, name in zip_longest(row, heads)))
        for row in grid.rows
    )
    kind = "stacked" if stacked else None
    rows = el("table", *([head] if grid.heads else []), el("tbody", *lines), class_=kind)
    note = el("p", grid.note, class_="table-note") if grid.note else Html("")
    return join(note, el("div", rows, class_="scroll", tabindex="0") if grid.rows else Html(""))


def _cell(text: str, head: str | None) -> Html:
    if re.fullmatch(r"[+−-]?[\d.,]+(e[+-]?\d+)?( %| x| [kMG]?B)?", text):
        return el("td", text, class_="number", data_head=head)
    if len(text) > 60 or "\n" in text:  # set as a paragraph
        return el("td", el("div", paragraphs(text), class_="text", tabindex="0"), data_head=head)
    return el("td", breakable(text), data_head=head)
