"""Lay out a run's page: vital signs, dashboard, findings, metrics, and what was recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rlvitals.diagnosis.root_cause import Case
from rlvitals.rules.rule import Severity
from rlvitals.server import page_shell
from rlvitals.server.run_summary import lamp
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.charts.chart import Chart
from rlvitals.views.figures import dashboard, figure
from rlvitals.views.figures.figure import Kind
from rlvitals.views.report import contents, elements, html, sections
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Page, Subject

LAMP_WORDS = {
    "good": "healthy", "watch": "needs a look", "bad": "broken", "unknown": "unknown",
    "pending": "pending",
}  # fmt: skip
DASHBOARD_CHART_PIXELS = 150
MAX_CAUSES = 3  # named in the header


@dataclass(frozen=True, slots=True)
class RunPage:
    """The texts of a judged run's page and its charts by name."""

    version: int  # number of the judgement
    content: Html
    charts: dict[str, Chart]
    judged: Trace  # what the charts were made of


def build(subject: Subject, version: int) -> RunPage:
    """Lay out the page of a judged run."""
    page = contents.page(subject, 0)
    board = _dashboard_charts(subject)
    charts = {chart.name: chart for chart in (*board, *html.charts(page))}
    listed = [
        sections.findings(page),
        sections.measures(page),
        *sections.data_sections(page),
        sections.coverage_section(page.unjudged),
    ]
    links = [el("a", "Dashboard", href="#dashboard")]
    links += [el("a", item.title, href=f"#{item.anchor(0)}") for item in listed]
    content = el(
        "div",
        _vitals(page, subject),
        el("nav", *links, class_="nav", aria_label="sections"),
        el("section", el("h2", "Dashboard"), _grid(board), id="dashboard", class_="dashboard"),
        *(item.laid_out(0) for item in listed),
        class_="run",
        id="run",
    )
    return RunPage(version, content, charts, subject.summary.found.trace)


def document(key: str, page: RunPage, position: str) -> str:
    """Return the page. `position`: the newest message that it contains."""
    trace = page.judged
    crumbs = el("span", el("span", "/", class_="slash", aria_hidden="true"), key, class_="crumb")
    return page_shell.document(
        "run", trace.name or key, data(key, page, position), page.content, crumbs=crumbs
    )


def data(key: str, page: RunPage, position: str) -> dict[str, object]:
    """Return what the page's script needs to know of a run."""
    trace = page.judged
    return {
        "key": key,
        "version": page.version,
        "position": position,
        "first": trace.first_step,
        "last": trace.last_step,
        "unit": trace.step_unit,
        "seams": list(trace.lifecycle.seams),
        "charts": {
            name: {"title": chart.panel.title, "unit": chart.panel.unit, "tall": chart.tall}
            for name, chart in page.charts.items()
        },
    }


def _dashboard_charts(subject: Subject) -> tuple[Chart, ...]:
    """Return the logged charts of the dashboard figure."""
    trace = subject.summary.found.trace
    panels = dashboard.panels((figure.Subject(subject.summary.name, subject.summary.found),))
    return tuple(
        Chart(f"dashboard-{number}", panel, trace.first_step, trace.last_step,
              DASHBOARD_CHART_PIXELS)
        for number, panel in enumerate(panels)
        if panel.kind is Kind.LINES and panel.lines
    )  # fmt: skip


def _grid(charts: tuple[Chart, ...]) -> Html:
    if not charts:
        return el("p", "None of the metrics of the dashboard is logged.", class_="about")
    return el("div", *(el("div", elements.chart(c), class_="metric") for c in charts),
              class_="cards wide-cards")  # fmt: skip


def _vitals(page: Page, subject: Subject) -> Html:
    """Return the header: the verdict, its cause, since when, what to try, how often it is wrong."""
    diagnosis = subject.summary.found
    lamp_name = lamp(diagnosis)
    title = el(
        "h1",
        el("span", class_=f"lamp {lamp_name}", role="img",
           aria_label=f"lamp: {LAMP_WORDS[lamp_name]}"),
        el("span", page.verdict.word.value, class_=f"word {lamp_name}"),
        el("span", page.verdict.why, class_="why"),
    )  # fmt: skip
    severe = [case for case in diagnosis.cases if case.severity > Severity.NOTE]
    return el(
        "header",
        el("p", page.headline.removeprefix(f"{page.name} · "), class_="about"),
        title,
        _progress(subject),
        *([_cause(severe[0], subject)] if severe else []),
        el(
            "ul",
            *(
                _sign(item.sign, item.topic, item.text)
                for item in page.tldr
                if sections.is_news(item, page)
            ),
            class_="signs",
        ),
        class_=f"vitals {lamp_name}",
        id="vitals",
    )


def _sign(sign: str, topic: str, text: str) -> Html:
    return el(
        "li",
        el("span", topic, class_="topic"),
        el("span", phrases.SIGN_MARKS[sign], class_="sign", aria_label=sign, role="img"),
        el("span", text, class_="text"),
        class_=sign,
    )


def _cause(case: Case, subject: Subject) -> Html:
    """Return the worst finding in four lines."""
    trace = subject.summary.found.trace
    lines = list(phrases.details(case, trace))
    shown_labels = {"steps": "since", "likely causes": "likely cause", "try": "try",
                    "measured": "this alarm"}  # fmt: skip
    rows: list[Html] = []
    for label, group in groupby(lines, key=lambda line: line.label):
        if label in shown_labels:
            texts = [line.text for line in group]
            rows.append(el("div", el("dt", shown_labels[label]), el("dd", texts[0])))
    other_links = list(_other_cases(subject, case))
    if other_links:
        rows.append(el("div", el("dt", "also"), el("dd", join(*other_links))))
    link = el("a", case.rule.name, href="#run0-findings", class_="rule", data_rule=case.rule.name)
    severity = case.finding.severity.name.lower()
    tag = el("span", severity, class_=f"tag {severity}")
    head = el("p", tag, Html(" "), el("strong", case.finding.summary), Html(" "), link)
    return el("div", head, el("dl", *rows, class_="brief"), class_="cause")


def _other_cases(subject: Subject, first: Case) -> Iterator[Html]:
    names = [case for case in subject.summary.found.cases if case is not first]
    for case in names[:MAX_CAUSES]:
        severity = case.finding.severity.name.lower()
        yield el("a", case.rule.name, href="#run0-findings", class_=f"rule {severity}",
                 data_rule=case.rule.name)  # fmt: skip
        yield Html(" ")
    if len(names) > MAX_CAUSES:
        yield join(f"and {len(names) - MAX_CAUSES} more")


def _progress(subject: Subject) -> Html:
    """Return the state, the step, the time left, and a bar."""
    status = subject.standing
    texts = [status.state if status.state != "unknown" else "not known whether it goes on"]
    total = f" of {status.total:,}" if status.total else ""
    step = el("span", f"{status.step:,}", class_="step", id="step")
    if status.eta is not None and status.state == "running":
        texts.append(f"{phrases.duration(status.eta)} left")
    if status.trained is not None:
        texts.append(f"trained for {phrases.duration(status.trained)}")
    bar = Html("")
    if status.fraction is not None:
        share = round(100 * status.fraction)
        bar = el("span", el("span", style=f"width:{share}%"), class_="progress", role="progressbar",
                 aria_valuenow=share, aria_valuemin=0, aria_valuemax=100,
                 aria_label="steps done")  # fmt: skip
    return el("p", bar, step, join(f"{total} {status.unit} · {' · '.join(texts)}"), class_="state")
