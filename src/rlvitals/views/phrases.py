"""What every view says of a diagnosis, in words: the views only lay it out."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rlvitals import metrics
from rlvitals.diagnosis import baseline, remedies
from rlvitals.diagnosis.cost import Spent, Waste
from rlvitals.diagnosis.coverage import Wanted
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.replay import Retraction
from rlvitals.diagnosis.root_cause import Alternative, Case
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules import causes, going_on
from rlvitals.rules.rate import ENOUGH
from rlvitals.rules.rule import Curve, Finding, Severity
from rlvitals.types import Profile, Trace

SIGNS: Mapping[str, str] = {"good": "+", "bad": "-", "neutral": "·", "unknown": "?"}
COLOURS: Mapping[str, str] = {"good": "green", "bad": "red", "neutral": "", "unknown": "dim"}
SEVERITY: Mapping[Severity, str] = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}
# On the verdict's badge: what is legible on the colour, in light and dark terminals.
INK: Mapping[str, str] = {"red": "white", "yellow": "black", "green": "black", "magenta": "white"}
VERDICT: Mapping[Word, str] = {
    **dict.fromkeys((Word.FAILED, Word.HUNG, Word.COLLAPSED, Word.UNSTABLE), "red"),
    **dict.fromkeys((Word.STALLED, Word.PLATEAU), "yellow"),
    **dict.fromkeys((Word.CONVERGED, Word.LEARNING), "green"),
    Word.UNKNOWN: "magenta",
}


KEY = 60  # characters of a key: one that is longer is not a name
TOO_FEW = re.compile(r" has \d+ numbers of the \d+ needed$")
ABSENT = re.compile(r"(\S+/\S+) is not logged")
LONG = 1e9  # beyond it digits are counted, not read
PERHAPS = 2  # other explanations that are shown
MORE = 3  # further names to log, after the first: a list of everything helps nobody


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line of a finding."""

    label: str
    text: str


def number(value: float) -> str:
    """Write a number as a person reads it: four digits, thousands separated."""
    if abs(value) < LONG and value == int(value):
        return f"{int(value):,}"
    return f"{value:.4g}"


def when(finding: Finding, trace: Trace) -> str:
    """Say since which step, until which, and when it could have been known."""
    series = trace.get(finding.metric)
    last = int(series.steps[-1]) if series is not None and len(series) else trace.last_step
    if finding.ended <= finding.began:
        said = f"at {finding.began:,}"
    elif finding.ended >= last:
        said = f"from {finding.began:,} to the end"
    else:
        said = f"from {finding.began:,} to {finding.ended:,}"
    if finding.known < 0:
        return said
    run = trace.last_step - trace.first_step
    share = f" ({(finding.known - trace.first_step) / run:.0%} of the run)" if run > 0 else ""
    return f"{said}; detectable from {finding.known:,}{share}"


def curve(finding: Finding, trace: Trace) -> Curve | None:
    """Return what shows a finding: its own curve, else its metric; None without a point."""
    if finding.curve is not None:
        return finding.curve
    series = trace.get(finding.metric)
    return None if series is None or not len(series) else Curve(finding.metric, series)


def limit(finding: Finding) -> str:
    """Say the limit and who set it, and what was seen."""
    return (
        f"{number(finding.bound.value)} ({finding.bound.origin}); "
        f"observed {number(finding.observed)}"
    )


def details(case: Case, trace: Trace) -> tuple[Line, ...]:
    """Write everything a finding holds besides its summary, its picture and its symptoms."""
    rule, finding = case.rule, case.finding
    likely = "; ".join(finding.causes or rule.causes)
    tries = finding.remedies or tuple(map(remedies.neutral, rule.remedies))
    return (
        Line("steps", when(finding, trace)),
        Line("limit", limit(finding)),
        *(Line("evidence", text) for text in finding.evidence),
        *(Line("speaks against", text) for text in finding.counter),
        *([Line("measured", text)] if (text := measured(case, trace.profile)) else []),
        *([Line("likely causes", likely)] if likely else []),
        *(Line("try", text) for text in tries),
    )


def consequences(case: Case) -> tuple[Line, ...]:
    """Write what else it may be, what it has cost and what it comes to."""
    others = [o for o in case.alternatives if _worth_naming(o)] or _hinted(case)
    return (
        *(Line("or perhaps", alternative(other)) for other in others[:PERHAPS]),
        *([Line("ahead", case.forecast.sentence)] if case.forecast else []),
        *([Line("spent on it", spent(case.waste))] if case.waste else []),
    )


