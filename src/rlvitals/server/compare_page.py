"""Compare selected runs: their outcomes over each other, the sentence, and the settings."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from rlvitals.comparison import compare, grouping, scores
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison, RunScore
from rlvitals.comparison.scores import Axis
from rlvitals.errors import UsageError
from rlvitals.rules.standing import label
from rlvitals.server import page_shell, setting_charts
from rlvitals.server.live_run import LiveRun
from rlvitals.server.run_header import LAMP_WORDS
from rlvitals.server.run_summary import lamp
from rlvitals.types import Series
from rlvitals.views import comparison_text, phrases
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Chart, Packer
from rlvitals.views.figures.figure import Line, Panel
from rlvitals.views.report import elements, tables
from rlvitals.views.report.markup import Html, el, join

MAX_COMPARED_RUNS = 24
OVERLAY_CHART_PIXELS = 320


@dataclass(frozen=True, slots=True)
class Overlay:
    """A comparison, its chart as JSON, and the groups of its runs."""

    result: Comparison
    runs: Sequence[tuple[Member, int, RunScore | None]]  # as selected: group's number, score
    data: dict[str, object]
    legend: str


def overlay(runs: Sequence[LiveRun], axis: Axis) -> Overlay:
    """Compare runs by their outcome. Raises UsageError where they log no common one."""
    if not 1 < len(runs) <= MAX_COMPARED_RUNS:
        raise UsageError(
            f"{len(runs)} runs cannot be compared", where="key", hint=f"2 to {MAX_COMPARED_RUNS}"
        )
    # As on the command line: runs of one folder are an experiment.
    members = [Member(run.trace, run.key.rpartition("/")[0] or run.key) for run in runs]
    options = CompareOptions(axis=axis)
    result = compare.compare(members, options)
    scored = _find_scores(members, options, result)
    return Overlay(result, scored, *_chart(runs, scored, options, result))


def _find_scores(
    members: Sequence[Member], options: CompareOptions, result: Comparison
) -> list[tuple[Member, int, RunScore | None]]:
    """Return each member with the number of its group, and its score or None."""
    labels = [group.label for group in result.groups]
    scores_by_run = {(group.label, run.name): run for group in result.groups for run in group.runs}
    names = {
        id(member): group.label
        for group in grouping.groups(members, options.by)
        for member in group.members
    }
    return [
        (member, labels.index(name), scores_by_run.get((name, member.trace.name)))
        for member, name in ((member, names[id(member)]) for member in members)
    ]


def document(runs: Sequence[LiveRun], axis: Axis) -> str:
    """Return the page of a comparison. Raises UsageError."""
    drawing = overlay(runs, axis)
    result = drawing.result
    keys = "&".join(f"key={quote_key(run.key)}" for run in runs)
    axes = scores.find_axes([run.trace for run in runs], result.metric)
    links = el("p", *(_axis_link(name, keys, axis) for name in axes), class_="axes")
    settings = tables.differing_settings([(run.key, run.trace) for run in runs])
    chart = el(
        "div", class_="chart", data_chart="overlay", style=f"--tall:{OVERLAY_CHART_PIXELS}px"
    )
    explanation = comparison_text.explanation(result)
    charts = setting_charts.charts(drawing.runs, label(result.metric))
    return page_shell.document(
        "compare",
        "Compare",
        drawing.data,
        el("h1", comparison_text.headline(result), class_="sentence"),
        *([el("p", explanation, class_="explanation")] if explanation else []),
        links,
        chart,
        el("p", drawing.legend, class_="about"),
        *([el("section", el("h2", "Groups"), elements.table(tables.groups(result)))]
          if len(result.groups) > 1 else []),
        el("section", el("h2", "Runs"), _runs(runs, drawing)),
        *([el("section", el("h2", "Outcome by setting"), charts, el(
            "p", f"A point is a run's {label(result.metric)}, {result.at}, in its group's colour.",
            class_="about"))] if charts else []),
        el("section", el("h2", "Settings that differ"), elements.table(settings)),
        crumbs=el("span", el("span", "/", class_="slash", aria_hidden="true"), "compare",
                  class_="crumb"),
    )  # fmt: skip


def quote_key(key: str) -> str:
    """Return a run's key for an address."""
    return quote(key, safe="/")


