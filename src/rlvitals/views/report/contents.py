"""Collect the contents of a run's page, without layout."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import isfinite

from rlvitals import metrics
from rlvitals.diagnosis.coverage import unlocks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.diagnosis.status import Change
from rlvitals.rules.rule import Finding
from rlvitals.types import Series
from rlvitals.views import phrases
from rlvitals.views.charts.chart import Chart
from rlvitals.views.figures import figure, rank_bands
from rlvitals.views.figures.panels import RUN_ORIGIN, annotate, natural
from rlvitals.views.figures.policy import CLIP_FRACTIONS, ENTROPY_METRICS
from rlvitals.views.phrases import Line
from rlvitals.views.report import tables
from rlvitals.views.report.page import Found, Grid, Measure, Page, Subject, Unjudged, Wish
from rlvitals.views.summary import CONVERGENCE_TEXTS, GOAL_MARKS

LINEAR_METRICS = tuple(
    metric.name for metric in (*CLIP_FRACTIONS, *ENTROPY_METRICS)
)  # values near zero are zero
TALL_CHART_PIXELS = 200  # of charts of the outcome and of findings
KIND_TITLES: Mapping[str, str] = {
    "outcome": "Outcome: what it is for",
    "health": "Health: how it learns",
    "performance": "Performance: how fast",
    "setting": "Settings that change",
    "": "Others",
}
MAX_UNMAPPED_CHARTS = 200


def page(subject: Subject, number: int) -> Page:
    """Return the page of a run; `number` makes its charts' names unique."""
    diagnosis = subject.summary.found
    drawer = _Drawer(figure.Subject(subject.summary.name, diagnosis), number)
    outcome = drawer.metric(subject.summary.outcome.metric, TALL_CHART_PIXELS)
    unmapped = subject.others
    unmapped_measures: list[tuple[str, tuple[Measure, ...]]] = []
    keys = sorted(unmapped, key=natural)[:MAX_UNMAPPED_CHARTS]
    logged = "not a known name; --map KEY=METRIC assigns one"
    measures = tuple(Measure(key, drawer.key_chart(key, unmapped[key]), logged, "") for key in keys)
    if measures:
        cut = f": {MAX_UNMAPPED_CHARTS} of {len(unmapped)}" if len(keys) < len(unmapped) else ""
        unmapped_measures.append((f"Unknown names: shown, not judged{cut}", measures))
    return Page(
        name=subject.summary.name,
        trace=diagnosis.trace,
        verdict=diagnosis.verdict,
        counts=phrases.counts(diagnosis),
        headline=" · ".join(
            filter(None, (phrases.headline(diagnosis), phrases.liveness(diagnosis)))
        ),
        tldr=diagnosis.tldr,
        numbers=tuple(_numbers(subject)),
        changes=changes(subject.standing.changes[:12]),
        outcome=outcome,
        levels=_levels(outcome),
        findings=tuple(_finding(case, drawer) for case in diagnosis.cases),
        proofs=subject.proofs,
        measures=(*_measures(drawer), *unmapped_measures),
        ranks=tuple(map(drawer.panel, rank_bands.panels((drawer.subject,)))),
        settings=tables.settings(diagnosis.trace),
        environment=tuple(tables.environment(subject.facts)),
        events=tables.events(subject.events, diagnosis.trace),
        checkpoints=tables.checkpoints(subject.standing.checkpoints),
        tables=tuple(tables.rows(diagnosis.trace)),
        texts=tuple(tables.texts(diagnosis.trace)),
        unjudged=_coverage(diagnosis),
    )


