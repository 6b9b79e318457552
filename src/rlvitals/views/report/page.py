"""The nouns of a report: what each part of the page says, before it is laid out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlvitals.diagnosis.status import Standing
from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.training_summary import Summary
from rlvitals.diagnosis.verdict import Verdict
from rlvitals.errors import VitalsError
from rlvitals.rules.rule import Severity
from rlvitals.storage.events import Event
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart
from rlvitals.views.phrases import Line


@dataclass(frozen=True, slots=True)
class Subject:
    """A run as it is handed in: judged, summed up, and what lies beside its numbers."""

    summary: Summary
    standing: Standing
    facts: Mapping[str, object]  # of its code, packages and machine, as they were recorded
    events: tuple[Event, ...] = ()
    others: Mapping[str, Series] = field(default_factory=dict)  # under keys that no table knows


@dataclass(frozen=True, slots=True)
class Unread:
    """A run of several that cannot be read."""

    name: str
    error: VitalsError


@dataclass(frozen=True, slots=True)
class Found:
    """One finding with its evidence, and the findings that it explains."""

    rule: str
    severity: Severity
    summary: str
    when: str
    chart: Chart | None
    lines: tuple[Line, ...]  # limit, evidence, what speaks against it, likely causes
    tries: tuple[str, ...]
    doc: str  # the rule's own page
    symptoms: tuple["Found", ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric, as it was logged."""

    name: str
    chart: Chart
    logged: str  # under which key, and how it is measured
    meaning: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a row of heads, and rows of cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to log, or to say, and which rules could judge then."""

    names: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unjudged:
    """What could not be judged and why; what was clear; how the log was read."""

    coverage: str
    wishes: tuple[Wish, ...]
    reasons: tuple[Line, ...]  # why, and the rules that wait for it
    clear: tuple[str, ...]
    notes: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that is told of one run."""

    name: str
    trace: Trace
    verdict: Verdict
    counts: str
    headline: str
    tldr: tuple[Sentence, ...]
    numbers: tuple[Line, ...]
    changes: Grid
    outcome: Chart | None
    levels: tuple[str, str]  # of the outcome: its best and its last
    findings: tuple[Found, ...]
    measures: tuple[tuple[str, tuple[Measure, ...]], ...]  # by kind
    settings: Grid
    environment: tuple[tuple[str, Grid], ...]
    events: Grid
    checkpoints: Grid
    tables: tuple[tuple[str, Grid], ...]
    texts: tuple[tuple[str, Grid], ...]
    unjudged: Unjudged
