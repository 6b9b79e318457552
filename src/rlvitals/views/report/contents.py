"""A run in, its page out: what is told of it, in which order. Nothing is laid out here."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import isfinite

from rlvitals import metrics
from rlvitals.diagnosis.coverage import unlocks
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.diagnosis.status import Change
from rlvitals.diagnosis.training_summary import Summary
from rlvitals.rules.rule import Finding
from rlvitals.types import Series, Trace
from rlvitals.views import phrases
from rlvitals.views.charts.chart import Chart
from rlvitals.views.figures import figure
from rlvitals.views.figures.panels import OWN, finished, natural
from rlvitals.views.figures.policy import CLIPS, ENTROPIES
from rlvitals.views.phrases import Line
from rlvitals.views.report import tables
from rlvitals.views.report.page import Found, Grid, Measure, Page, Subject, Unjudged, Wish
from rlvitals.views.summary import CONVERGED, SIGNS

OFF = 0.01  # of its range: a number as near to a curve may have been read off it
LINEAR = tuple(metric.name for metric in (*CLIPS, *ENTROPIES))  # near zero they are zero
TALL = 200  # pixels of a chart that answers something
KINDS: Mapping[str, str] = {
    "outcome": "Outcome: what it is for",
    "health": "Health: how it learns",
    "performance": "Performance: how fast",
    "setting": "Settings that change",
    "": "Others",
}
OTHERS = "Not mapped: shown, never judged"
UNMAPPED = "no table knows it: --map says what it is"
MOST_OTHERS = 200
PERCENT = 100.0
MOST_CHANGES = 12
TIMES = 5.0  # as much as it was: from there on per cent say less
KNOWN = ("running", "finished", "stopped", "failed", "killed")  # how it lives, where that is clear


def page(one: Subject, number: int) -> Page:
    """Put together what is told of a run; `number` tells its charts from other runs'."""
    found = one.summary.found
    drawn = _Drawer(figure.Subject(one.summary.name, found), number)
    outcome = drawn.metric(one.summary.outcome.metric, TALL)
    return Page(
        name=one.summary.name,
        trace=found.trace,
        verdict=found.verdict,
        counts=phrases.counts(found),
        headline=" · ".join(filter(None, (phrases.headline(found), phrases.liveness(found)))),
        tldr=found.tldr,
        numbers=tuple(_numbers(one)),
        changes=changes(one.standing.changes[:MOST_CHANGES]),
        outcome=outcome,
        levels=_levels(outcome),
        findings=tuple(_found(case, drawn) for case in found.cases),
        measures=(*_measures(drawn), *_others(one.others, drawn)),
        settings=tables.settings(found.trace),
        environment=tuple(tables.environment(one.facts)),
        events=tables.events(one.events, found.trace),
        checkpoints=tables.checkpoints(one.standing.checkpoints),
        tables=tuple(tables.rows(found.trace)),
        texts=tuple(tables.texts(found.trace)),
        unjudged=_unjudged(found),
    )


class _Drawer:
    """Makes the charts of one run, each under a name of its own."""

    def __init__(self, subject: figure.Subject, number: int) -> None:
        self.subject = subject
        self.trace = subject.trace
        self.names = (f"run{number}-chart{at}" for at in count())

    def metric(self, name: str, tall: int = 0) -> Chart | None:
        """Draw a metric with its limits and findings; None where it is not logged."""
        series = self.trace.get(name)
        if series is None or not len(series):
            return None
        known = metrics.find(name)
        wanted = [known] if known is not None and not known.family else []
        unit = known.unit if known else ""
        lines = (figure.Line(_title(name), name, series),)
        panel = figure.Panel(_title(name), unit, lines, linear=name in LINEAR)
        return self._chart(finished((self.subject,), panel, wanted), tall)

    def other(self, key: str, series: Series) -> Chart:
        """Draw what no table knows, under its own key."""
        return self._chart(figure.Panel(key, "", (figure.Line(key, key, series),)), 0)

    def finding(self, case: Case) -> Chart | None:
        """Draw what shows a finding, beside its limit."""
        finding = case.finding
        curve = phrases.curve(finding, self.trace)
        if curve is None:
            return None
        own = finding.curve is None
        known = metrics.find(curve.name) if own else None
        title = _title(curve.name) if own else curve.name
        return self._chart(
            figure.Panel(
                title,
                known.unit if known else "",
                (figure.Line(title, curve.name, curve.series),),
                linear=curve.name in LINEAR,
                limits=tuple(_limits(finding, curve.series)),
                marks=(
                    figure.Mark(finding.began, finding.ended, case.rule.name, finding.severity),
                ),
            ),
            TALL,
        )

    def _chart(self, panel: figure.Panel, tall: int) -> Chart:
        return Chart(next(self.names), panel, self.trace.first_step, self.trace.last_step, tall)


def _title(name: str) -> str:
    """Return a metric's title; of a family's member, with the member's own name."""
    known = metrics.find(name)
    if known is None:
        return name
    member = name.removeprefix(f"{known.name}/")
    return f"{known.title}: {member.replace('_', ' ')}" if known.family else known.title


def _limits(finding: Finding, series: Series) -> Iterator[figure.Limit]:
    """Return the finding's limit, where it is one on what is drawn: what was observed lies there.

    A limit on a count, or on a share of the points, would be a line that means nothing.
    """
    bound, known = finding.bound, series.finite().values
    if not len(known) or not isfinite(finding.observed) or not isfinite(bound.value):
        return
    low, high = float(known.min()), float(known.max())
    air = OFF * max(high - low, abs(high))
    if low - air <= finding.observed <= high + air:
        said = f"{bound.origin.removeprefix(OWN)}: {phrases.number(bound.value)}"
        yield figure.Limit(bound.value, said)