class _Drawer:
    """Make the charts of one run with unique names."""

    def __init__(self, subject: figure.Subject, number: int) -> None:
        self.subject = subject
        self.trace = subject.trace
        self.names = (f"run{number}-chart{index}" for index in count())

    def metric(self, name: str, tall: int = 0) -> Chart | None:
        """Draw a metric with its limits and findings; None if it is not logged."""
        series = self.trace.get(name)
        if series is None or not len(series):
            return None
        catalogued = metrics.find(name)
        bounded = [catalogued] if catalogued is not None and not catalogued.family else []
        unit = catalogued.unit if catalogued else ""
        lines = (figure.Line(metric_title(name), name, series),)
        panel = figure.Panel(metric_title(name), unit, lines, linear=name in LINEAR_METRICS)
        return self._chart(annotate((self.subject,), panel, bounded), tall)

    def key_chart(self, key: str, series: Series) -> Chart:
        """Draw an unmapped series under its key."""
        return self._chart(figure.Panel(key, "", (figure.Line(key, key, series),)), 0)

    def finding(self, case: Case) -> Chart | None:
        """Draw the curve of a finding with its limit."""
        finding = case.finding
        curve = phrases.curve(finding, self.trace)
        if curve is None:
            return None
        is_metric = finding.curve is None
        metric = metrics.find(curve.name) if is_metric else None
        title = metric_title(curve.name) if is_metric else curve.name
        return self._chart(
            figure.Panel(
                title,
                metric.unit if metric else "",
                (figure.Line(title, curve.name, curve.series),),
                linear=curve.name in LINEAR_METRICS,
                limits=tuple(_limits(finding, curve.series)),
                marks=(
                    figure.Mark(finding.began, finding.ended, case.rule.name, finding.severity),
                ),
            ),
            TALL_CHART_PIXELS,
        )

    def panel(self, panel: figure.Panel) -> Chart:
        """Draw a panel of a figure."""
        return self._chart(panel, TALL_CHART_PIXELS)

    def _chart(self, panel: figure.Panel, tall: int) -> Chart:
        return Chart(next(self.names), panel, self.trace.first_step, self.trace.last_step, tall)


def metric_title(name: str) -> str:
    """Return a metric's title; for a family's member with its name."""
    metric = metrics.find(name)
    if metric is None:
        return name
    member = name.removeprefix(f"{metric.name}/")
    return f"{metric.title}: {member.replace('_', ' ')}" if metric.family else metric.title


def _limits(finding: Finding, series: Series) -> Iterator[figure.Limit]:
    """Yield the finding's limit if it is a level of the curve, and the observed value lies in it.

    A limit on a count, or on a share of the points, has no place on the curve's axis.
    """
    bound, values = finding.bound, series.finite().values
    if not finding.limit_on_curve or not len(values):
        return
    if not isfinite(finding.observed) or not isfinite(bound.value):
        return
    low, high = float(values.min()), float(values.max())
    margin = 0.01 * max(high - low, abs(high))  # of the curve's range, around an observed value
    if low - margin <= finding.observed <= high + margin:
        label = f"{bound.origin.removeprefix(RUN_ORIGIN)}: {phrases.number(bound.value)}"
        yield figure.Limit(bound.value, label)


def _finding(case: Case, drawer: _Drawer) -> Found:
    lines = [*phrases.details(case, drawer.trace), *phrases.consequences(case)]
    return Found(
        rule=case.rule.name,
        severity=case.finding.severity,
        summary=case.finding.summary,
        when=next(line.text for line in lines if line.label == "steps"),
        chart=drawer.finding(case),
        lines=tuple(line for line in lines if line.label not in {"steps", "try"}),
        tries=tuple(line.text for line in lines if line.label == "try"),
        doc=case.rule.doc,
        symptoms=tuple(_finding(symptom, drawer) for symptom in case.symptoms),
    )


def _levels(chart: Chart | None) -> tuple[str, str]:
    """Return the best and the last value of the outcome as text."""
    if chart is None:
        return "", ""
    line = chart.panel.lines[0]
    values = line.series.finite().values
    if not len(values):
        return "", ""
    metric = metrics.find(line.metric)
    best = values.min() if metric and metric.better == "down" else values.max()
    return phrases.number(float(best)), phrases.number(float(values[-1]))


