"""Lay out the header of a run's page: the vital signs."""

from collections.abc import Iterator
from itertools import groupby

from rlvitals.diagnosis.marks import Mark
from rlvitals.diagnosis.root_cause import Case
from rlvitals.rules.rule import Severity
from rlvitals.server.run_summary import lamp
from rlvitals.views import phrases
from rlvitals.views.report import sections
from rlvitals.views.report.markup import Html, el, join
from rlvitals.views.report.page import Page, Subject

LAMP_WORDS = {
    "good": "healthy", "watch": "needs a look", "bad": "broken", "unknown": "unknown",
    "pending": "pending",
}  # fmt: skip
MAX_CAUSES = 3  # named in the header
SHOWN_LABELS = {
    "steps": "since", "likely causes": "likely cause", "try": "try", "false alarms": "this alarm",
}  # fmt: skip


def vitals(page: Page, subject: Subject, headline: str, mark: Mark | None) -> Html:
    """Return the verdict, its cause, since when, what to try, and how often the alarm is wrong."""
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
        el("p", headline.removeprefix(f"{page.name} · "), class_="about"),
        title,
        _progress(subject),
        _mark(mark),
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
    rows: list[Html] = []
    for label, group in groupby(lines, key=lambda line: line.label):
        if label in SHOWN_LABELS:
            texts = [line.text for line in group]
            rows.append(el("div", el("dt", SHOWN_LABELS[label]), el("dd", texts[0])))
    other_links = list(_other_cases(subject, case))
    if other_links:
        rows.append(el("div", el("dt", "also"), el("dd", join(*other_links))))
    link = el("a", case.rule.name, href="#run0-findings", class_="rule", data_rule=case.rule.name)
    severity = case.finding.severity.name.lower()
    tag = el("span", severity, class_=f"tag {severity}")
    summary = case.finding.summary
    is_news = summary != subject.summary.found.verdict.why  # else it stands above
    text = [el("strong", summary), Html(" ")] if is_news else []
    head = el("p", tag, Html(" "), *text, link)
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
    texts = [status.state if status.state != "unknown" else "it may still be running"]
    total = f" of {status.total:,}" if status.total else ""
    step = el("span", f"{status.step:,}", class_="step", id="step")
    if status.eta is not None and status.state == "running":
        texts.append(f"{phrases.duration(status.eta)} left")
    if status.trained is not None and status.trained >= 1:
        texts.append(f"trained for {phrases.duration(status.trained)}")
    bar = Html("")
    if status.fraction is not None:
        share = round(100 * status.fraction)
        bar = el("span", el("span", style=f"width:{share}%"), class_="progress", role="progressbar",
                 aria_valuenow=share, aria_valuemin=0, aria_valuemax=100,
                 aria_label="steps done")  # fmt: skip
    unit = status.unit.removesuffix("s") if status.step == 1 and not total else status.unit
    return el("p", bar, step, join(f"{total} {unit} · {' · '.join(texts)}"), class_="state")


def _mark(mark: Mark | None) -> Html:
    """Return a person's label of the run; empty without one."""
    if mark is None:
        return Html("")
    texts = {
        "healthy": "marked healthy by a person",
        "broken": f"marked broken by a person: {mark.subject}",
        "wrong": f"{mark.subject} is marked a wrong alarm by a person",
    }
    return el("p", texts[mark.label], class_=f"mark-text {mark.label}")