def _worth_naming(other: Alternative) -> bool:
    return other.finding.severity > Severity.NOTE and other.rule.name not in causes.WEAK


def _hinted(case: Case) -> list[Alternative]:
    """Return the likeliest note, where what is found is an outcome that nothing graver explains.

    Only one that was there before: what sets in later follows from the outcome as often.
    """
    if case.rule.name not in causes.OUTCOMES or case.severity is Severity.NOTE:
        return []
    before = [o for o in case.alternatives if o.finding.began <= case.finding.began]
    return [o for o in before if o.rule.name not in causes.WEAK][:1]


def alternative(other: Alternative) -> str:
    """Name another explanation and why it ranks lower."""
    return f"{other.finding.severity.name.lower()}[{other.rule.name}], but {other.why}"


def measured(case: Case, profile: Profile) -> str:
    """Say how often the rule rings on healthy runs; empty where that is not known."""
    known = profile is not Profile.UNKNOWN
    rate = case.rate
    seen = rate.healthy if rate else 0
    if case.held:
        runs = "no healthy run" if not seen else f"{seen} healthy run{'s' if seen > 1 else ''}"
        kind = "of this family" if known else "like it"
        return f"held at a note: measured on {runs} {kind}, {ENOUGH} are needed"
    if rate is None or not seen or case.severity is Severity.NOTE:
        return ""  # a note is no alarm: what is counted are warnings and errors
    if not known:
        family = f"of {rate.family}; the kind of this run is not known"
        return f"rings on {rate.rang} of {seen} healthy runs {family}"
    return f"rings on {rate.rang} of {seen} healthy runs of this family ({rate.family})"


def spent(found: Waste) -> str:
    """Say what a fault has cost since it began, and what of it could have been saved."""
    began, known = found.since_began, found.since_known
    said = f"{_amount(began)} since it began"
    if known.steps and known.steps < began.steps:
        said += f"; {_amount(known)} since it was detectable"
    if found.price is not None:
        at = f"at {found.price:g} an hour"
        said += f" ({found.why}: no cost can be told)" if found.why else f" ({at})"
    return said


def _amount(part: Spent) -> str:
    said = [f"{part.steps:,} steps"]
    if part.hours is not None:
        said.append(duration(part.hours * 3600))
    if part.money is not None:
        said.append(f"{part.money:,.2f}")
    return ", ".join(said)


def duration(seconds: float) -> str:
    """Write a duration in the unit that leaves two or three digits."""
    minute, hour, day = 60, 3600, 86400
    if seconds < minute:
        return f"{seconds:.0f} s"
    if seconds < hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h" if seconds < 2 * day else f"{seconds / day:.1f} days"


def retracted(found: Retraction) -> str:
    """Say what was warned of, when, and what took it back."""
    finding = found.finding
    head = f"{finding.severity.name.lower()}[{found.rule.name}] {finding.summary}"
    return f"{head}: said at {found.said:,}, taken back at {found.taken_back:,}: {found.why}"


def headline(diagnosis: Diagnosis) -> str:
    """Say which run this is, how long, and what kind of training."""
    trace = diagnosis.trace
    points = max((len(s) for s in trace.series.values()), default=0)
    steps = f"{trace.step_unit} {trace.first_step:,} to {trace.last_step:,}"
    if trace.budget is not None:
        steps += f" of {trace.budget.steps:,}"
    parts = [trace.name, f"profile {trace.profile}", steps, f"{points:,} rows"]
    return " · ".join(part for part in parts if part)


def liveness(diagnosis: Diagnosis) -> str:
    """Say that it is not known whether the run goes on; empty where it is."""
    if going_on.liveness(diagnosis.trace).live is not None:
        return ""
    return "not known whether it goes on, judged as it stands: --live or --finished"


def counts(diagnosis: Diagnosis) -> str:
    """Count the findings by severity: "1 error, 2 warnings"; "no findings"."""
    seen = Counter(finding.severity for _, finding in diagnosis.findings)
    said = [
        f"{seen[s]} {s.name.lower()}{'s' if seen[s] > 1 else ''}"
        for s in sorted(Severity, reverse=True)
        if seen[s]
    ]
    return ", ".join(said) or "no findings"


def muted(diagnosis: Diagnosis) -> str:
    """Name the muted findings, each with its reason; empty without any."""
    said = [f"{one.rule.name} ({one.reason})" for one in diagnosis.muted]
    return f"{len(said)} muted: {', '.join(said)}" if said else ""


