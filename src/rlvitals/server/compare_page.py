"""Compare selected runs: their outcomes over each other, the sentence, and the settings."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast
from urllib.parse import quote

from rlvitals.comparison import compare, grouping, scores
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison, RunScore
from rlvitals.comparison.scores import Axis
from rlvitals.errors import UnreadableLog, UsageError, quantity
from rlvitals.rules.standing import label
from rlvitals.server import chart_data, page_shell, run_page, setting_charts
from rlvitals.server.fleet_groups import SEED_SUFFIX
from rlvitals.server.live_run import LiveRun
from rlvitals.server.live_runs import LiveRuns
from rlvitals.server.run_header import LAMP_WORDS
from rlvitals.server.run_summary import lamp
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace
from rlvitals.views import comparison_text, phrases
from rlvitals.views.charts import overlay as overlays
from rlvitals.views.charts.chart import Chart, Packed, Packer
from rlvitals.views.report import elements, overlay_charts, sections, tables
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.overlay_charts import ComparedRun, OverlayCharts
from rlvitals.views.report.page import Measure

MAX_COMPARED_RUNS = overlays.MAX_STYLED_GROUPS
OUTCOME_CHART = "outcome"


@dataclass(frozen=True, slots=True)
class Comparing:
    """Runs that are compared, by their groups, with the charts that hold all of them."""

    members: Sequence[Member]
    options: CompareOptions
    charts: OverlayCharts

    def outcome_chart(self, result: Comparison) -> Chart:
        """Return the chart of the outcome. Raises UsageError where no run logs it."""
        height = overlay_charts.OUTCOME_PIXELS
        chart = self.charts.chart(result.metric, OUTCOME_CHART, height, min_runs=1)
        if chart is None:
            raise UsageError(f"no run logs {result.metric}", where="key")
        return chart


@dataclass(frozen=True, slots=True)
class Overlay:
    """A comparison, its outcome's chart as JSON, and the groups of its runs."""

    result: Comparison
    comparing: Comparing
    runs: Sequence[tuple[Member, int, RunScore | None]]  # as selected: group's number, score
    data: dict[str, object]
    legend: str


def open_runs(live: LiveRuns, keys: Iterable[str]) -> tuple[list[LiveRun], dict[str, str]]:
    """Return the runs of the keys, each once, and what is wrong with some, by key.

    Runs that are not there or cannot be read are left out. Raises UsageError for too many, and
    UnreadableLog where fewer than two are left.
    """
    names = dict.fromkeys(keys)
    if len(names) > MAX_COMPARED_RUNS:
        raise UsageError(
            f"{len(names)} runs cannot be compared at once",
            where="key",
            hint=f"at most {MAX_COMPARED_RUNS}",
        )
    runs: list[LiveRun] = []
    problems: dict[str, str] = {}
    for key in names:
        try:
            run = live.get(key)
        except KeyError:
            problems[key] = "there is no such run"
        except UnreadableLog as error:
            problems[key] = error.problem
        else:
            runs.append(run)
            if run.is_deleted:
                problems[key] = "deleted; shown as it was last read"
    if problems and len(runs) < 2:
        texts = (f"{key}: {problem}" for key, problem in problems.items())
        raise UnreadableLog("; ".join(texts), hint="choose two runs or more to compare")
    return runs, problems


def _group_runs(runs: Sequence[LiveRun], axis: Axis) -> Comparing:
    """Group runs, and place them on an axis. Raises UsageError."""
    if not 1 < len(runs) <= MAX_COMPARED_RUNS:
        raise UsageError(
            f"{quantity(len(runs), 'run')} cannot be compared",
            hint=f"select 2 to {MAX_COMPARED_RUNS} runs in the list of all runs, then Compare",
        )
    compared = []
    for run in runs:
        parent, _, name = run.key.rpartition("/")
        is_seed = Member(run.trace).seed or SEED_SUFFIX.search(name) or name.isdigit()
        compared.append(
            ComparedRun(
                run.key,
                replace(run.diagnosis, trace=run.trace),
                parent if parent and is_seed else run.key,
            )
        )
    members = [Member(run.trace, run.path) for run in compared]
    options = CompareOptions(axis=axis)
    groups = grouping.groups(members, options.by)
    return Comparing(members, options, OverlayCharts(compared, groups, axis))


