"""Lay out a run's page: vital signs, dashboard, findings, metrics, and what was recorded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.marks import Mark
from rlvitals.rollouts.rollout_columns import Rollouts
from rlvitals.server import page_shell, rollout_view, run_header, timeline
from rlvitals.server.fleet_line import ROOT_KEY
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace
from rlvitals.views.charts.chart import Chart
from rlvitals.views.figures import actions, dashboard, distributions, figure, reward_breakdown
from rlvitals.views.figures.figure import Kind, Line, Panel
from rlvitals.views.report import contents, elements, html, sections
from rlvitals.views.report.elements import Section, section
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Page, Subject

PAGE_NUMBER = 0  # of the run among those of a report: one


@dataclass(frozen=True, slots=True)
class RunPage:
    """The texts of a judged run's page and its charts by name."""

    version: int  # number of the judgement
    content: Html
    charts: dict[str, Chart]
    stacked: frozenset[str]  # names of the charts whose curves are drawn as stacked areas
    judged: Trace  # at most about 8,000 points of each metric
    logged: Mapping[str, Series]  # what the charts were made of: its metrics, and unknown keys
    timeline: dict[str, object]
    provable: list[str]  # rules whose finding some rollouts show

    def without_points(self) -> "RunPage":
        """Return the page with two points of each logged series: its charts name the metrics."""
        ends = {
            name: series.where(np.array([0, -1]) if len(series) else slice(0))
            for name, series in self.logged.items()
        }

        def end_points(line: Line) -> Series:
            return ends[line.metric] if self.logged.get(line.metric) is line.series else line.series

        charts = {
            name: replace(chart, panel=replace(chart.panel, lines=tuple(
                replace(line, series=end_points(line)) for line in chart.panel.lines
            )))
            for name, chart in self.charts.items()
        }  # fmt: skip
        series = {name: ends[name] for name in self.judged.series}
        return replace(self, charts=charts, logged=ends, judged=replace(self.judged, series=series))


@dataclass(frozen=True, slots=True)
class Extras:
    """What a run's page shows besides its diagnosis."""

    headline: str = ""  # the run's profile, steps and rows
    mark: Mark | None = None  # a person's label
    rollouts: Rollouts | None = None
    console_files: tuple[str, ...] = ()  # names of text files in the run's folder


def build(subject: Subject, version: int, extras: Extras) -> RunPage:
    """Lay out the page of a judged run."""
    diagnosis = subject.summary.found
    page = contents.page(subject, PAGE_NUMBER)
    panels = dashboard.panels((_figure_subject(subject),))
    board = _charts(diagnosis.trace, "dashboard", panels)
    reward_charts, layered = _composition(subject)
    marks = timeline.timeline(subject)
    listed = [
        *_finding_sections(page, diagnosis),
        *_rollout_sections(extras.rollouts),
        *_composition_sections(reward_charts, layered),
        sections.measures(page.measures),
        *sections.rank_sections(page),
        *sections.data_sections(page),
        *_console_sections(extras.console_files),
        sections.coverage_section(page.unjudged),
    ]
    links = [el("a", "Dashboard", href="#dashboard")]
    links += [el("a", item.title, href=f"#{item.anchor(PAGE_NUMBER)}") for item in listed]
    heading = el("h2", "Dashboard ", el("span", f"by {diagnosis.trace.step_unit}", class_="count"))
    board_head = el("div", heading, smoothing(), class_="board-head")
    content = el(
        "div",
        run_header.vitals(page, subject, extras.headline, extras.mark),
        el("nav", *links, class_="nav", aria_label="sections"),
        el("section", board_head, _grid(board), timeline.legend(marks),
           _absent(panels) if board else Html(""),
           id="dashboard", class_="dashboard", aria_label="dashboard"),
        *(item.laid_out(PAGE_NUMBER) for item in listed),
        class_="run",
        id="run",
    )  # fmt: skip
    charts = {chart.name: chart for chart in (*board, *reward_charts, *layered, *html.charts(page))}
    return RunPage(
        version, content, charts, frozenset(chart.name for chart in reward_charts), diagnosis.trace,
        {**subject.others, **diagnosis.trace.series},
        marks, rollout_view.provable(extras.rollouts, diagnosis),
    )  # fmt: skip


