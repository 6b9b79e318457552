"""Write a report as Markdown for a pull request: verdict, findings, changes.

A comment on GitHub is limited to 65,536 characters. Evidence is left out before verdicts, and the
last runs before the first; a remark states what is missing.
"""

from collections.abc import Iterator, Sequence

from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import quantity
from rlvitals.rules.rule import Severity
from rlvitals.views import markdown, phrases
from rlvitals.views.markdown import code, safe
from rlvitals.views.report.contents import changes
from rlvitals.views.report.page import Subject, Unread

MAX_COMMENT_CHARS = 60_000  # GitHub allows 65,536
MAX_REMEDY_CHARS = 160  # of a remedy in a table


def document(runs: Sequence[Subject | Unread]) -> str:
    """Return all runs as Markdown, after a table if there are several."""
    head = [] if len(runs) == 1 else ["\n".join(_overview(runs))]
    short = ["\n".join(_short(run)) for run in runs]
    evidence = ["\n".join(_evidence(run)) for run in runs]
    # 400 characters are reserved for the remark on missing parts
    room = MAX_COMMENT_CHARS - 400 - sum(map(len, head))
    texts: list[str] = []
    for text in short:
        if len(text) + 2 > room:
            break
        texts.append(text)
        room -= len(text) + 2
    evidence_count = 0
    for index, text in enumerate(evidence[: len(texts)]):
        if len(text) + 2 > room:
            break
        texts[index] += f"\n\n{text}" if text else ""
        room -= len(text) + 2
        evidence_count = index + 1
    total = len(runs)
    text_count = len(texts)
    notes: list[str] = []
    if text_count < total:
        notes.append(
            f"*Left out, as a comment holds no more: {quantity(total - text_count, 'run')}.*"
        )
    elif evidence_count < total:
        missing = total - evidence_count
        notes.append(
            f"*The evidence of {quantity(missing, 'run')} is left out: a comment holds no more.*"
        )
    return "\n\n".join([*head, *texts, *notes])


def _overview(runs: Sequence[Subject | Unread]) -> Iterator[str]:
    yield f"# {quantity(len(runs), 'run')}"
    yield ""
    yield "| verdict | run | findings | top finding |"
    yield "| --- | --- | --- | --- |"
    for index, run in enumerate(runs):
        row = _row(run)
        if (
            index and len(row) * (len(runs) - index) > MAX_COMMENT_CHARS
        ):  # hundreds of runs: the first of them
            yield f"| | and {len(runs) - index} more | | |"
            return
        yield row


def _row(run: Subject | Unread) -> str:
    if isinstance(run, Unread):
        return f"| **unreadable** | {_name(run.name)} | | {safe(run.error.problem)} |"
    diagnosis = run.summary.found
    top = diagnosis.cases[0] if diagnosis.cases else None
    summary = f"{_name(top.rule.name)} {safe(top.finding.summary)}" if top else ""
    verdict = diagnosis.verdict.word.value
    return (
        f"| **{verdict}** | {_name(run.summary.name)} | {phrases.counts(diagnosis)} | {summary} |"
    )


def _short(run: Subject | Unread) -> Iterator[str]:
    """Yield the lines of the verdict, the findings and the changes."""
    if isinstance(run, Unread):
        yield markdown.run_section(run.name, run.error)
        return
    diagnosis = run.summary.found
    yield from markdown.answer(diagnosis)
    if diagnosis.cases:
        yield from ("", "| | finding | since | limit | try |", "| --- | --- | --- | --- | --- |")
        for case in diagnosis.cases:
            yield from _lines(case)
    grid = changes(run.standing.changes[:7])
    if grid.rows:
        yield from ("", f"| {' | '.join(grid.heads)} |", "| --- | ---: | ---: | ---: |")
        for name, *numbers in grid.rows:
            yield f"| {_name(name)} | {' | '.join(map(safe, numbers))} |"


def _lines(case: Case, depth: int = 0) -> Iterator[str]:
    finding = case.finding
    severity = finding.severity
    icons = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.NOTE: "⚪"}
    name = f"{'↳ ' * depth}{icons[severity]} {severity.name.lower()}"
    tries = next(iter(finding.remedies or case.rule.remedies), "")
    tries = tries if len(tries) <= MAX_REMEDY_CHARS else f"{tries[: MAX_REMEDY_CHARS - 1]}…"
    summary = f"{_name(case.rule.name)} {safe(finding.summary)}"
    bound = f"{phrases.number(finding.bound.value)} ({safe(finding.bound.origin)})"
    bound = bound if finding.has_limit else ""
    yield f"| {name} | {summary} | {finding.began:,} | {bound} | {safe(tries)} |"
    for symptom in case.symptoms:
        yield from _lines(symptom, depth + 1)


def _name(text: str) -> str:
    """Format a name as code, with bars escaped for table cells."""
    return code(text).replace("|", "\\|")


def _evidence(run: Subject | Unread) -> Iterator[str]:
    """Yield the lines of the folded evidence."""
    if isinstance(run, Unread):
        return
    diagnosis = run.summary.found
    if diagnosis.cases:
        yield from ("<details>", f"<summary>Evidence: {phrases.counts(diagnosis)}</summary>")
        yield from markdown.evidence(diagnosis)
        yield from ("", "</details>", "")
    yield from markdown.coverage_lines(diagnosis)
