"""Findings in, cases out: each symptom under its best cause, the likeliest root cause first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlvitals.diagnosis.cost import Waste
from rlvitals.diagnosis.coverage import Unlock
from rlvitals.diagnosis.forecast import Forecast
from rlvitals.diagnosis.remedies import Knob
from rlvitals.rules import causes
from rlvitals.rules.rate import Rate
from rlvitals.rules.rule import Finding, Rule, Severity
from rlvitals.startup.fast_dataclass import dataclass

Found = Sequence[tuple[Rule, Finding]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another finding that could explain a case, and why it ranks below what was chosen."""

    rule: Rule
    finding: Finding
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    """A finding, the findings it explains, and what follows from it for this run."""

    rule: Rule
    finding: Finding
    symptoms: tuple["Case", ...] = ()  # the findings it explains
    alternatives: tuple[Alternative, ...] = ()  # the likeliest first
    waste: Waste | None = None  # of a root case that costs something and still goes on
    forecast: Forecast | None = None  # where it leads if it goes on
    knobs: tuple[Knob, ...] = ()  # the settings that its remedies name, as the framework has them
    rate: Rate | None = None  # how often the rule rings on healthy runs of this family
    said: Severity | None = None  # what the rule said, where it is held at a note for now
    open_causes: tuple[Unlock, ...] = ()  # what could explain it and lacks a metric or a setting
    own_rate: Rate | None = None  # the same on the user's own runs: `rlvitals calibrate ROOT`

    @property
    def has_severity_cap(self) -> bool:
        """Whether the rule said more than the note it is held at."""
        return self.said is not None and self.said > self.finding.severity

    @property
    def severity(self) -> Severity:
        """The worst of the finding and its symptoms."""
        return max((self.finding.severity, *(s.severity for s in self.symptoms)))


def flat(case: Case) -> tuple[Case, ...]:
    """Return a case and all that stands under it, causes before their symptoms."""
    return (case, *(below for symptom in case.symptoms for below in flat(symptom)))


def group_by_cause(findings: Found, *, slack: int = 0) -> tuple[Case, ...]:
    """Put each finding under the one that explains it best; rank what is left.

    A cause explains a symptom only if it began before the symptom could be known, give or take
    `slack` steps: what sets in during a rollout is logged at its end. A loss of the outcome
    explains what may as well be its cause, such as a constant reward or a value loss that jumps,
    if that began later. A note explains nothing graver than a note, a weak cause (see `causes`)
    nothing graver than itself. Of several causes the deepest is taken: no weak one, one that no
    other of them explains, then the one that began first, then the graver, then the one its rule
    names first.
    """
    evidence = _Evidence({rule.name: (rule, finding) for rule, finding in findings}, slack)
    parent = {
        rule.name: min(plausible, key=lambda name: evidence.depth(name, plausible))
        for rule, finding in findings
        if (plausible := evidence.plausible(rule, finding))
    }
    for name, cause in tuple(parent.items()):
        if cause == causes.COLLAPSE_RULE and name in _above(cause, parent):
            del parent[name]  # what the outcome explains may explain it by a detour

    def grow(rule: Rule, finding: Finding) -> Case:
        below = tuple(grow(*pair) for pair in findings if parent.get(pair[0].name) == rule.name)
        case = Case(rule, finding, tuple(sorted(below, key=_in_time)))
        return replace(case, alternatives=_alternatives(case, evidence))

    return _rank_roots([grow(*pair) for pair in findings if pair[0].name not in parent], slack)


def _turn(name: str, collapse: Finding) -> int:
    """Return the last step at which a rule's finding is no consequence of a collapse."""
    return collapse.began if causes.CONSEQUENCES[name] else collapse.known


def _above(name: str, parent: Mapping[str, str]) -> set[str]:
    """Return the causes of a finding, the causes of these and so on."""
    above: set[str] = set()
    while (cause := parent.get(name)) is not None and cause not in above:
        above.add(cause)
        name = cause
    return above


