"""A diagnosis for the terminal: the answer first, then the evidence, then what is not known."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rlvitals.diagnosis import remedies
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.errors import harmless
from rlvitals.rules.rule import Curve, Finding, Rule
from rlvitals.types import Trace
from rlvitals.views import phrases
from rlvitals.views.console import PLAIN, grid, plain
from rlvitals.views.sparkline import sparkline

LABEL = 14  # columns: "speaks against"
INDENT = 2
CHART = 48  # columns of a sparkline, where there is room
NAMED = 12  # rules that wait for the same: more are a wall of names
ALL = "named by `rlvitals rules --coverage PATH`"


def diagnosis(found: Diagnosis, width: int = PLAIN) -> str:
    """Write the whole report as plain text."""
    return plain(report(found), width=width)


def finding(rule: Rule, found: Finding, trace: Trace, width: int = PLAIN) -> str:
    """Write one finding as plain text: a rule's golden."""
    tries, _ = remedies.fill_in(found.remedies or rule.remedies, trace)
    return plain(_case(Case(rule, replace(found, remedies=tries)), trace), width=width)


def report(found: Diagnosis) -> RenderableType:
    """Lay the whole report out; every part is a block of its own."""
    blocks: list[RenderableType] = [_answer(found)]
    blocks += [_case(case, found.trace) for case in found.cases]
    blocks += [_rest(found)]
    return Group(*_spaced(blocks))


def _answer(found: Diagnosis) -> RenderableType:
    word = found.verdict.word
    colour = phrases.VERDICT[word]
    badge = f" {word.value.upper()} "
    head = grid(len(badge))
    head.add_row(
        Text(badge, f"bold {phrases.INK[colour]} on {colour}"),
        Text(harmless(found.verdict.why), "bold"),
    )
    worst = "dim" if found.worst is None else phrases.SEVERITY[found.worst]
    about = Text.assemble(
        (phrases.counts(found), worst), (f" · {harmless(phrases.headline(found))}", "dim")
    )
    lines = grid(1)
    for sentence in found.tldr:
        style = phrases.COLOURS[sentence.sign]
        lines.add_row(Text(phrases.SIGNS[sentence.sign], style), Text(harmless(sentence.text)))
    unknown = phrases.liveness(found)
    known = [Text(unknown, "dim")] if unknown else []
    return Group(head, about, *known, Text(), lines)


def _case(case: Case, trace: Trace) -> RenderableType:
    colour = phrases.SEVERITY[case.finding.severity]
    rows = grid(LABEL)
    label = ""
    curve = phrases.curve(case.finding, trace)
    chart = None if curve is None else Chart(curve, case.finding.began, trace, colour)
    for line in phrases.details(case, trace):
        if chart is not None and line.label == "limit":
            rows.add_row(Text(), chart)
        # A label stands once over its lines: three remedies are one "try".
        shown = "" if line.label == label else line.label
        label = line.label
        rows.add_row(Text(shown, "dim"), Text(harmless(line.text)))
    if case.symptoms:
        rows.add_row(Text("it explains", "dim"), Group(*_symptoms(case.symptoms)))
    for line in phrases.consequences(case):
        shown = "" if line.label == label else line.label
        label = line.label
        rows.add_row(Text(shown, "dim"), Text(harmless(line.text)))
    return Group(_title(case), Padding(rows, (0, 0, 0, INDENT), expand=False))


@dataclass(frozen=True, slots=True)
class Chart:
    """What shows a finding, over the run, with the onset marked below it."""

    curve: Curve
    began: int
    trace: Trace
    colour: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Draw as wide as there is room."""
        name, began = self.curve.name, self.began
        first, last = self.trace.first_step, self.trace.last_step
        width = min(CHART, options.max_width)
        drawn = sparkline(self.curve.series, first, last, width, began)
        span = f"{phrases.number(drawn.low)} to {phrases.number(drawn.high)}"
        yield Text(f"{harmless(name)}: {'no number' if isnan(drawn.low) else span}", "dim")
        onset = len(drawn.line) if drawn.mark is None else drawn.mark
        yield Text.assemble(drawn.line[:onset], (drawn.line[onset:], self.colour))
        if drawn.mark is not None:
            label = f"▲ {began:,}"
            fits = drawn.mark + len(label) <= options.max_width
            start = drawn.mark if fits else drawn.mark + 1 - len(label)
            label = label if fits else f"{began:,} ▲"
            yield Text(" " * max(start, 0) + label, self.colour)


def _title(case: Case) -> Text:
    severity = case.finding.severity
    return Text.assemble(
        (f"{severity.name.lower()}[{case.rule.name}]", f"bold {phrases.SEVERITY[severity]}"),
        " ",
        (harmless(case.finding.summary), "bold"),
    )


def _symptoms(symptoms: Iterable[Case], depth: int = 0) -> list[RenderableType]:
    """One line each: what it explains, since when."""
    lines: list[RenderableType] = []
    for case in symptoms:
        severity = case.finding.severity
        text = Text.assemble(
            (f"{severity.name.lower()}[{case.rule.name}]", phrases.SEVERITY[severity]),
            f" {harmless(case.finding.summary)}",
            (f" (since {case.finding.began:,})", "dim"),
        )
        lines.append(Padding(text, (0, 0, 0, 2 * depth), expand=False))
        lines += _symptoms(case.symptoms, depth + 1)
    return lines


def _rest(found: Diagnosis) -> RenderableType:
    """What is known of the reading, and what is not known of the run."""
    rows = grid(LABEL + INDENT)
    trace = found.trace
    _beside(rows, found)
    rows.add_row(Text("coverage", "dim"), Text(harmless(phrases.coverage(found))))
    if found.clear:
        names = ", ".join(sorted(rule.name for rule in found.clear))
        rows.add_row(Text("clear", "dim"), Text(names))
    for i, (why, waiting) in enumerate(phrases.undecided(found).items()):
        named = ", ".join(waiting) if len(waiting) <= NAMED else f"{len(waiting)} rules ({ALL})"
        text = Text.assemble(harmless(why), (f": {named}", "dim"))
        rows.add_row(Text("" if i else "cannot judge", "dim"), text)
    if unknown := phrases.unknown_settings(found):
        rows.add_row(Text("not known", "dim"), Text(f"settings of this run: {unknown}"))
    if unmapped := phrases.unmapped(trace):
        rows.add_row(Text("not mapped", "dim"), Text(harmless(unmapped)))
    return rows


def _beside(rows: Table, found: Diagnosis) -> None:
    """Add what stands beside the findings: pace, what was taken back, notes, what is known."""
    if found.outlook is not None:
        rows.add_row(Text("ahead", "dim"), Text(harmless(found.outlook.sentence)))
    for i, retraction in enumerate(found.retracted):
        text = Text(harmless(phrases.retracted(retraction)))
        rows.add_row(Text("" if i else "taken back", "dim"), text)
    for i, note in enumerate(phrases.notes(found.trace)):
        rows.add_row(Text("" if i else "notes", "dim"), Text(harmless(note)))
    if said := phrases.against_baseline(found):
        rows.add_row(Text("baseline", "dim"), Text(harmless(said)))
    if said := phrases.muted(found):
        rows.add_row(Text("muted", "dim"), Text(harmless(said)))


def _spaced(blocks: list[RenderableType]) -> list[RenderableType]:
    spaced: list[RenderableType] = []
    for block in blocks:
        spaced += [block, Text()]
    return spaced[:-1]
