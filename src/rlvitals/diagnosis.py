"""Trace in, Diagnosis out. Pure: no files, no clock, no colours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlvitals.coverage import Coverage, coverage
from rlvitals.records import Trace
from rlvitals.rules import CATALOGUE, seams
from rlvitals.rules.rule import Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.thinned import thinned
from rlvitals.tldr import Sentence, tldr
from rlvitals.verdict import Verdict, Word, verdict


@dataclass(frozen=True, slots=True)
class Case:
    """A finding and the findings it explains."""

    rule: Rule
    finding: Finding
    symptoms: tuple["Case", ...] = ()

    @property
    def severity(self) -> Severity:
        """The worst of the finding and its symptoms."""
        return max((self.finding.severity, *(s.severity for s in self.symptoms)))


@dataclass(frozen=True, slots=True)
class Muted:
    """A finding that a person has muted, and why."""

    rule: Rule
    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """Every rule that applies ends in one of `cases`, `muted`, `clear` and `undecided`."""

    trace: Trace
    verdict: Verdict
    cases: tuple[Case, ...]  # worst first, symptoms folded under their cause
    clear: tuple[Rule, ...]
    undecided: tuple[tuple[Rule, Undecided], ...]
    coverage: Coverage
    tldr: tuple[Sentence, ...]
    muted: tuple[Muted, ...] = ()
    new: tuple[str, ...] | None = None  # rules whose finding a baseline lacks; None without one

    def __repr__(self) -> str:
        """Name the run, the verdict and how many rules found something: never the series."""
        name = f" of {self.trace.name}" if self.trace.name else ""
        found = f"{len(self.findings)} findings, {len(self.clear)} clear"
        return f"<Diagnosis{name}: {self.verdict.word}, {found}, {len(self.undecided)} undecided>"

    @property
    def findings(self) -> tuple[tuple[Rule, Finding], ...]:
        """Every finding with its rule, causes before their symptoms."""
        return tuple(pair for case in self.cases for pair in _flat(case))

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, None where nothing was found."""
        return max((case.severity for case in self.cases), default=None)

    @property
    def can_tell(self) -> bool:
        """Whether the run can be judged at all: silence about a blank run is not health."""
        return (
            bool(self.clear or self.cases or self.muted) and self.verdict.word is not Word.UNKNOWN
        )


def diagnose(trace: Trace, rules: Sequence[Rule] = CATALOGUE) -> Diagnosis:
    """Ask every rule that applies to this kind of run, and fold symptoms under causes."""
    whole, trace = trace, thinned(trace)
    asked = [rule for rule in rules if rule.applies(trace.profile)]
    found: list[tuple[Rule, Finding]] = []
    clear: list[Rule] = []
    undecided: list[tuple[Rule, Undecided]] = []
    for rule in asked:
        match rule.ask(trace):
            case Finding() as finding:
                found.append((rule, finding))
            case Undecided() as answer:
                undecided.append((rule, answer))
            case Clear():
                clear.append(rule)
    found = seams.attributed(trace, found)
    found.sort(key=lambda pair: (-pair[1].severity, pair[1].began, pair[0].name))
    return Diagnosis(
        trace=whole,
        verdict=verdict(trace, tuple(found)),
        cases=fold(found, slack=(trace.last_step - trace.first_step) // 50),
        clear=tuple(clear),
        undecided=tuple(undecided),
        coverage=coverage(trace, len(asked), undecided),
        tldr=tldr(trace, found),
    )


def fold(found: Sequence[tuple[Rule, Finding]], *, slack: int = 0) -> tuple[Case, ...]:
    """Put each finding under the one that explains it, where that one was there in its time.

    A cause explains a symptom only if it began before the symptom could be known, give or take
    `slack` steps: what sets in during a rollout is logged at its end. A note explains nothing
    graver than a note.
    """
    by_name = {rule.name: finding for rule, finding in found}
    parent: dict[str, str] = {}
    for rule, finding in found:
        grave = min(finding.severity, Severity.WARNING)
        named = [n for n in rule.explained_by if n in by_name and by_name[n].severity >= grave]
        for cause in named:
            by_then = finding.known if finding.known >= 0 else finding.ended
            was_there = by_name[cause].began <= by_then + slack
            if was_there and rule.name not in _ancestors(cause, parent):
                parent[rule.name] = cause
                break
    cases = {rule.name: Case(rule, finding) for rule, finding in found}

    def grow(name: str) -> Case:
        symptoms = tuple(grow(rule.name) for rule, _ in found if parent.get(rule.name) == name)
        return replace(cases[name], symptoms=symptoms)

    roots = [grow(rule.name) for rule, _ in found if rule.name not in parent]
    return tuple(sorted(roots, key=lambda case: (-case.severity, case.finding.began)))


def _ancestors(name: str, parent: dict[str, str]) -> set[str]:
    seen = {name}
    while (name := parent.get(name, "")) and name not in seen:
        seen.add(name)
    return seen


def _flat(case: Case) -> tuple[tuple[Rule, Finding], ...]:
    return ((case.rule, case.finding), *(p for s in case.symptoms for p in _flat(s)))