def document(page: RunPage, content: Mapping[str, object]) -> str:
    """Return the page. `content`: what its script needs."""
    key = str(content["key"])
    name = page.judged.name or key
    path = name if key == ROOT_KEY else key
    crumbs = el("span", el("span", "/", class_="slash", aria_hidden="true"), path, class_="crumb",
                title=path)  # fmt: skip
    return page_shell.document("run", name, content, page.content, crumbs=crumbs)


def data(key: str, page: RunPage, position: str) -> dict[str, object]:
    """Return what the page's script needs of a run. `position`: its newest message."""
    trace = page.judged
    return {
        "key": key,
        "version": page.version,
        "position": position,
        "first": trace.first_step,
        "last": trace.last_step,
        "unit": trace.step_unit,
        **page.timeline,
        "provable": page.provable,
        "charts": {
            name: {
                "title": chart.panel.title,
                "unit": chart.panel.unit,
                "tall": chart.tall,
                "form": form(page, chart),
            }
            for name, chart in page.charts.items()
        },
    }


def form(page: RunPage, chart: Chart) -> str:
    """Return how the curves of a chart are drawn: a `Kind`, or "stacked"."""
    return "stacked" if chart.name in page.stacked else chart.panel.kind.value


def _figure_subject(subject: Subject) -> figure.Subject:
    return figure.Subject(subject.summary.name, subject.summary.found)


def _charts(trace: Trace, name: str, panels: Iterable[Panel]) -> tuple[Chart, ...]:
    """Return the charts of the panels that are drawn over steps and have a curve."""
    return tuple(
        Chart(f"{name}-{number}", panel, trace.first_step, trace.last_step, 150)
        for number, panel in enumerate(panels)
        if panel.kind in {Kind.LINES, Kind.SHARES, Kind.BANDS} and panel.lines
    )


def _composition(subject: Subject) -> tuple[tuple[Chart, ...], tuple[Chart, ...]]:
    """Return the charts of the reward's parts, and those of shares and distributions."""
    subjects = (_figure_subject(subject),)
    trace = subject.summary.found.trace
    rewards = [panel for panel in reward_breakdown.panels(subjects) if len(panel.lines) > 1]
    layered = (*actions.panels(subjects), *distributions.panels(subjects))
    return _charts(trace, "parts", rewards), _charts(trace, "layers", layered)


def _composition_sections(
    reward_charts: Sequence[Chart], layered: Sequence[Chart]
) -> Iterator[Section]:
    if reward_charts or layered:
        yield section("Parts and distributions", _grid((*reward_charts, *layered)))


def _finding_sections(page: Page, diagnosis: Diagnosis) -> Iterator[Section]:
    yield sections.findings(page)
    if diagnosis.muted:
        rows = (
            el(
                "li",
                el("code", muted.rule.name),
                join(f" {muted.finding.summary} · muted: {muted.reason} "),
                data_muted=muted.rule.name,
            )
            for muted in diagnosis.muted
        )
        yield section("Muted", el("ul", *rows, class_="muted"), count=str(len(diagnosis.muted)))


def _rollout_sections(rollouts: Rollouts | None) -> Iterator[Section]:
    if rollouts is not None and len(rollouts):
        yield section("Rollouts", rollout_view.controls(rollouts), count=f"{len(rollouts):,}")


def _console_sections(names: Sequence[str]) -> Iterator[Section]:
    if names:
        options = (el("option", name, value=name) for name in names)
        yield section(
            "Console",
            el("p", el("select", *options, id="console-file", aria_label="file"), class_="tools"),
            el("pre", id="console", class_="console", tabindex="0", role="region",
               aria_label="end of the file"),
        )  # fmt: skip


def smoothing() -> Html:
    """Return the choice of the average of a page's charts."""
    options = (el("option", text, value=value) for value, text in timeline.AVERAGES)
    return el("label", "average ", el("select", *options, id="smoothing"), class_="smoothing")


def _grid(charts: Sequence[Chart]) -> Html:
    if not charts:
        return el("p", "No metric of the dashboard is logged.", class_="about")
    return el("div", *(el("div", elements.chart(c), class_="metric") for c in charts),
              class_="cards wide-cards")  # fmt: skip


def _absent(panels: Iterable[Panel]) -> Html:
    """Return which charts of the dashboard have nothing to show."""
    absent = [p.title for p in panels if p.kind is Kind.LINES and not p.lines]
    titles = [title if title.isupper() else title.lower() for title in absent]  # KL
    return el("p", f"Not logged: {', '.join(titles)}.", class_="about") if titles else Html("")
