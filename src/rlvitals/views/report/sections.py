"""The parts of a run's page, laid out: what comes first answers, what follows proves."""

from collections.abc import Iterator, Sequence

from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Severity
from rlvitals.views import phrases
from rlvitals.views.report.elements import (
    Section,
    chart,
    details,
    doc,
    folded,
    part,
    section,
    table,
)
from rlvitals.views.report.markup import Html, el, joined
from rlvitals.views.report.page import Found, Grid, Measure, Page, Unjudged, Unread

LEVELS = ("outcome at best", "at last")  # of what a run is judged by


def answer(page: Page) -> Html:
    """Say whether it is learning, and what that rests on."""
    word = page.verdict.word
    colour = phrases.VERDICT[word]
    return el(
        "header",
        el("p", page.headline.removeprefix(f"{page.name} · "), class_="about"),
        el(
            "h2",
            el("span", word.value, class_=f"verdict {colour}"),
            Html(" "),
            el("span", page.verdict.why, class_="why"),
        ),
        el("ul", *(_sentence(one) for one in page.tldr if _new(one, page)), class_="tldr"),
        el(
            "dl",
            *(el("div", el("dt", one.label), el("dd", one.text)) for one in page.numbers),
            class_="numbers",
        ),
        chart(page.outcome),
        el("p", page.unjudged.coverage, class_="about"),
        class_="answer",
    )


def _new(one: Sentence, page: Page) -> bool:
    """Tell whether a sentence says more than the verdict above it."""
    return one.text.rstrip(".").lower() != page.verdict.why.rstrip(".").lower()


def _sentence(one: Sentence) -> Html:
    sign = el("span", phrases.SIGNS[one.sign], class_="sign", aria_label=one.sign)
    return el("li", sign, joined(" ", one.text), class_=one.sign)


def findings(page: Page) -> Section:
    """Tell every finding, causes before what they explain."""
    if not page.findings:
        unknown = page.verdict.word is Word.UNKNOWN
        said = "None, but too little was logged to judge by: this is not health."
        said = said if unknown else "None."
        return section("Findings", el("p", said), count="0")
    told = (_finding(one) for one in page.findings)
    return section("Findings", *told, count=page.counts)


def _finding(one: Found, *, folded: bool = False) -> Html:
    """Lay a finding out; a note, and what a cause explains, is a line until it is unfolded."""
    severity = one.severity.name.lower()
    head = joined(
        el("span", severity, class_=f"tag {severity}"),
        " ",
        el("span", one.summary, class_="said"),
        " ",
        el("code", one.rule),
    )
    parts = [el("p", one.when, class_="when"), chart(one.chart), details(one.lines)]
    if one.tries:
        tries = el("ol", *(el("li", text) for text in one.tries))
        parts.append(el("div", el("h5", "What to try"), tries, class_="tries"))
    if one.symptoms:
        parts.append(el("h5", "It explains", class_="explains"))
        parts += [_finding(symptom, folded=True) for symptom in one.symptoms]
    if one.doc.strip():
        parts.append(
            el("details", el("summary", f"About {one.rule}, and when it is wrong"), doc(one.doc))
        )
    if folded or one.severity is Severity.NOTE:
        parts = [el("details", el("summary", head), *parts)]
    else:
        parts.insert(0, el("h4", head))
    return el("article", *parts, class_=f"finding {severity}")


def measures(page: Page) -> Section:
    """Draw every metric, kind by kind, and let them be searched."""
    total = sum(len(found) for _, found in page.measures)
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
    parts: list[Html] = []
    for title, found in page.measures:
        cards = el("div", *map(_measure, found), class_="cards")
        parts.append(el("section", el("h4", title), cards, class_="kind"))
    return section("Metrics", bar, *parts, count=str(total))


def _measure(one: Measure) -> Html:
    title = one.chart.panel.title
    name = [] if one.name == title else [el("code", one.name), Html(" ")]
    words = f"{one.name} {title} {one.logged} {one.meaning}".lower()
    return el(
        "div",
        chart(one.chart),
        el("p", *name, one.logged, class_="logged", title=one.meaning),
        class_="metric",
        data_words=words,
    )


