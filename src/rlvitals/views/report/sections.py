"""Lay out the sections of a run's page: the answer first, then the evidence."""

from collections.abc import Iterator, Sequence

from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import quantity
from rlvitals.rules.rule import Severity
from rlvitals.views import phrases
from rlvitals.views.charts.overlay import MAX_STYLED_GROUPS, colour_of
from rlvitals.views.report.elements import (
    Section,
    chart,
    details,
    doc,
    fold,
    named_table,
    section,
    table,
)
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Found, Grid, Measure, Page, Unjudged, Unread
from rlvitals.views.report.rollout_section import rollouts

OUTCOME_HEADS = ("outcome at best", "at last")  # column heads of the outcome


def answer(page: Page) -> Html:
    """Return the verdict, its reasons, the main numbers and the outcome's chart."""
    verdict = page.verdict.word
    colour = phrases.VERDICT_COLOURS[verdict]
    return el(
        "header",
        el("p", page.headline.removeprefix(f"{page.name} · "), class_="about"),
        el(
            "h2",
            el("span", verdict.value, class_=f"verdict {colour}"),
            Html(" "),
            el("span", page.verdict.why, class_="why"),
        ),
        el(
            "ul",
            *(
                el(
                    "li",
                    el("span", phrases.SIGN_MARKS[item.sign], class_="sign", aria_label=item.sign),
                    join(" ", item.text),
                    class_=item.sign,
                )
                for item in page.tldr
                if is_news(item, page)
            ),
            class_="tldr",
        ),
        el(
            "dl",
            *(el("div", el("dt", item.label), el("dd", item.text)) for item in page.numbers),
            class_="numbers",
        ),
        chart(page.outcome),
        el("p", page.unjudged.coverage, class_="about"),
        class_="answer",
    )


def is_news(sentence: Sentence, page: Page) -> bool:
    """Return whether a sentence differs from the verdict above it."""
    return sentence.text.rstrip(".").lower() != page.verdict.why.rstrip(".").lower()


def findings(page: Page) -> Section:
    """Return the section of findings, causes before their symptoms."""
    if not page.findings:
        unknown = page.verdict.word is Word.UNKNOWN
        text = "None, but too little was logged to judge by: this is not health."
        text = text if unknown else "None."
        return section("Findings", el("p", text), count="0")
    articles = (_finding(finding) for finding in page.findings)
    return section("Findings", *articles, count=page.counts)


def _finding(finding: Found, *, folded: bool = False) -> Html:
    """Return a finding as HTML; notes and symptoms are folded."""
    severity = finding.severity.name.lower()
    head = join(
        el("span", severity, class_=f"tag {severity}"),
        " ",
        el("span", finding.summary, class_="said"),
        " ",
        el("code", finding.rule),
    )
    blocks = [el("p", finding.when, class_="when"), chart(finding.chart), details(finding.lines)]
    if finding.tries:
        tries = el("ol", *(el("li", text) for text in finding.tries))
        blocks.append(el("div", el("h5", "What to try"), tries, class_="tries"))
    if finding.symptoms:
        blocks.append(el("h5", "It explains", class_="explains"))
        blocks += [_finding(symptom, folded=True) for symptom in finding.symptoms]
    if finding.doc.strip():
        blocks.append(
            el(
                "details",
                el("summary", f"About {finding.rule}, and when it is wrong"),
                doc(finding.doc),
            )
        )
    if folded or finding.severity is Severity.NOTE:
        blocks = [el("details", el("summary", el("h4", head)), *blocks)]
    else:
        blocks.insert(0, el("h4", head))
    return el("article", *blocks, class_=f"finding {severity}")


def measures(measures_by_kind: Sequence[tuple[str, tuple[Measure, ...]]]) -> Section:
    """Return the section of all metrics by kind, with a search field."""
    total = sum(len(group) for _, group in measures_by_kind)
    if not total:
        return section("Metrics", el("p", "None is logged."), count="0")
    search = el(
        "input",
        type="search",
        class_="search",
        placeholder="search: kl, entropy, reward …",
        aria_label="search the metrics",
        autocomplete="off",
    )
    bar = el(
        "p",
        search,
        el("output", f"{total} metric{'s' if total != 1 else ''}", class_="hits"),
        class_="search-bar",
    )
    blocks: list[Html] = []
    for title, group in measures_by_kind:
        cards = el("div", *map(_measure, group), class_="cards")
        blocks.append(el("section", el("h4", title), cards, class_="kind"))
    return section("Metrics", bar, *blocks, count=str(total))


def group_names(labels: Sequence[str]) -> Html:
    """Return the names of the groups whose curves the charts below it hold."""
    styled = labels[:MAX_STYLED_GROUPS]
    keys = [el("span", name, class_=f"key {colour_of(n)}") for n, name in enumerate(styled)]
    if len(labels) > len(styled):
        keys.append(el("span", f"{len(labels) - len(styled)} more", class_="key rest"))
    return el("p", *keys, class_="names")