def against_baseline(diagnosis: Diagnosis) -> str:
    """Say which findings a baseline lacks and how many it knows; empty without a baseline."""
    if diagnosis.new is None:
        return ""
    known = sum(one.rule not in diagnosis.new for one in baseline.entries(diagnosis))
    new = f"{len(diagnosis.new)} new: {', '.join(diagnosis.new)}" if diagnosis.new else "none new"
    return f"{new}; {known} known"


def coverage(diagnosis: Diagnosis) -> str:
    """Say how many rules could judge, and what to log so that more can."""
    found = diagnosis.coverage
    said = f"{found.judged} of {found.asked} rules could judge this run."
    if found.wanted:
        more = found.wanted[1 : 1 + MORE]
        also = f"; then {', '.join(_key(diagnosis.trace, w) for w in more)}" if more else ""
        said += f" Log {wanted(diagnosis.trace, found.wanted[0])}{also}."
    if found.wanted_settings:
        names = [f"--set {w.name}=..." for w in found.wanted_settings[:MORE]]
        said += f" Say what the log does not: {', '.join(names)}."
    return said


def unknown_settings(diagnosis: Diagnosis) -> str:
    """Name the settings that a run cannot be repeated without; empty where all are logged."""
    return ", ".join(diagnosis.coverage.unknown_settings)


def _key(trace: Trace, missing: Wanted) -> str:
    if part := _in_part(trace, missing.name):
        return f"{missing.name}{part}"
    return key_for(trace, missing.name) or missing.name


def _in_part(trace: Trace, name: str) -> str:
    """Say that what is not logged is logged in another form, which rules cannot judge by."""
    summed = name == "exploration/entropy" and "exploration/entropy_sum" in trace
    return " (the mean: only its sum over a batch is logged)" if summed else ""


def wanted(trace: Trace, missing: Wanted) -> str:
    """Name what is missing as the run's own framework calls it, and what it would unlock."""
    rules = f"{missing.rules} more rule{'s' if missing.rules > 1 else ''} could judge"
    return f"{_key(trace, missing)} and {rules}"


def to_know(trace: Trace, name: str) -> str:
    """Say how to make a metric or a setting known: its key in this framework, or `--set`."""
    metric = metrics.find(name)
    if metric is None or metric.kind == "setting":
        return f"--set {name}=..."
    key = key_for(trace, name)
    return f"{name} ({key})" if key and key != name else name


def key_for(trace: Trace, name: str) -> str | None:
    """Return the key under which the trace's framework logs a metric or holds a setting."""
    table = remedies.framework(trace)
    if table is None:
        return None
    keys = (key for key, known in table.keys.items() if known.metric.name == name)
    settings = (key for key, canonical in table.settings.items() if canonical == name)
    return next(keys, None) or next(settings, None)


def undecided(diagnosis: Diagnosis) -> dict[str, tuple[str, ...]]:
    """Group the rules that could not judge by why, the commonest reason first.

    Where two metrics or more are only too short as yet, that is one reason; so is that two or
    more are not logged.
    """
    short = {a.why for _, a in diagnosis.undecided if TOO_FEW.search(a.why)}
    absent = {m[1]: a.why for _, a in diagnosis.undecided if (m := ABSENT.fullmatch(a.why))}
    together = {}
    if len(short) > 1:
        together = dict.fromkeys(short, "too few numbers yet: let it run, or log more often")
    if len(absent) > 1:
        missing = ", ".join(f"{m}{_in_part(diagnosis.trace, m)}" for m in sorted(absent))
        together |= dict.fromkeys(absent.values(), f"not logged: {missing}")
    reasons: dict[str, list[str]] = {}
    for rule, answer in diagnosis.undecided:
        reasons.setdefault(together.get(answer.why, answer.why), []).append(rule.name)
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    return {why: tuple(sorted(names)) for why, names in ordered}


def notes(trace: Trace, most: int = 12) -> tuple[str, ...]:
    """Return what a person should know of the reading; of very many, the first."""
    if len(trace.notes) <= most:
        return trace.notes
    return (
        *trace.notes[: most - 1],
        f"and {len(trace.notes) - most + 1} more: --json has them all",
    )


def unmapped(trace: Trace, most: int = 8) -> str:
    """List the keys that no table knows; empty where there are none."""
    keys = trace.unmapped
    if not keys:
        return ""
    shown = ", ".join(key if len(key) <= KEY else f"{key[:KEY]}..." for key in keys[:most])
    rest = f" and {len(keys) - most} more" if len(keys) > most else ""
    return f"{shown}{rest} (rlvitals metrics PATH --unmapped)"