def overlay(runs: Sequence[LiveRun], axis: Axis) -> Overlay:
    """Compare runs by their outcome. Raises UsageError where they log no common one."""
    comparing = _group_runs(runs, axis)
    result = compare.compare(comparing.members, comparing.options)
    scores_by_run = {(group.label, run.name): run for group in result.groups for run in group.runs}
    groups, numbers = comparing.charts.groups, comparing.charts.group_numbers
    scored = [
        (member, number, scores_by_run.get((groups[number].label, member.trace.name)))
        for member, number in zip(comparing.members, numbers, strict=True)
    ]
    packed = pack(comparing, [comparing.outcome_chart(result)], chart_data.Options(), result)
    unit, scale = comparing.charts.unit
    data = {
        "first": comparing.charts.first, "last": comparing.charts.last,
        "unit": unit, "scale": scale, "seams": [], **packed,
    }  # fmt: skip
    legend = overlays.legend(cast("list[Packed]", packed["charts"]))
    return Overlay(result, comparing, scored, data, legend)


def draw(
    runs: Sequence[LiveRun], axis: Axis, names: Sequence[str], options: chart_data.Options
) -> dict[str, object]:
    """Return charts of the page by their names, and their columns. Raises UsageError."""
    comparing = _group_runs(runs, axis)
    result = None
    charts = []
    for name in names:
        if name == OUTCOME_CHART:
            result = compare.compare(comparing.members, comparing.options)
            charts.append(comparing.outcome_chart(result))
        else:
            metric = name.removeprefix(overlay_charts.METRIC_CHART)
            chart = comparing.charts.chart(metric, name)
            charts += [] if chart is None else [chart]
    return pack(comparing, charts, options, result)


def pack(
    comparing: Comparing,
    charts: Sequence[Chart],
    options: chart_data.Options,
    result: Comparison | None,
) -> dict[str, object]:
    """Return charts and their columns, as JSON. `result`: needed for the outcome's band."""
    drawer, packer = comparing.charts, Packer()
    drawn = [chart_data.select(chart, options) for chart in charts]
    documents = []
    for chart, visible in zip(charts, drawn, strict=True):
        bands = overlays.seed_bands(chart.panel.lines)
        if chart.name == OUTCOME_CHART and result is not None:
            labels = [group.label for group in drawer.groups]
            bands = overlays.outcome_bands(comparing.members, labels, comparing.options, result)
        document = overlays.pack(packer, visible, drawer.labels, bands, drawer.healthy(chart))
        if options.average:
            chart_data.add_averages(packer, document, visible.panel, options.average)
        document["metrics"] = [None] * len(visible.panel.lines)
        documents.append(document)
    return {"charts": documents, "columns": packer.columns}


def document(runs: Sequence[LiveRun], axis: Axis, problems: Mapping[str, str]) -> str:
    """Return the page of a comparison. `problems`: of chosen runs, by key. Raises UsageError."""
    drawing = overlay(runs, axis)
    result, drawer = drawing.result, drawing.comparing.charts
    keys = "&".join(f"key={quote_key(run.key)}" for run in runs)
    outcome = drawing.comparing.outcome_chart(result)
    measures = tuple(drawer.measures(result.metric))
    charts = [outcome, *(measure.chart for _, group in measures for measure in group)]
    data = {
        **{name: drawing.data[name] for name in ("first", "last", "unit", "scale", "seams")},
        "source": f"/api/overlay?{keys}&axis={axis}",
        "changes": [],
        "checkpoints": [],
        "charts": {
            chart.name: {
                "title": chart.panel.title, "unit": chart.panel.unit, "tall": chart.tall,
            }
            for chart in charts
        },
        "drawn": {name: drawing.data[name] for name in ("charts", "columns")},
    }  # fmt: skip
    explanation = comparison_text.explanation(result)
    return page_shell.document(
        "compare",
        "Compare",
        data,
        el("h1", comparison_text.headline(result), class_="sentence"),
        *([el("p", explanation, class_="explanation")] if explanation else []),
        _list_broken_runs(runs, drawing),
        *(el("p", f"{key}: {text}.", class_="problem") for key, text in problems.items()),
        _chart_head([run.trace for run in runs], result, keys, axis),
        elements.chart(outcome),
        el("p", drawing.legend, class_="about"),
        *_sections(runs, drawing, measures),
        crumbs=el("span", el("span", "/", class_="slash", aria_hidden="true"), "compare",
                  class_="crumb"),
    )  # fmt: skip