def _measure(measure: Measure) -> Html:
    title = measure.chart.panel.title
    name = [] if measure.name == title else [el("code", measure.name), Html(" ")]
    search_text = f"{measure.name} {title} {measure.logged} {measure.meaning}".lower()
    return el(
        "div",
        chart(measure.chart),
        el("p", *name, measure.logged, class_="logged", title=measure.meaning),
        class_="metric",
        data_words=search_text,
    )


def rank_sections(page: Page) -> Iterator[Section]:
    """Yield the section of the charts over the ranks; none for a run of a single rank."""
    if page.ranks:
        charts = (el("div", chart(item)) for item in page.ranks)
        yield section("Ranks", el("div", *charts, class_="cards wide-cards"))


def data_sections(page: Page) -> Iterator[Section]:
    """Yield the sections of changes, texts, settings, environment, checkpoints and events."""
    if page.changes.rows:
        yield section("First and last", table(page.changes))
    if page.tables or page.texts:
        texts = [named_table(name, grid) for name, grid in (*page.tables, *page.texts)]
        yield section("Completions and texts", *texts)
    if page.settings.rows:
        yield section("Settings", table(page.settings), count=str(len(page.settings.rows)))
    if page.environment:
        yield section("Environment", *(named_table(name, grid) for name, grid in page.environment))
    if page.checkpoints.rows or page.checkpoints.note:
        count = str(len(page.checkpoints.rows))
        yield section("Checkpoints", table(page.checkpoints), count=count)
    if page.events.rows:
        yield section("Events", table(page.events), count=str(len(page.events.rows)))


def coverage_section(coverage: Unjudged) -> Section:
    """Return the section of rules that could not judge, and the metrics to log."""
    blocks: list[Html] = []
    if coverage.wishes:
        rows = tuple((entry.names, ", ".join(entry.rules)) for entry in coverage.wishes)
        blocks += [el("h4", "What to log"), table(Grid(("log", "then these could judge"), rows))]
    if coverage.reasons:
        rows = tuple((entry.text, entry.label) for entry in coverage.reasons)
        blocks.append(fold("Why each could not judge", table(Grid(("rules", "why"), rows))))
    if coverage.clear:
        names = join(*(join(el("code", name), " ") for name in coverage.clear))
        blocks.append(
            fold(
                f"{quantity(len(coverage.clear), 'rule')} looked and found nothing", el("p", names)
            )
        )
    if coverage.notes:
        title = f"{quantity(len(coverage.notes), 'note')} on how it was read"
        blocks.append(fold(title, details(coverage.notes)))
    return section("What could not be judged", *blocks)


def run(page: Page, number: int, *, several: bool) -> Html:
    """Return a run's page as HTML: the answer, then findings, metrics and the rest.

    With several runs the sections after the findings are folded.
    """
    sections = [
        findings(page),
        *([rollouts(page.proofs)] if page.proofs else []),
        measures(page.measures),
        *rank_sections(page),
        *data_sections(page),
        coverage_section(page.unjudged),
    ]
    links = (el("a", item.title, href=f"#{item.anchor(number)}") for item in sections)
    first, *remainder = (item.laid_out(number) for item in sections)
    if several:
        titles = ", ".join(item.title.lower() for item in sections[1:])
        remainder = [
            el(
                "details",
                el("summary", f"More of {page.name}: {titles}"),
                *remainder,
                class_="more",
            )
        ]
    return el(
        "section",
        *([el("h2", page.name, class_="run-name")] if several else []),
        answer(page),
        el("nav", *links, class_="nav", aria_label=f"sections of {page.name}"),
        first,
        *remainder,
        class_="run",
        id=f"run{number}",
    )


def overview(runs: Sequence[Page | Unread]) -> Html:
    """Return a table with a row for each run."""
    heads = ("verdict", "run", "findings", "top finding", *OUTCOME_HEADS)
    head = el("thead", el("tr", *(el("th", text, scope="col") for text in heads)))
    rows = []
    for number, page in enumerate(runs):
        if isinstance(page, Unread):
            badge = el("span", "unreadable", class_="verdict red")
            problem = (
                f"{page.error.problem}; {page.error.hint}"
                if page.error.hint
                else page.error.problem
            )
            row = el("tr", el("td", badge), el("td", page.name), el("td", problem, colspan=4))
        else:
            verdict = page.verdict.word
            top = page.findings[0] if page.findings else None
            row = el(
                "tr",
                el(
                    "td",
                    el("span", verdict.value, class_=f"verdict {phrases.VERDICT_COLOURS[verdict]}"),
                ),
                el("td", el("a", page.name, href=f"#run{number}")),
                el("td", page.counts),
                el("td", el("code", top.rule), join(f" {top.summary}")) if top else el("td", ""),
                *(
                    el("td", text, class_="number", data_head=head)
                    for head, text in zip(OUTCOME_HEADS, page.levels, strict=True)
                ),
            )
        rows.append(row)
    table = el("table", head, el("tbody", *rows), class_="runs")
    return el("div", table, class_="wide")
