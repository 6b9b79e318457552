"""Define the contents of a report's page, independent of its layout."""

from collections.abc import Mapping
from dataclasses import field

from rlvitals.diagnosis.status import Standing
from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.training_summary import Summary
from rlvitals.diagnosis.verdict import Verdict
from rlvitals.errors import VitalsError
from rlvitals.rollouts.sample import Sample
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.events import Event
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart, Packed
from rlvitals.views.phrases import Line


@dataclass(frozen=True, slots=True)
class Proof:
    """A few rollouts that show a finding, each with its number in the run."""

    rule: str
    samples: tuple[tuple[int, Sample], ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """A diagnosed run with its summary, facts and events."""

    summary: Summary
    standing: Standing
    facts: Mapping[str, object]  # recorded facts on code, packages and machine
    events: tuple[Event, ...] = ()
    others: Mapping[str, Series] = field(default_factory=dict)  # unmapped series by key
    proofs: tuple[Proof, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """A run that cannot be read."""

    name: str
    error: VitalsError


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with its evidence and the findings it explains."""

    rule: str
    severity: Severity
    summary: str
    when: str
    chart: Chart | None
    lines: tuple[Line, ...]  # limit, evidence, counter-evidence, likely causes
    tries: tuple[str, ...]
    doc: str  # the rule's page
    symptoms: tuple["Found", ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """A logged metric."""

    name: str
    chart: Chart
    logged: str  # key and measurement
    meaning: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a row of heads, and rows of cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """Metrics or settings to add, and the rules they enable."""

    names: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The rules that could not judge with reasons, the clear ones, and notes on the reading."""

    coverage: str
    wishes: tuple[Wish, ...]
    reasons: tuple[Line, ...]  # reason, and its rules
    clear: tuple[str, ...]
    notes: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """The comparison of several runs, and the charts that hold the curves of all of them."""

    headline: str
    explanation: str
    labels: tuple[str, ...]  # of the groups, by the `part` of a chart's line
    groups: Grid
    outcome: Chart | None
    bands: Mapping[str, list[Packed]]  # by chart
    healthy: Mapping[str, list[float | None] | None]  # by chart
    settings: Grid
    measures: tuple[tuple[str, tuple[Measure, ...]], ...]  # by kind
    unit: str  # of the x-axis
    scale: float  # units for each place of a point

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, the outcome's first."""
        charts = [measure.chart for _, group in self.measures for measure in group]
        return tuple(charts) if self.outcome is None else (self.outcome, *charts)


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of one run's page."""

    name: str
    trace: Trace
    verdict: Verdict
    counts: str
    headline: str
    tldr: tuple[Sentence, ...]
    numbers: tuple[Line, ...]
    changes: Grid
    outcome: Chart | None
    levels: tuple[str, str]  # best and last value of the outcome
    findings: tuple[Found, ...]
    proofs: tuple[Proof, ...]
    measures: tuple[tuple[str, tuple[Measure, ...]], ...]  # by kind
    ranks: tuple[Chart, ...]  # of a run of several ranks
    settings: Grid
    environment: tuple[tuple[str, Grid], ...]
    events: Grid
    checkpoints: Grid
    tables: tuple[tuple[str, Grid], ...]
    texts: tuple[tuple[str, Grid], ...]
    unjudged: Unjudged
