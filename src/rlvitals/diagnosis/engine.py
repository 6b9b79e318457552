"""Trace in, Diagnosis out. Pure: no files, no clock, no colours."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rlvitals.diagnosis import remedies
from rlvitals.diagnosis.cost import Waste, waste
from rlvitals.diagnosis.coverage import Coverage, coverage, open_causes
from rlvitals.diagnosis.forecast import Forecast, forecast, outlook
from rlvitals.diagnosis.replay import Retraction, replay, retractions
from rlvitals.diagnosis.root_cause import Case, flat, group_by_cause
from rlvitals.diagnosis.summary import Sentence, tldr
from rlvitals.diagnosis.verdict import Verdict, Word, verdict
from rlvitals.errors import quantity
from rlvitals.rules import CATALOGUE, causes, seams
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rate import FAMILIES, Rates, held_at_note
from rlvitals.rules.rates import RATES
from rlvitals.rules.rule import Clear, Finding, Rule, Severity, Undecided
from rlvitals.signals.thin import MAX_THIN_POINTS, thin
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

if TYPE_CHECKING:  # most runs have no marked ones beside them
    from rlvitals.comparison.siblings import Siblings

_thin_traces: "WeakKeyDictionary[Trace, Trace]" = WeakKeyDictionary()  # of long runs


@dataclass(frozen=True, slots=True)
class Muted:
    """A finding that a person has muted, and why."""

    rule: Rule
    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """A diagnosis. Each applicable rule is in `cases`, `muted`, `clear` or `undecided`."""

    trace: Trace
    verdict: Verdict
    cases: tuple[Case, ...]  # the likeliest root cause first, symptoms folded under their cause
    clear: tuple[Rule, ...]
    undecided: tuple[tuple[Rule, Undecided], ...]
    coverage: Coverage
    tldr: tuple[Sentence, ...]
    muted: tuple[Muted, ...] = ()
    new: tuple[str, ...] | None = None  # rules whose finding a baseline lacks; None without one
    outlook: Forecast | None = None  # when a rising return will have solved its task
    siblings: "Siblings | None" = None  # marked healthy runs of the same task beside it
    retracted: tuple[Retraction, ...] = ()  # filled by `replay` alone: it costs time

    def __repr__(self) -> str:
        """Name the run, the verdict and how many rules found something: never the series."""
        name = f" of {self.trace.name}" if self.trace.name else ""
        counts = f"{quantity(len(self.findings), 'finding')}, {len(self.clear)} clear"
        return f"<Diagnosis{name}: {self.verdict.word}, {counts}, {len(self.undecided)} undecided>"

    @property
    def every(self) -> tuple[Case, ...]:
        """Every case, causes before their symptoms."""
        return tuple(below for case in self.cases for below in flat(case))

    @property
    def findings(self) -> tuple[tuple[Rule, Finding], ...]:
        """Every finding with its rule, causes before their symptoms."""
        return tuple((case.rule, case.finding) for case in self.every)

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without findings."""
        return max((case.severity for case in self.cases), default=None)

    @property
    def can_tell(self) -> bool:
        """True if enough was logged to judge the run: no finding alone does not mean healthy.

        False for a run that is called stalled or collapsed only because of notes: its level may
        be good, and it may come back.
        """
        word = self.verdict.word
        reasons = [finding.severity for rule, finding in self.findings if rule.verdict == word]
        doubtful = word in {Word.STALLED, Word.COLLAPSED} and bool(reasons)
        doubtful = doubtful and max(reasons) < Severity.WARNING
        judged = bool(self.clear or self.cases or self.muted)
        return judged and self.verdict.word is not Word.UNKNOWN and not doubtful


