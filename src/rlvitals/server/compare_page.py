"""Compare selected runs: their outcomes over each other, the sentence, and the settings."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from urllib.parse import quote

import numpy as np

from rlvitals.comparison import compare, grouping, learning_curves, scores
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison, RunScore
from rlvitals.comparison.scores import DEFAULT_MEAN_PERCENT, Axis
from rlvitals.errors import UsageError
from rlvitals.rules.standing import label
from rlvitals.server import compare_words, page_shell, setting_charts
from rlvitals.server.live_run import LiveRun
from rlvitals.server.run_header import LAMP_WORDS
from rlvitals.server.run_summary import RECORDER_PREFIX, lamp
from rlvitals.types import Series, Trace
from rlvitals.views import phrases
from rlvitals.views.charts.chart import Chart, Packer
from rlvitals.views.figures.figure import Line, Panel
from rlvitals.views.report import elements
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Grid

MAX_COMPARED_RUNS = 24
OVERLAY_CHART_PIXELS = 320
# A group's score at a step is the mean of the last tenth before it: it is drawn at their middle.
MEAN_CENTRE = 1 - DEFAULT_MEAN_PERCENT / 200


@dataclass(frozen=True, slots=True)
class Overlay:
    """A comparison, its chart as JSON, and the groups of its runs."""

    result: Comparison
    runs: Sequence[tuple[Member, int, RunScore | None]]  # as selected: group's number, score
    data: dict[str, object]


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
    return Overlay(result, scored, _chart(runs, scored, options, result))


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
    settings = _differing_settings([run.trace for run in runs], [run.key for run in runs])
    chart = el(
        "div", class_="chart", data_chart="overlay", style=f"--tall:{OVERLAY_CHART_PIXELS}px"
    )
    explanation = compare_words.explanation(result)
    charts = setting_charts.charts(drawing.runs, label(result.metric))
    return page_shell.document(
        "compare",
        "Compare",
        drawing.data,
        el("h1", compare_words.headline(result), class_="sentence"),
        *([el("p", explanation, class_="explanation")] if explanation else []),
        links,
        chart,
        el("p", "Thin lines are runs; a thick line is a group's mean, the band its 95 % interval.",
           class_="about"),
        *([el("section", el("h2", "Groups"), elements.table(_groups(result)))]
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
) -> dict[str, object]:
    """Return the overlay: a curve for each run in its group's colour, and the groups' bands."""
    lines = []
    for run, (_, group, _) in zip(runs, scored, strict=True):
        series = run.trace.get(result.metric)
        if series is None or not len(series):
            continue
        curve = scores.curve(run.trace, result.metric, options.axis)
        values = scores.sign(result.metric) * curve.gains
        axis_series = Series(curve.x.astype(np.int64), series.times, values)
        lines.append(Line(run.key, result.metric, axis_series, 0, group))
    first = min((int(line.series.steps[0]) for line in lines), default=0)
    last = max((int(line.series.steps[-1]) for line in lines), default=1)
    panel = Panel(label(result.metric), "", tuple(lines))
    packer = Packer()
    document = packer.chart(Chart("overlay", panel, first, last, OVERLAY_CHART_PIXELS))
    document["groups"] = [group.label for group in result.groups]
    document["bands"] = _bands([member for member, _, _ in scored], options, result)
    units: dict[Axis, str] = {"time": "seconds of training", "steps": runs[0].trace.step_unit}
    unit = units.get(options.axis, options.axis)
    return {"first": first, "last": last, "unit": unit, "seams": [], "charts": [document],
            "columns": packer.columns}  # fmt: skip


def _bands(
    members: Sequence[Member], options: CompareOptions, result: Comparison
) -> list[dict[str, object]]:
    """Return the interval of each group's mean by place; none of a single run."""
    bands: list[dict[str, object]] = []
    curves = learning_curves.learning_curves(members, options, result)
    for number, (group, curve) in enumerate(zip(result.groups, curves, strict=True)):
        finite = np.isfinite(curve.score_low) & np.isfinite(curve.score_high)
        if len(group.runs) > 1 and finite.any():
            bands.append({
                "part": number,
                "steps": (curve.place[finite] * MEAN_CENTRE).tolist(),
                "middle": curve.score[finite].tolist(),
                "low": curve.score_low[finite].tolist(),
                "high": curve.score_high[finite].tolist(),
            })  # fmt: skip
    return bands


def _groups(result: Comparison) -> Grid:
    rows = []
    by_label = {group.label: group for group in result.groups}
    answers = {
        pair.group: compare_words.answer(pair, by_label[pair.group], by_label[pair.reference])
        for pair in result.against
    }
    for group in result.groups:
        interval = "one seed has none"
        if isfinite(group.typical.low):
            ends = (phrases.number(group.typical.low), phrases.number(group.typical.high))
            interval = " to ".join(ends)
        rows.append((
            group.label, str(group.seeds), phrases.number(group.mean), interval,
            answers.get(group.label, "the reference"),
        ))  # fmt: skip
    heads = ("group", "seeds", f"{label(result.metric)}, mean", "95 % interval", "answer")
    return Grid(heads, tuple(rows))


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


def _differing_settings(traces: Sequence[Trace], keys: Sequence[str]) -> Grid:
    """Return the settings in which runs differ, a row for each run."""
    names = sorted({name for trace in traces for name in trace.settings})
    differing = [
        name
        for name in names
        if len({str(trace.settings.get(name, "")) for trace in traces}) > 1
        and not name.startswith(RECORDER_PREFIX)
    ]
    if not differing:
        return Grid((), (), "None: the runs log the same settings.")
    rows = tuple(
        (key, *(str(trace.settings.get(name, "")) for name in differing))
        for key, trace in zip(keys, traces, strict=True)
    )
    return Grid(("run", *differing), rows)