def beside(page: Page) -> Iterator[Section]:
    """Go through what lies beside the numbers."""
    if page.changes.rows:
        yield section("First and last", table(page.changes))
    if page.tables or page.texts:
        told = [part(name, held) for name, held in (*page.tables, *page.texts)]
        yield section("Completions and texts", *told)
    if page.settings.rows:
        yield section("Settings", table(page.settings), count=str(len(page.settings.rows)))
    if page.environment:
        yield section("Environment", *(part(name, held) for name, held in page.environment))
    if page.checkpoints.rows or page.checkpoints.note:
        count = str(len(page.checkpoints.rows))
        yield section("Checkpoints", table(page.checkpoints), count=count)
    if page.events.rows:
        yield section("Events", table(page.events), count=str(len(page.events.rows)))


def unjudged(found: Unjudged) -> Section:
    """Say what could not be judged, and what to log so that it could."""
    parts: list[Html] = []
    if found.wishes:
        rows = tuple((one.names, ", ".join(one.rules)) for one in found.wishes)
        parts += [el("h4", "What to log"), table(Grid(("log", "then these could judge"), rows))]
    if found.reasons:
        rows = tuple((one.text, one.label) for one in found.reasons)
        parts.append(folded("Why each could not judge", table(Grid(("rules", "why"), rows))))
    if found.clear:
        names = joined(*(joined(el("code", name), " ") for name in found.clear))
        parts.append(folded(f"{len(found.clear)} rules looked and found nothing", el("p", names)))
    if found.notes:
        count = len(found.notes)
        said = f"{count} note{'s' if count > 1 else ''} on how it was read"
        parts.append(folded(said, details(found.notes)))
    return section("What could not be judged", *parts)


def run(page: Page, number: int, *, several: bool) -> Html:
    """Lay out all that is told of a run: the answer, then findings, metrics and the rest.

    Of several runs the rest is folded: whoever looks for one run is not to scroll past another.
    """
    found = [findings(page), measures(page), *beside(page), unjudged(page.unjudged)]
    links = (el("a", one.title, href=f"#{one.anchor(number)}") for one in found)
    first, *rest = (one.laid_out(number) for one in found)
    if several:
        told = ", ".join(one.title.lower() for one in found[1:])
        rest = [el("details", el("summary", f"More of {page.name}: {told}"), *rest, class_="more")]
    return el(
        "section",
        *([el("h2", page.name, class_="run-name")] if several else []),
        answer(page),
        el("nav", *links, class_="nav"),
        first,
        *rest,
        class_="run",
        id=f"run{number}",
    )


def overview(runs: Sequence[Page | Unread]) -> Html:
    """Tell many runs in a line each."""
    heads = ("verdict", "run", "findings", "top finding", *LEVELS)
    head = el("thead", el("tr", *(el("th", text, scope="col") for text in heads)))
    rows = [_row(one, at) for at, one in enumerate(runs)]
    table = el("table", head, el("tbody", *rows), class_="runs")
    return el("div", table, class_="wide")


def _row(one: Page | Unread, number: int) -> Html:
    if isinstance(one, Unread):
        badge = el("span", "unreadable", class_="verdict red")
        told = f"{one.error.problem}; {one.error.hint}" if one.error.hint else one.error.problem
        return el("tr", el("td", badge), el("td", one.name), el("td", told, colspan=4))
    word = one.verdict.word
    top = one.findings[0] if one.findings else None
    return el(
        "tr",
        el("td", el("span", word.value, class_=f"verdict {phrases.VERDICT[word]}")),
        el("td", el("a", one.name, href=f"#run{number}")),
        el("td", one.counts),
        el("td", el("code", top.rule), joined(f" {top.summary}")) if top else el("td", ""),
        *(
            el("td", text, class_="number", data_head=head)
            for head, text in zip(LEVELS, one.levels, strict=True)
        ),
    )