def diagnose(trace: Trace, rules: Sequence[Rule] = CATALOGUE, rates: Rates = RATES) -> Diagnosis:
    """Ask every rule that applies to this kind of run, and fold symptoms under causes.

    A rule that `rates` do not show on enough healthy runs of any family is held at a note.
    """
    full_trace, trace = trace, thin_trace(trace)
    applicable = [rule for rule in rules if rule.suits(trace)]
    findings: list[tuple[Rule, Finding]] = []
    severities: dict[str, Severity] = {}
    clear: list[Rule] = []
    undecided: list[tuple[Rule, Undecided]] = []
    for rule in applicable:
        match rule.ask(trace):
            case Finding() as finding:
                severities[rule.name] = finding.severity
                findings.append((rule, held_at_note(rule, finding, rates)))
            case Undecided() as answer:
                undecided.append((rule, answer))
            case Clear():
                clear.append(rule)
    findings = seams.attribute_causes(trace, findings)
    findings.sort(key=lambda pair: (-pair[1].severity, pair[1].began, pair[0].name))
    folded = group_by_cause(findings, slack=(trace.last_step - trace.first_step) // 50)
    return Diagnosis(
        trace=full_trace,
        verdict=verdict(trace, tuple(findings)),
        cases=tuple(
            replace(
                _complete_case(case, trace, rates, severities),
                open_causes=open_causes(case.rule, case.severity, trace, undecided),
            )
            for case in _add_waste(folded, trace)
        ),
        clear=tuple(clear),
        undecided=tuple(undecided),
        coverage=coverage(trace, len(applicable), undecided),
        tldr=tldr(trace, findings),
        outlook=outlook(trace),
    )


def add_retractions(
    diagnosis: Diagnosis, rules: Sequence[Rule] = CATALOGUE, rates: Rates = RATES
) -> Diagnosis:
    """Add what someone who watched the run would have been told and what was taken back since."""
    return replace(diagnosis, retracted=retractions(replay(diagnosis.trace, rules, rates)))


def _complete_case(
    case: Case, trace: Trace, rates: Rates, severities: Mapping[str, Severity]
) -> Case:
    """Say what follows from a case for this run: pace, settings, rate; of its symptoms as well."""
    family = FAMILIES[trace.profile]
    measured = (rate for rate in rates.get(case.rule.name, ()) if rate.family == family)
    tries, turned = remedies.fill_in(case.finding.remedies or case.rule.remedies, trace)
    return replace(
        case,
        finding=replace(case.finding, remedies=tries),
        symptoms=tuple(
            _complete_case(symptom, trace, rates, severities) for symptom in case.symptoms
        ),
        forecast=forecast(trace, case.finding),
        knobs=turned,
        rate=next(measured, None),
        said=severities[case.rule.name],
    )


def _add_waste(cases: Sequence[Case], trace: Trace) -> tuple[Case, ...]:
    """Count what root cases cost that keep the outcome from rising and still go on."""
    if not any(case.severity > Severity.NOTE for case in cases) or verdict_trend(trace).improves:
        return tuple(cases)
    return tuple(replace(case, waste=_waste(case, trace)) for case in cases)


def _waste(case: Case, trace: Trace) -> Waste | None:
    warnings = [entry for entry in flat(case) if entry.finding.severity > Severity.NOTE]
    costly = (*causes.MECHANISM_RULES, *causes.OUTCOME_RULES)
    if not any(entry.rule.name in costly and goes_on(entry.finding, trace) for entry in warnings):
        return None
    # A symptom may be known before its cause is: the cause itself never before it began.
    known_step = max(min(entry.finding.known for entry in warnings), case.finding.began)
    return waste(trace, replace(case.finding, known=known_step))


def goes_on(finding: Finding, trace: Trace) -> bool:
    """Tell whether a finding is still shown at the end of what its metric logged."""
    series = trace.get(finding.metric)
    last = int(series.steps[-1]) if series is not None and len(series) else trace.last_step
    return finding.ended >= last


def thin_trace(trace: Trace) -> Trace:
    """Return the run with at most about 8,000 points of each metric; a short run as it is.

    A long run is judged by as many points as a short one: of a million points, some 20 in a row
    are beyond any limit by chance, and last for a moment.
    """
    if not any(_is_long(series) for series in trace.series.values()):
        return trace
    if (cached := _thin_traces.get(trace)) is not None:
        return cached
    series = {name: thin_series(each) for name, each in trace.series.items()}
    thinned = _thin_traces[trace] = replace(trace, series=series)
    return thinned


def thin_series(series: Series) -> Series:
    """Return about 8,000 points of a long series; another as it is."""
    return series.where(thin(series.values)) if _is_long(series) else series


def _is_long(series: Series) -> bool:
    """Return whether a series has too many points, and was not thinned while it was read."""
    return len(series) > MAX_THIN_POINTS and series.every == 1
