"""Write a diagnosis as Markdown for issues, pull requests and job summaries."""

import re
from collections.abc import Iterable

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import VitalsError, harmless
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.sparkline import sparkline


def diagnosis(result: Diagnosis) -> str:
    """Return the complete report."""
    return "\n".join([*answer(result), *evidence(result), "", *coverage_lines(result)])


def answer(diagnosis: Diagnosis) -> list[str]:
    """Return the lines of the verdict and its reasons."""
    icons = {"good": "✅", "bad": "❌", "neutral": "▫️", "unknown": "❔"}
    return [
        f"## {diagnosis.verdict.word.value.upper()}: {safe(diagnosis.verdict.why)}",
        "",
        f"{safe(phrases.headline(diagnosis))} · {phrases.counts(diagnosis)}",
        *filter(None, (phrases.liveness(diagnosis),)),
        "",
        *(f"- {icons[s.sign]} {safe(s.text)}" for s in diagnosis.tldr),
    ]


def evidence(diagnosis: Diagnosis) -> list[str]:
    """Return the lines of every finding."""
    return [line for case in diagnosis.cases for line in ("", *_case(case, diagnosis.trace))]


def run_section(name: str, result: Diagnosis | VitalsError) -> str:
    """Return the section of one run; of an unreadable one, its error."""
    if isinstance(result, Diagnosis):
        return diagnosis(result)
    return f"## UNREADABLE: {safe(name)}\n\n{safe(result.problem)} ({safe(result.where)})"


def _case(case: Case, trace: Trace) -> list[str]:
    severity = case.finding.severity.name.lower()
    lines = [f"### {severity}[`{case.rule.name}`] {safe(case.finding.summary)}", ""]
    if (curve := phrases.curve(case.finding, trace)) is not None:
        chart = sparkline(curve.series, trace.first_step, trace.last_step, 40)
        span = f"{phrases.number(chart.low)} to {phrases.number(chart.high)}"
        lines += [f"{code(curve.name)} `{chart.line}` {span}", ""]
    lines_of_case = phrases.details(case, trace)
    lines += [f"- **{line.label}**: {safe(line.text)}" for line in lines_of_case]
    lines += _symptoms(case.symptoms)
    return lines + [f"- **{line.label}**: {safe(line.text)}" for line in phrases.consequences(case)]


def _symptoms(symptoms: Iterable[Case], depth: int = 0) -> Iterable[str]:
    for case in symptoms:
        head = "**explains**: " if not depth else ""
        severity = case.finding.severity.name.lower()
        summary = safe(case.finding.summary)
        since = f"(since {case.finding.began:,})"
        yield f"{'  ' * depth}- {head}{severity}[`{case.rule.name}`] {summary} {since}"
        yield from _symptoms(case.symptoms, depth + 1)


def coverage_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the lines on forecasts, coverage, settings and unmapped keys."""
    trace = diagnosis.trace
    lines: list[str] = []
    if diagnosis.outlook is not None:
        lines += [f"**Ahead**: {safe(diagnosis.outlook.sentence)}", ""]
    lines += [
        f"- taken back: {safe(phrases.retraction_text(retraction))}"
        for retraction in diagnosis.retracted
    ]
    lines += [""] if diagnosis.retracted else []
    lines += [f"**Coverage**: {safe(phrases.coverage(diagnosis))}", "", "<details>"]
    lines += ["<summary>What was clear, what could not be judged, how it was read</summary>", ""]
    lines += [f"- note: {safe(note)}" for note in phrases.notes(trace)]
    if unknown := phrases.unknown_settings(diagnosis):
        lines.append(f"- settings of this run that are not known: {unknown}")
    if text := phrases.against_baseline(diagnosis):
        lines.append(f"- baseline: {safe(text)}")
    if text := phrases.muted_text(diagnosis):
        lines.append(f"- muted: {safe(text)}")
    if diagnosis.clear:
        lines.append(f"- clear: {', '.join(sorted(f'`{rule.name}`' for rule in diagnosis.clear))}")
    for reason, names in phrases.undecided_rules(diagnosis).items():
        rules = ", ".join(f"`{name}`" for name in names)
        lines.append(f"- cannot judge: {safe(reason)}: {rules}")
    if unmapped := phrases.unmapped_text(trace):
        lines.append(f"- not mapped: {safe(unmapped)}")
    return [*lines, "", "</details>"]


def list_messages(messages: Iterable[str]) -> list[str]:
    """Return the messages on all runs as one list, or nothing."""
    lines = [f"- {safe(line)}" for line in messages]
    return ["\n".join(lines)] if lines else []


def safe(text: str) -> str:
    """Escape Markdown and HTML in a text that may come from a log."""
    escaped = re.sub(r"([\\`*\[\]<>|#~])", r"\\\1", harmless(text))
    # An underscore at the edge of a word opens emphasis. "@" notifies a user.
    escaped = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("@", "&#64;")


def code(text: str) -> str:
    """Format a name as code, whatever its characters."""
    return f"`{harmless(text).replace('`', chr(39))}`"