def _numbers(subject: Subject) -> Iterator[Line]:
    """Yield the main numbers of a run."""
    summary, standing = subject.summary, subject.standing
    total = f" of {standing.total:,} ({standing.fraction or 0:.0%})" if standing.total else ""
    yield Line(summary.unit, f"{standing.step:,}{total}")
    if standing.state in ("running", "finished", "stopped", "failed", "killed"):
        yield Line("state", standing.state)
    if summary.seconds is not None:
        yield Line("trained for", phrases.duration(summary.seconds))
    if summary.loss is not None:
        ends = f"{phrases.number(summary.loss.first)} → {phrases.number(summary.loss.last)}"
        yield Line("loss", ends)
    if summary.learning_rate is not None:
        yield Line("learning rate, last", phrases.number(summary.learning_rate))
    yield Line(
        "converged", CONVERGENCE_TEXTS[summary.converged].split(" ", 1)[0] + f" {summary.converged}"
    )
    yield Line("goals", " · ".join(f"{GOAL_MARKS[goal.had]} {goal.text}" for goal in summary.goals))


def changes(changes: Iterable[Change]) -> Grid:
    """Return a table of the first and last values of metrics."""
    rows = (
        (change.metric, phrases.number(change.first), phrases.number(change.last), _share(change))
        for change in changes
    )
    return Grid(("metric", "first", "last", "change"), tuple(rows))


def _share(change: Change) -> str:
    """Return a metric's change in per cent, or as a factor if it is large."""
    if change.share is None:
        return ""
    if change.share > 4.0:  # larger changes are written as factors
        return f"{1 + change.share:.3g} x"
    return f"{100 * change.share:+.3g} %" if change.share else "none"


def _measures(drawer: _Drawer) -> Iterator[tuple[str, tuple[Measure, ...]]]:
    """Yield the metrics of each kind, sorted by name."""
    kinds: dict[str, list[Measure]] = {kind: [] for kind in KIND_TITLES}
    for name in sorted(drawer.trace.series, key=catalogue_order):
        chart = drawer.metric(name)
        if chart is None:
            continue
        metric = metrics.find(name)
        measured = drawer.trace.measured.get(name)
        logged = ": ".join(filter(None, (measured.key, measured.how))) if measured else ""
        kinds[metric.kind if metric else ""].append(
            Measure(name, chart, logged, metric.meaning if metric else "")
        )
    for kind, measures in kinds.items():
        if measures:
            yield KIND_TITLES[kind], tuple(measures)


def catalogue_order(name: str) -> tuple[int, list[tuple[bool, int, str]]]:
    """Return a sort key: the catalogue's order, then members by number."""
    metric = metrics.find(name)
    position = metrics.CATALOGUE.index(metric) if metric else len(metrics.CATALOGUE)
    return position, natural(name)


def _coverage(diagnosis: Diagnosis) -> Unjudged:
    trace = diagnosis.trace
    unlocked, _ = unlocks(trace, diagnosis.undecided)
    names = (
        (unlock, [phrases.to_know(trace, name) for name in unlock.names]) for unlock in unlocked
    )
    notes: list[Line] = []
    if diagnosis.outlook is not None:
        notes.append(Line("ahead", diagnosis.outlook.sentence))
    notes.extend(Line("note", note) for note in trace.notes)
    notes.extend(
        Line("taken back", phrases.retraction_text(retraction))
        for retraction in diagnosis.retracted
    )
    facts = {
        "settings not known": phrases.unknown_settings(diagnosis),
        "muted": phrases.muted_text(diagnosis),
        "baseline": phrases.against_baseline(diagnosis),
        "not mapped": ", ".join(trace.unmapped),
    }
    notes.extend(Line(label, text) for label, text in facts.items() if text)
    return Unjudged(
        coverage=phrases.coverage(diagnosis),
        wishes=tuple(Wish(" and ".join(texts), unlock.rules) for unlock, texts in names),
        reasons=tuple(
            Line(reason, ", ".join(rules))
            for reason, rules in phrases.undecided_rules(diagnosis).items()
        ),
        clear=tuple(sorted(rule.name for rule in diagnosis.clear)),
        notes=tuple(notes),
    )