def _found(case: Case, drawn: _Drawer) -> Found:
    lines = [*phrases.details(case, drawn.trace), *phrases.consequences(case)]
    return Found(
        rule=case.rule.name,
        severity=case.finding.severity,
        summary=case.finding.summary,
        when=next(line.text for line in lines if line.label == "steps"),
        chart=drawn.finding(case),
        lines=tuple(line for line in lines if line.label not in {"steps", "try"}),
        tries=tuple(line.text for line in lines if line.label == "try"),
        doc=case.rule.doc,
        symptoms=tuple(_found(symptom, drawn) for symptom in case.symptoms),
    )


def _levels(chart: Chart | None) -> tuple[str, str]:
    """Tell the best and the last of what the run is judged by."""
    if chart is None:
        return "", ""
    line = chart.panel.lines[0]
    known = line.series.finite().values
    if not len(known):
        return "", ""
    found = metrics.find(line.metric)
    best = known.min() if found and found.better == "down" else known.max()
    return phrases.number(float(best)), phrases.number(float(known[-1]))


def _numbers(one: Subject) -> Iterator[Line]:
    """Go through the numbers that are asked for first."""
    told, where = one.summary, one.standing
    of = f" of {where.total:,} ({where.fraction or 0:.0%})" if where.total else ""
    yield Line(told.unit, f"{where.step:,}{of}")
    if where.state in KNOWN:
        yield Line("state", where.state)
    if told.seconds is not None:
        yield Line("trained for", phrases.duration(told.seconds))
    yield from _loss(told)
    if told.learning_rate is not None:
        yield Line("learning rate, last", phrases.number(told.learning_rate))
    yield Line("converged", CONVERGED[told.converged].split(" ", 1)[0] + f" {told.converged}")
    yield Line("goals", " · ".join(f"{SIGNS[goal.had]} {goal.text}" for goal in told.goals))


def _loss(told: Summary) -> Iterator[Line]:
    if told.loss is not None:
        ends = f"{phrases.number(told.loss.first)} → {phrases.number(told.loss.last)}"
        yield Line("loss", ends)


def changes(changes: Iterable[Change]) -> Grid:
    """Tell how metrics ended, beside how they began."""
    rows = (
        (one.metric, phrases.number(one.first), phrases.number(one.last), _share(one))
        for one in changes
    )
    return Grid(("metric", "first", "last", "change"), tuple(rows))


def _share(one: Change) -> str:
    """Say by how much a metric has changed: in per cent, or how many times it has grown."""
    if one.share is None:
        return ""
    if one.share > TIMES - 1:
        return f"{1 + one.share:.3g} x"
    return f"{PERCENT * one.share:+.3g} %" if one.share else "none"


def _measures(drawn: _Drawer) -> Iterator[tuple[str, tuple[Measure, ...]]]:
    """Go through the metrics kind by kind, each kind by name."""
    kinds: dict[str, list[Measure]] = {kind: [] for kind in KINDS}
    for name in sorted(drawn.trace.series, key=_order):
        chart = drawn.metric(name)
        if chart is None:
            continue
        known = metrics.find(name)
        measured = drawn.trace.measured.get(name)
        logged = f"{measured.key}: {measured.how}" if measured else ""
        kinds[known.kind if known else ""].append(
            Measure(name, chart, logged, known.meaning if known else "")
        )
    for kind, found in kinds.items():
        if found:
            yield KINDS[kind], tuple(found)


def _others(
    others: Mapping[str, Series], drawn: _Drawer
) -> Iterator[tuple[str, tuple[Measure, ...]]]:
    """Draw what no table knows; of very much, the first."""
    keys = sorted(others, key=natural)[:MOST_OTHERS]
    found = tuple(Measure(key, drawn.other(key, others[key]), UNMAPPED, "") for key in keys)
    if found:
        cut = f": {MOST_OTHERS} of {len(others)}" if len(keys) < len(others) else ""
        yield f"{OTHERS}{cut}", found


def _order(name: str) -> tuple[int, list[tuple[bool, int, str]]]:
    """Sort metrics as the catalogue has them, a family's members by number."""
    known = metrics.find(name)
    place = metrics.CATALOGUE.index(known) if known else len(metrics.CATALOGUE)
    return place, natural(name)


def _unjudged(found: Diagnosis) -> Unjudged:
    trace = found.trace
    more, _ = unlocks(trace, found.undecided)
    names = ((one, [phrases.to_know(trace, name) for name in one.names]) for one in more)
    return Unjudged(
        coverage=phrases.coverage(found),
        wishes=tuple(Wish(" and ".join(told), one.rules) for one, told in names),
        reasons=tuple(
            Line(why, ", ".join(rules)) for why, rules in phrases.undecided(found).items()
        ),
        clear=tuple(sorted(rule.name for rule in found.clear)),
        notes=tuple(_notes(found, trace)),
    )


def _notes(found: Diagnosis, trace: Trace) -> Iterator[Line]:
    if found.outlook is not None:
        yield Line("ahead", found.outlook.sentence)
    yield from (Line("note", note) for note in trace.notes)
    yield from (Line("taken back", phrases.retracted(one)) for one in found.retracted)
    said = {
        "settings not known": phrases.unknown_settings(found),
        "muted": phrases.muted(found),
        "baseline": phrases.against_baseline(found),
        "not mapped": ", ".join(trace.unmapped),
    }
    yield from (Line(label, text) for label, text in said.items() if text)
