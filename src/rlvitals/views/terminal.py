"""Render a diagnosis for the terminal: answer, evidence, coverage."""

from collections.abc import Iterable
from dataclasses import replace
from math import isnan

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis import remedies
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import harmless, quantity
from rlvitals.rules.rule import Curve, Finding, Rule
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.console import DEFAULT_WIDTH, grid, plain
from rlvitals.views.sparkline import sparkline

LABEL_COLUMNS = 14  # fits "speaks against"
FINDING_INDENT = 2


def diagnosis(result: Diagnosis, width: int = DEFAULT_WIDTH, *, verbose: bool = False) -> str:
    """Return the report as plain text."""
    return plain(report(result, verbose=verbose), width=width)


def finding(rule: Rule, result: Finding, trace: Trace, width: int = DEFAULT_WIDTH) -> str:
    """Return one finding as plain text, as in a rule's golden file."""
    tries, _ = remedies.fill_in(result.remedies or rule.remedies, trace)
    return plain(_case(Case(rule, replace(result, remedies=tries)), trace), width=width)


def report(diagnosis: Diagnosis, *, verbose: bool = False) -> RenderableType:
    """Render the report, with a blank line between parts.

    `verbose`: with what is not logged, and each rule that could not judge for want of it.
    """
    verdict = diagnosis.verdict.word
    colour = phrases.VERDICT_COLOURS[verdict]
    badge = f" {verdict.value.upper()} "
    head = grid(len(badge))
    head.add_row(
        Text(badge, f"bold {phrases.BADGE_INK[colour]} on {colour}"),
        Text(harmless(diagnosis.verdict.why), "bold"),
    )
    worst = "dim" if diagnosis.worst is None else phrases.SEVERITY_COLOURS[diagnosis.worst]
    summary = Text.assemble(
        (phrases.counts(diagnosis), worst), (f" · {harmless(phrases.headline(diagnosis))}", "dim")
    )
    lines = grid(1)
    for sentence in diagnosis.tldr if verbose else phrases.short_summary(diagnosis):
        style = phrases.SIGN_COLOURS[sentence.sign]
        lines.add_row(Text(phrases.SIGN_MARKS[sentence.sign], style), Text(harmless(sentence.text)))
    unknown = phrases.liveness(diagnosis)
    liveness = [Text(unknown, "dim")] if unknown else []
    answer = Group(head, summary, *liveness, Text(), lines)
    blocks: list[RenderableType] = [answer]
    blocks += [_case(case, diagnosis.trace) for case in diagnosis.cases]
    blocks += [_coverage_rows(diagnosis, verbose=verbose)]
    return Group(*[item for block in blocks for item in (block, Text())][:-1])


def _case(case: Case, trace: Trace) -> RenderableType:
    colour = phrases.SEVERITY_COLOURS[case.finding.severity]
    rows = grid(LABEL_COLUMNS)
    label = ""
    curve = phrases.curve(case.finding, trace)
    chart = None if curve is None else Chart(curve, case.finding.began, trace, colour)
    for line in phrases.details(case, trace):
        # A label is written once for consecutive lines: three remedies share one "try".
        row_label = "" if line.label == label else line.label
        label = line.label
        rows.add_row(Text(row_label, "dim"), Text(harmless(line.text)))
        if chart is not None and line.label == "steps":
            rows.add_row(Text(), chart)
    if case.symptoms:
        rows.add_row(Text("explains", "dim"), Group(*_symptoms(case.symptoms)))
    for line in phrases.consequences(case):
        row_label = "" if line.label == label else line.label
        label = line.label
        rows.add_row(Text(row_label, "dim"), Text(harmless(line.text)))
    title = Text.assemble(
        (f"{case.finding.severity.name.lower()}[{case.rule.name}]", f"bold {colour}"),
        " ",
        (harmless(case.finding.summary), "bold"),
    )
    return Group(title, Padding(rows, (0, 0, 0, FINDING_INDENT), expand=False))


