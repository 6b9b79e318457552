"""A diagnosis as Markdown: for an issue, a pull request, a job's summary."""

import re
from collections.abc import Iterable

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import VitalsError, harmless
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.sparkline import sparkline

CHART = 40  # columns of a sparkline
MARKS = {"good": "✅", "bad": "❌", "neutral": "▫️", "unknown": "❔"}


def diagnosis(found: Diagnosis) -> str:
    """Write the whole report."""
    return "\n".join([*answer(found), *evidence(found), "", *rest(found)])


def answer(found: Diagnosis) -> list[str]:
    """Say whether it is learning, and what that rests on."""
    return [
        f"## {found.verdict.word.value.upper()}: {safe(found.verdict.why)}",
        "",
        f"{safe(phrases.headline(found))} · {phrases.counts(found)}",
        *filter(None, (phrases.liveness(found),)),
        "",
        *(f"- {MARKS[s.sign]} {safe(s.text)}" for s in found.tldr),
    ]


def evidence(found: Diagnosis) -> list[str]:
    """Tell every finding in full."""
    return [line for case in found.cases for line in ("", *_case(case, found.trace))]


def part(name: str, found: Diagnosis | VitalsError) -> str:
    """Write one of several runs; one that cannot be read says why."""
    if isinstance(found, Diagnosis):
        return diagnosis(found)
    return f"## UNREADABLE: {safe(name)}\n\n{safe(found.problem)} ({safe(found.where)})"


def _case(case: Case, trace: Trace) -> list[str]:
    severity = case.finding.severity.name.lower()
    lines = [f"### {severity}[`{case.rule.name}`] {safe(case.finding.summary)}", ""]
    if (curve := phrases.curve(case.finding, trace)) is not None:
        drawn = sparkline(curve.series, trace.first_step, trace.last_step, CHART)
        span = f"{phrases.number(drawn.low)} to {phrases.number(drawn.high)}"
        lines += [f"{code(curve.name)} `{drawn.line}` {span}", ""]
    said = phrases.details(case, trace)
    lines += [f"- **{line.label}**: {safe(line.text)}" for line in said]
    lines += _symptoms(case.symptoms)
    return lines + [f"- **{line.label}**: {safe(line.text)}" for line in phrases.consequences(case)]


def _symptoms(symptoms: Iterable[Case], depth: int = 0) -> Iterable[str]:
    for case in symptoms:
        head = "**it explains**: " if not depth else ""
        severity = case.finding.severity.name.lower()
        summary = safe(case.finding.summary)
        since = f"(since {case.finding.began:,})"
        yield f"{'  ' * depth}- {head}{severity}[`{case.rule.name}`] {summary} {since}"
        yield from _symptoms(case.symptoms, depth + 1)


def rest(found: Diagnosis) -> list[str]:
    """Tell what is known of the reading, and what is not known of the run."""
    trace = found.trace
    lines: list[str] = []
    if found.outlook is not None:
        lines += [f"**Ahead**: {safe(found.outlook.sentence)}", ""]
    lines += [f"- taken back: {safe(phrases.retracted(one))}" for one in found.retracted]
    lines += [""] if found.retracted else []
    lines += [f"**Coverage**: {safe(phrases.coverage(found))}", "", "<details>"]
    lines += ["<summary>What was clear, what could not be judged, how it was read</summary>", ""]
    lines += [f"- note: {safe(note)}" for note in phrases.notes(trace)]
    if unknown := phrases.unknown_settings(found):
        lines.append(f"- settings of this run that are not known: {unknown}")
    if text := phrases.against_baseline(found):
        lines.append(f"- baseline: {safe(text)}")
    if text := phrases.muted(found):
        lines.append(f"- muted: {safe(text)}")
    if found.clear:
        lines.append(f"- clear: {', '.join(sorted(f'`{rule.name}`' for rule in found.clear))}")
    for why, names in phrases.undecided(found).items():
        rules = ", ".join(f"`{name}`" for name in names)
        lines.append(f"- cannot judge: {safe(why)}: {rules}")
    if unmapped := phrases.unmapped(trace):
        lines.append(f"- not mapped: {safe(unmapped)}")
    return [*lines, "", "</details>"]


def listed(said: Iterable[str]) -> list[str]:
    """Write what is to be said of all runs together: one list, or nothing."""
    lines = [f"- {safe(line)}" for line in said]
    return ["\n".join(lines)] if lines else []


def safe(text: str) -> str:
    """Escape what Markdown or HTML would obey in a text that a log may have written."""
    escaped = re.sub(r"([\\`*\[\]<>|#~])", r"\\\1", harmless(text))
    # An underscore inside a word is plain; at its edge it would open emphasis. "@" would notify.
    escaped = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("@", "&#64;")


def code(text: str) -> str:
    """Set a name in code, whatever it holds."""
    return f"`{harmless(text).replace('`', chr(39))}`"
