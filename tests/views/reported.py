"""Report pages of the runs that are drawn, and what a page says, read back out of it."""

import base64
import json
from html.parser import HTMLParser

import numpy as np
from drawn import subject

from rlvitals.diagnosis.status import standing
from rlvitals.diagnosis.training_summary import summary
from rlvitals.storage.events import Event
from rlvitals.types import Measured, Series, Table, Text, Trace
from rlvitals.views.report import contents, html
from rlvitals.views.report.page import Subject

NOW = 1.7e9
EVIL = "</script></textarea><img src=x onerror=\"document.title='owned'\"> & <!-- '\u2028\u202e\x1b"
INLINE = {"b", "code", "span", "strong", "a", "output", "wbr"}


def told(name, facts=None, events=()):
    """A run as the command hands it in."""
    run = subject(name)
    return Subject(
        summary(run.label, run.found), standing(run.label, run.found), facts or {}, tuple(events)
    )


def judged(label, diagnosis, facts=None, events=()):
    return Subject(
        summary(label, diagnosis), standing(label, diagnosis), facts or {}, tuple(events)
    )


def pages(*subjects):
    return [contents.page(run, number) for number, run in enumerate(subjects)]


def written(*subjects):
    return html.document(pages(*subjects), NOW)


def evil(trace):
    """What a log may hold beside its numbers, none of it kind."""
    steps = np.array([100, 100])
    columns = {"prompt": [EVIL, "two\nlines"], "completion": [EVIL * 3, None], EVIL: [0.5, np.nan]}
    return {
        "tables": {EVIL: Table(steps, columns)},
        "texts": {EVIL: [Text(100, NOW, EVIL)]},
        "settings": {**trace.settings, EVIL: EVIL},
        "notes": (EVIL,),
        "unmapped": (EVIL,),
    }


EVIL_FACTS = {"git": {EVIL: EVIL}, EVIL: EVIL}
EVIL_EVENTS = (Event(EVIL, NOW, 5, {EVIL: EVIL}),)


def long_run(points=1_000_000):
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, points)
    values[380_100] = 500.0  # a spike of one point
    values[points // 2 : points // 2 + 10] = np.nan
    values[-5], values[-6] = np.inf, -np.inf
    series = Series(np.arange(points) * 7, np.full(points, np.nan), values)
    measured = {"optimiser/loss": Measured("test", "loss", "loss")}
    return Trace({"optimiser/loss": series}, measured, name="long")


class Elements(HTMLParser):
    """The elements of a page, its texts, and its embedded data."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.lines, self.stack, self.raw = [], [""], [], {}
        self.manual = None  # how deep a rule's own page lies: it is the manual's, and not ours
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.stack.append(tag)
        if ("class", "doc") in attrs:
            self.manual = len(self.stack)
        if tag not in INLINE:
            self.lines.append("")

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass
        if self.manual is not None and len(self.stack) < self.manual:
            self.manual = None
        if tag not in INLINE:
            self.lines.append("")

    def handle_data(self, data):
        if self.stack and self.stack[-1] in {"script", "style"}:
            self.raw.setdefault(self.stack[-1], []).append(data)
        elif self.manual is None:
            self.lines[-1] += data

    @property
    def text(self):
        return [line.strip() for line in self.lines if line.strip()]

    @property
    def data(self):
        return json.loads(self.raw["script"][0])


def unpacked(column):
    """Read a column as the page's script does."""
    packed, values = column["steps"], column["values"]
    if "n" in packed:
        steps = packed["at"] + packed["by"] * np.arange(packed["n"])
    else:
        kind = {1: "u1", 2: "<u2", 4: "<u4", 8: "<f8"}[packed["w"]]
        steps = packed["at"] + np.append(0, np.frombuffer(_bytes(packed), kind).cumsum(dtype="f8"))
    return steps.astype(np.int64), np.frombuffer(_bytes(values), f"<f{values['f']}").astype("f8")


def _bytes(packed):
    return base64.b64decode(packed["b"])


def chart(data, document):
    """What one chart holds, short enough to be looked at."""
    members = {key: document[key] for key in ("name", "title", "unit", "scale", "limits", "marks")}
    return {**members, "curves": [_curve(data, curve) for curve in document["curves"]]}


def _curve(data, document):
    steps, values = unpacked(data["columns"][document["column"]])
    finite = values[np.isfinite(values)]
    ends = [float(f"{value:.4g}") for value in (finite.min(), finite.max())] if len(finite) else []
    return {
        "label": document["label"],
        "points": document["points"],
        "told": len(steps),
        "steps": [int(steps[0]), int(steps[-1])],
        "range": ends,
        "bad": document["bad"],
        "averaged": document["average"] is not None,
    }
