"""A report as Markdown, for a pull request: the answer, what was found, what has changed.

A comment on GitHub holds 65,536 characters. What does not fit is left out, the evidence before
the answers and the last run before the first, and it is said what is.
"""

from collections.abc import Iterator, Sequence

from rlvitals.diagnosis.root_cause import Case
from rlvitals.rules.rule import Severity
from rlvitals.views import markdown, phrases
from rlvitals.views.markdown import code, safe
from rlvitals.views.report.contents import changes
from rlvitals.views.report.page import Subject, Unread

MOST = 60_000  # characters
SPARE = 400  # of them, for saying what is left out
MARKS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.NOTE: "⚪"}
CHANGES = 7
TRY = 160  # characters of a remedy in a table


def document(runs: Sequence[Subject | Unread]) -> str:
    """Write all runs: a table of them where they are several, then each."""
    head = [] if len(runs) == 1 else ["\n".join(_overview(runs))]
    short = ["\n".join(_short(one)) for one in runs]
    whole = ["\n".join(_evidence(one)) for one in runs]
    left = MOST - SPARE - sum(map(len, head))
    told: list[str] = []
    for text in short:
        if len(text) + 2 > left:
            break
        told.append(text)
        left -= len(text) + 2
    proven = 0
    for at, text in enumerate(whole[: len(told)]):
        if len(text) + 2 > left:
            break
        told[at] += f"\n\n{text}" if text else ""
        left -= len(text) + 2
        proven = at + 1
    return "\n\n".join([*head, *told, *_left_out(len(runs), len(told), proven)])


def _left_out(runs: int, told: int, proven: int) -> Iterator[str]:
    if told < runs:
        yield f"*{runs - told} more runs are left out: a comment holds no more.*"
    elif proven < runs:
        yield f"*The evidence of {runs - proven} runs is left out: a comment holds no more.*"


def _overview(runs: Sequence[Subject | Unread]) -> Iterator[str]:
    yield f"# {len(runs)} runs"
    yield ""
    yield "| verdict | run | findings | top finding |"
    yield "| --- | --- | --- | --- |"
    for at, one in enumerate(runs):
        row = _row(one)
        if at and len(row) * (len(runs) - at) > MOST:  # hundreds of runs: the first of them
            yield f"| | and {len(runs) - at} more | | |"
            return
        yield row


def _row(one: Subject | Unread) -> str:
    if isinstance(one, Unread):
        return f"| **unreadable** | {_name(one.name)} | | {safe(one.error.problem)} |"
    found = one.summary.found
    top = found.cases[0] if found.cases else None
    said = f"{_name(top.rule.name)} {safe(top.finding.summary)}" if top else ""
    word = found.verdict.word.value
    return f"| **{word}** | {_name(one.summary.name)} | {phrases.counts(found)} | {said} |"


def _short(one: Subject | Unread) -> Iterator[str]:
    """Write the answer, the findings in a line each, and what has changed."""
    if isinstance(one, Unread):
        yield markdown.part(one.name, one.error)
        return
    found = one.summary.found
    yield from markdown.answer(found)
    if found.cases:
        yield from ("", "| | finding | since | limit | try |", "| --- | --- | --- | --- | --- |")
        for case in found.cases:
            yield from _lines(case)
    told = changes(one.standing.changes[:CHANGES])
    if told.rows:
        yield from ("", f"| {' | '.join(told.heads)} |", "| --- | ---: | ---: | ---: |")
        for name, *numbers in told.rows:
            yield f"| {_name(name)} | {' | '.join(map(safe, numbers))} |"


def _lines(case: Case, depth: int = 0) -> Iterator[str]:
    finding = case.finding
    severity = finding.severity
    name = f"{'↳ ' * depth}{MARKS[severity]} {severity.name.lower()}"
    tries = next(iter(finding.remedies or case.rule.remedies), "")
    tries = tries if len(tries) <= TRY else f"{tries[: TRY - 1]}…"
    said = f"{_name(case.rule.name)} {safe(finding.summary)}"
    bound = f"{phrases.number(finding.bound.value)} ({safe(finding.bound.origin)})"
    yield f"| {name} | {said} | {finding.began:,} | {bound} | {safe(tries)} |"
    for symptom in case.symptoms:
        yield from _lines(symptom, depth + 1)


def _name(text: str) -> str:
    """Set a name in code: a table's cell would end at a bar even there."""
    return code(text).replace("|", "\\|")


def _evidence(one: Subject | Unread) -> Iterator[str]:
    """Write what proves the findings, folded."""
    if isinstance(one, Unread):
        return
    found = one.summary.found
    if found.cases:
        yield from ("<details>", f"<summary>Evidence: {phrases.counts(found)}</summary>")
        yield from markdown.evidence(found)
        yield from ("", "</details>", "")
    yield from markdown.rest(found)