def _list_broken_runs(runs: Sequence[LiveRun], drawing: Overlay) -> Html:
    """Return which groups have broken runs, and how many; empty where none has."""
    numbers = [number for _, number, _ in drawing.runs]
    counts = Counter(
        number for run, number in zip(runs, numbers, strict=True) if lamp(run.diagnosis) == "bad"
    )
    if not counts:
        return Html("")
    texts = []
    for number, count in sorted(counts.items()):
        total = numbers.count(number)
        share = f" ({count} of {total} runs)" if total > 1 else ""
        texts.append(f"{drawing.comparing.charts.groups[number].label}{share}")
    mark = el("span", class_="lamp bad", role="img", aria_label="lamp: broken")
    return el("p", mark, f"Broken: {', '.join(texts)}.", class_="explanation")


def _chart_head(traces: Sequence[Trace], result: Comparison, keys: str, axis: Axis) -> Html:
    """Return the links to the axes, and the choice of the average."""
    links = (
        el("a", f"by {name}", href=f"/compare?{keys}&axis={name}",
           aria_current="page" if name == axis else None)
        for name in scores.find_axes(traces, result.metric)
    )  # fmt: skip
    return el("div", el("p", *links, class_="axes"), run_page.smoothing(), class_="board-head")


def _sections(
    runs: Sequence[LiveRun],
    drawing: Overlay,
    measures: Sequence[tuple[str, tuple[Measure, ...]]],
) -> Iterator[Html]:
    result = drawing.result
    if any(len(group.runs) > 1 for group in result.groups):
        grid = tables.groups(result)
        yield el("section", el("h2", "Groups"), elements.table(grid, stacked=True))
    yield el("section", el("h2", "Runs"), _runs(runs, drawing))
    settings = tables.differing_settings([(run.key, run.trace) for run in runs])
    yield el("section", el("h2", "Settings that differ"), elements.table(settings))
    name = label(result.metric)
    by_setting = setting_charts.charts(drawing.runs, name)
    if by_setting is not None:
        caption = f"A point is a run's {name}, {result.at}, in its group's colour."
        yield el("section", el("h2", "Outcome by setting"), by_setting,
                 el("p", caption, class_="about"))  # fmt: skip
    if measures:
        metric_section = sections.measures(measures)
        names = sections.group_names(drawing.comparing.charts.labels)
        metric_section = replace(metric_section, inner=join(names, metric_section.inner))
        yield el("div", metric_section.laid_out(run_page.PAGE_NUMBER), id="metrics")


def quote_key(key: str) -> str:
    """Return a run's key for an address."""
    return quote(key, safe="/")


def _runs(runs: Sequence[LiveRun], drawing: Overlay) -> Html:
    """Return a line for each run with its verdict, linked to its page."""
    groups = drawing.comparing.charts.groups
    scored = [(number, groups[number].label, score) for _, number, score in drawing.runs]
    rows = []
    for run, (number, group, score) in zip(runs, scored, strict=True):
        lamp_name, verdict = lamp(run.diagnosis), run.diagnosis.verdict.word.value
        mark = el("span", class_=f"lamp {lamp_name}", role="img", aria_label=LAMP_WORDS[lamp_name])
        rows.append((
            el("td", mark, el("span", class_=f"key {overlays.colour_of(number)}"),
               el("a", run.key, href=f"/run/{quote_key(run.key)}")),
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
        len(groups) < len(runs),  # else the settings below say more
        True,
        any(score is not None and score.failed for *_, score in scored),
    )
    head = el("tr", *(
        el("th", text, scope="col", class_=name or None)
        for text, name in itertools.compress(heads, is_shown)
    ))  # fmt: skip
    body = (el("tr", *itertools.compress(cells, is_shown)) for cells in rows)
    table = el("table", el("thead", head), el("tbody", *body), class_="compared")
    return el("div", table, class_="wide")
