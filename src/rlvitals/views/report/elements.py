"""What the parts of a page are made of: headings, tables, charts, lists, rules' own pages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rlvitals.views.charts.chart import Chart
from rlvitals.views.manual_page import SPANS, blocks
from rlvitals.views.phrases import Line
from rlvitals.views.report.markup import Html, el, joined, paragraphs
from rlvitals.views.report.page import Grid

NUMBER = re.compile(r"[+−-]?[\d.,]+(e[+-]?\d+)?( %| x| [kMG]?B)?")
LONG_TEXT = 60  # characters of a cell, from which on it is one to be read
OPEN_ROWS = 12  # of a list of names and values that is shown at once; a longer one is unfolded


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a run's page, under its own heading."""

    title: str
    inner: Html
    count: str = ""

    def laid_out(self, run: int) -> Html:
        """Set it under its heading; `run` tells its anchor from another run's."""
        told = el("span", self.count, class_="count") if self.count else Html("")
        head = el("h3", joined(self.title, " "), told)
        return el("section", head, self.inner, id=self.anchor(run))

    def anchor(self, run: int) -> str:
        """Return what a link to it names."""
        return f"run{run}-{self.title.lower().replace(' ', '-')}"


def section(title: str, *parts: Html, count: str = "") -> Section:
    """Set parts under a heading."""
    return Section(title, joined(*parts), count)


def folded(title: str, inner: Html) -> Html:
    """Fold something under its title."""
    return el("details", el("summary", title), inner)


def chart(one: Chart | None) -> Html:
    """Leave the place of a chart; nothing for none."""
    if one is None:
        return Html("")
    return el("div", class_="chart", data_chart=one.name, style=_tall(one))


def _tall(chart: Chart) -> str | None:
    return f"--tall:{chart.tall}px" if chart.tall else None


def details(lines: Sequence[Line]) -> Html:
    """List labelled lines, each label once."""
    rows = []
    for label, group in groupby(lines, key=lambda line: line.label):
        rows += [el("dt", label), *(el("dd", line.text) for line in group)]
    return el("dl", *rows, class_="facts")


def doc(text: str) -> Html:
    """Set a rule's page: headings, paragraphs, lists, formulas."""
    parts: list[Html] = []
    for kind, found in blocks(text.strip()):
        name = {"item": "li", "formula": "pre", "paragraph": "p"}.get(kind)
        if kind.startswith("heading"):
            name = "h5"
        if name:
            parts.append(el(name, *_spans(found)))
    return el("div", *parts, class_="doc")


def _spans(text: str) -> Iterator[Html]:
    for piece in SPANS.split(text):
        if piece.startswith("**"):
            yield el("strong", piece.strip("*"))
        elif piece.startswith("`"):
            yield el("code", piece.strip("`"))
        else:
            yield joined(piece)


def part(name: str, told: Grid) -> Html:
    """Set a table under its name; a long list is folded."""
    many = len(told.rows) > OPEN_ROWS and not told.heads
    summary = el("summary", el("code", name), joined(f" · {len(told.rows)} rows"))
    return el("details", summary, table(told), open=not many)


def table(told: Grid) -> Html:
    """Set a table."""
    head = el("thead", el("tr", *(el("th", text, scope="col") for text in told.heads)))
    body = el("tbody", *(el("tr", *map(_cell, row)) for row in told.rows))
    rows = el("table", *([head] if told.heads else []), body)
    note = el("p", told.note, class_="table-note") if told.note else Html("")
    return joined(note, el("div", rows, class_="scroll") if told.rows else Html(""))


def _cell(text: str) -> Html:
    if NUMBER.fullmatch(text):
        return el("td", text, class_="number")
    if len(text) > LONG_TEXT or "\n" in text:
        return el("td", el("div", paragraphs(text), class_="text"))
    return el("td", text)