@dataclass(frozen=True, slots=True)
class Chart:
    """The sparkline of a finding, with the onset marked below."""

    curve: Curve
    began: int
    trace: Trace
    colour: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the sparkline in the available width."""
        name, onset_step = self.curve.name, self.began
        first, last = self.trace.first_step, self.trace.last_step
        width = min(48, options.max_width)
        line = sparkline(self.curve.series, first, last, width, onset_step)
        span = f"{phrases.number(line.low)} to {phrases.number(line.high)}"
        yield Text(f"{harmless(name)}: {'no number' if isnan(line.low) else span}", "dim")
        onset = len(line.line) if line.mark is None else line.mark
        yield Text.assemble(line.line[:onset], (line.line[onset:], self.colour))
        if line.mark is not None:
            label = f"▲ {onset_step:,}"
            fits = line.mark + len(label) <= options.max_width
            start = line.mark if fits else line.mark + 1 - len(label)
            label = label if fits else f"{onset_step:,} ▲"
            yield Text(" " * max(start, 0) + label, self.colour)


def _symptoms(symptoms: Iterable[Case], depth: int = 0) -> list[RenderableType]:
    """Return a line for each symptom and its own symptoms."""
    lines: list[RenderableType] = []
    for case in symptoms:
        severity = case.finding.severity
        text = Text.assemble(
            (f"{severity.name.lower()}[{case.rule.name}]", phrases.SEVERITY_COLOURS[severity]),
            f" {harmless(case.finding.summary)}",
            (f" (since {case.finding.began:,})", "dim"),
        )
        lines.append(Padding(text, (0, 0, 0, 2 * depth), expand=False))
        lines += _symptoms(case.symptoms, depth + 1)
    return lines


def _coverage_rows(diagnosis: Diagnosis, *, verbose: bool) -> RenderableType:
    """Render context, coverage, missing settings and unmapped keys."""
    rows = grid(LABEL_COLUMNS + FINDING_INDENT)
    trace = diagnosis.trace
    _add_context_rows(rows, diagnosis, verbose=verbose)
    rows.add_row(Text("coverage", "dim"), Text(harmless(phrases.coverage(diagnosis))))
    if diagnosis.clear:
        names = ", ".join(sorted(rule.name for rule in diagnosis.clear))
        rows.add_row(Text("clear", "dim"), Text(names))
    if verbose:
        for i, (reason, waiting) in enumerate(phrases.undecided_rules(diagnosis).items()):
            names_text = (
                ", ".join(waiting)
                if len(waiting) <= 12  # more are counted
                else f"{quantity(len(waiting), 'rule')} (named by `rlvitals rules --coverage PATH`)"
            )
            cell = Text.assemble(harmless(reason), (f": {names_text}", "dim"))
            rows.add_row(Text("" if i else "cannot judge", "dim"), cell)
        if unknown := phrases.unknown_settings(diagnosis):
            rows.add_row(Text("not known", "dim"), Text(f"settings of this run: {unknown}"))
    elif diagnosis.undecided:
        count = quantity(len(diagnosis.undecided), "rule")
        text = f"{count}: -v prints what is missing"
        rows.add_row(Text("cannot judge", "dim"), Text(text))
    if unmapped := phrases.unmapped_text(trace):
        rows.add_row(Text("not mapped", "dim"), Text(harmless(unmapped)))
    return rows


def _add_context_rows(rows: Table, diagnosis: Diagnosis, *, verbose: bool) -> None:
    """Add rows on the forecast, retractions, notes, the baseline and mutes."""
    if diagnosis.outlook is not None:
        rows.add_row(Text("ahead", "dim"), Text(harmless(diagnosis.outlook.sentence)))
    for i, retraction in enumerate(diagnosis.retracted):
        text = Text(harmless(phrases.retraction_text(retraction)))
        rows.add_row(Text("" if i else "taken back", "dim"), text)
    for i, note in enumerate(phrases.notes(diagnosis.trace, provenance=verbose)):
        rows.add_row(Text("" if i else "notes", "dim"), Text(harmless(note)))
    if sentence := phrases.against_baseline(diagnosis):
        rows.add_row(Text("baseline", "dim"), Text(harmless(sentence)))
    if sentence := phrases.muted_text(diagnosis):
        rows.add_row(Text("muted", "dim"), Text(harmless(sentence)))