def _axis_link(name: Axis, keys: str, axis: Axis) -> Html:
    current = "page" if name == axis else None
    return el("a", f"by {name}", href=f"/compare?{keys}&axis={name}", aria_current=current)


def _chart(
    runs: Sequence[LiveRun],
    scored: Sequence[tuple[Member, int, RunScore | None]],
    options: CompareOptions,
    result: Comparison,
) -> tuple[dict[str, object], str]:
    """Return the overlay, a curve for each run in its group's colour, and what its lines are."""
    lines = []
    for run, (_, group, _) in zip(runs, scored, strict=True):
        series = run.trace.get(result.metric)
        if series is None or not len(series):
            continue
        curve = scores.curve(run.trace, result.metric, options.axis)
        values = scores.sign(result.metric) * curve.gains
        axis_series = Series(curve.x.astype(np.int64), series.times, values)
        is_alone = len(result.groups[group].runs) == 1  # else the group's mean is drawn
        lines.append(Line(run.key, result.metric, axis_series, 0, group, is_alone))
    first = min((int(line.series.steps[0]) for line in lines), default=0)
    last = max((int(line.series.steps[-1]) for line in lines), default=1)
    panel = Panel(label(result.metric), "", tuple(lines))
    packer = Packer()
    labels = [group.label for group in result.groups]
    bands = overlays.outcome_bands([member for member, _, _ in scored], labels, options, result)
    chart = Chart("overlay", panel, first, last, OVERLAY_CHART_PIXELS)
    document = overlays.pack(packer, chart, labels, bands)
    units: dict[Axis, str] = {"time": "seconds of training", "steps": runs[0].trace.step_unit}
    unit = units.get(options.axis, options.axis)
    return {"first": first, "last": last, "unit": unit, "seams": [], "charts": [document],
            "columns": packer.columns}, overlays.legend([document])  # fmt: skip


def _runs(runs: Sequence[LiveRun], drawing: Overlay) -> Html:
    """Return a line for each run with its verdict, linked to its page."""
    groups = drawing.result.groups
    scored = [(groups[number].label, score) for _, number, score in drawing.runs]
    rows = []
    for run, (group, score) in zip(runs, scored, strict=True):
        lamp_name, verdict = lamp(run.diagnosis), run.diagnosis.verdict.word.value
        mark = el("span", class_=f"lamp {lamp_name}", role="img", aria_label=LAMP_WORDS[lamp_name])
        rows.append((
            el("td", mark, join(" "), el("a", run.key, href=f"/run/{quote_key(run.key)}")),
            el("td", el("b", verdict, class_=f"word {lamp_name}")),
            el("td", run.diagnosis.verdict.why, class_="reason-cell"),
            el("td", group, class_="group-cell"),
            el("td", phrases.number(score.score) if score else "", class_="number"),
            el("td", score.failed if score else "", class_="group-cell"),
        ))  # fmt: skip
    heads = (("run", ""), ("verdict", ""), ("why", "reason-cell"), ("group", "group-cell"),
             (label(drawing.result.metric), ""), ("failed", "group-cell"))  # fmt: skip
    # A column that says nothing of any run is left out.
    is_shown = (
        True,
        True,
        any(run.diagnosis.verdict.why for run in runs),
        any(group != run.key for run, (group, _) in zip(runs, scored, strict=True)),
        True,
        any(score is not None and score.failed for _, score in scored),
    )
    head = el("tr", *(
        el("th", text, scope="col", class_=name or None)
        for text, name in itertools.compress(heads, is_shown)
    ))  # fmt: skip
    body = (el("tr", *itertools.compress(cells, is_shown)) for cells in rows)
    table = el("table", el("thead", head), el("tbody", *body), class_="compared")
    return el("div", table, class_="wide")