@dataclass(frozen=True, slots=True)
class _Evidence:
    """All findings of a run by their rule's name, and what may have caused what."""

    by_name: Mapping[str, tuple[Rule, Finding]]
    slack: int

    def plausible(self, rule: Rule, finding: Finding) -> tuple[str, ...]:
        """Name the findings that may be the cause of one, in its rule's order."""
        names = [name for name in rule.explained_by if name in self.by_name]
        if rule.name in causes.CONSEQUENCES and causes.COLLAPSE_RULE in self.by_name:
            names.append(causes.COLLAPSE_RULE)
        return tuple(name for name in names if not self.against(name, rule, finding))

    def against(self, name: str, symptom_rule: Rule, symptom: Finding) -> str:
        """Say why a finding cannot be the cause of another; empty where it may be."""
        if name in symptom.excluded_causes:
            return "the numbers exclude it"
        cause = self.by_name[name][1]
        by_then = symptom.known if symptom.known >= 0 else symptom.ended
        latest_step = by_then + self.slack
        if name == causes.COLLAPSE_RULE and symptom_rule.name in causes.CONSEQUENCES:
            if symptom.began <= (turn := _turn(symptom_rule.name, cause)):
                return f"it shows from {turn:,} on, when this had set in"
        elif name in causes.CONSEQUENCES and symptom_rule.name == causes.COLLAPSE_RULE:
            latest_step = _turn(name, symptom)
        if cause.began > latest_step:
            return f"it set in at {cause.began:,}, when this was detectable already"
        required = symptom.severity if name in causes.WEAK_CAUSE_RULES else Severity.WARNING
        if cause.severity < min(symptom.severity, required):
            return f"it is milder: a {cause.severity.name.lower()}"
        return ""

    def depth(self, name: str, among: Sequence[str]) -> tuple[bool, bool, bool, int, int]:
        """Order the causes of one finding: the smallest is the deepest."""
        weak = name in causes.WEAK_CAUSE_RULES
        rule, finding = self.by_name[name]
        follows = any(cause in among for cause in self.plausible(rule, finding))
        first = min(self.by_name[name_among][1].began for name_among in among)
        late = finding.began > first + self.slack
        return (weak, follows, late, -finding.severity, among.index(name))


def _in_time(case: Case) -> tuple[bool, int]:
    """Order symptoms as they set in; what the outcome shows comes last."""
    return case.rule.name in causes.OUTCOME_RULES, case.finding.began


def _alternatives(case: Case, evidence: _Evidence) -> tuple[Alternative, ...]:
    """Rank the other findings that a rule of this case names as causes."""
    within = flat(case)
    inside = {entry.rule.name for entry in within}
    met: dict[str, tuple[tuple[object, ...], Alternative]] = {}
    for entry in within:
        for name in entry.rule.explained_by:
            if name not in evidence.by_name or name in inside or name in met:
                continue
            rule, finding = evidence.by_name[name]
            ruled_out = evidence.against(name, entry.rule, entry.finding)
            reason = ruled_out or _lower(finding, case.finding, evidence.slack)
            rank = (bool(ruled_out), -finding.severity, finding.began, len(met))
            met[name] = (rank, Alternative(rule, finding, reason))
    return tuple(alternative for _, alternative in sorted(met.values(), key=lambda pair: pair[0]))


def _lower(alternative: Finding, cause: Finding, slack: int) -> str:
    """Say why another plausible cause ranks below the chosen one."""
    if alternative.began > cause.began + slack:
        return f"it began later, at {alternative.began:,}"
    if alternative.severity < cause.severity:
        return f"it is milder: a {alternative.severity.name.lower()}"
    return "it is the less direct cause"


def _rank_roots(roots: Sequence[Case], slack: int) -> tuple[Case, ...]:
    """Order root cases, the likeliest root cause first.

    The gravest first; causes before what only the outcome shows, and before what keeps no outcome
    from rising; what explains more; what began first. A note that could explain a graver case
    stands before the other notes.
    """
    warnings = [case for case in roots if case.severity > Severity.NOTE]
    hinted = {alternative.rule.name for case in warnings for alternative in case.alternatives}
    first = min((case.finding.began for case in roots), default=0)

    def rank(case: Case) -> tuple[object, ...]:
        explained = sum(entry.finding.severity > Severity.NOTE for entry in flat(case)[1:])
        return (
            -case.severity,
            case.rule.name in causes.OUTCOME_RULES,
            case.rule.name in causes.INDEPENDENT_RULES,
            case.rule.name not in hinted if case.severity is Severity.NOTE else False,
            case.finding.began > first + slack,
            -explained,
            case.finding.began,
            case.finding.known,
            case.rule.name,
        )

    return tuple(sorted(roots, key=rank))
