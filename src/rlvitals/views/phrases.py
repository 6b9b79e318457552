"""Write the texts on a diagnosis that all views share."""

import re
from collections import Counter
from collections.abc import Mapping

from rlvitals import metrics
from rlvitals.diagnosis import baseline, remedies
from rlvitals.diagnosis.cost import Spent, Waste
from rlvitals.diagnosis.coverage import Unlock, Wanted
from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.replay import Retraction
from rlvitals.diagnosis.root_cause import Alternative, Case
from rlvitals.diagnosis.summary import Sentence
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import join_first, quantity
from rlvitals.rules import causes, going_on
from rlvitals.rules.rate import MIN_HEALTHY_RUNS
from rlvitals.rules.rule import Curve, Finding, Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace
from rlvitals.views import rate_text

SIGN_MARKS: Mapping[str, str] = {"good": "+", "bad": "-", "neutral": "·", "unknown": "?"}
SIGN_COLOURS: Mapping[str, str] = {"good": "green", "bad": "red", "neutral": "", "unknown": "dim"}
SEVERITY_COLOURS: Mapping[Severity, str] = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}
# Text colours legible on the verdict's badge in light and dark terminals.
BADGE_INK: Mapping[str, str] = {
    "red": "white",
    "yellow": "black",
    "green": "black",
    "magenta": "white",
}
VERDICT_COLOURS: Mapping[Word, str] = {
    **dict.fromkeys((Word.FAILED, Word.HUNG, Word.COLLAPSED, Word.UNSTABLE), "red"),
    **dict.fromkeys((Word.STALLED, Word.PLATEAU), "yellow"),
    **dict.fromkeys((Word.CONVERGED, Word.LEARNING), "green"),
    Word.UNKNOWN: "magenta",
}


TOO_FEW_NUMBERS = re.compile(r" has \d+ numbers? of the \d+ needed$")
ABSENT_METRIC = re.compile(r"(\S+/\S+) is not logged")
MAX_FURTHER_NAMES = 3  # after the first


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line of a finding."""

    label: str
    text: str


def number(value: float) -> str:
    """Format a number with four digits, an integer with thousands separators."""
    if abs(value) < 1e9 and value == int(value):  # larger numbers use exponents
        return f"{int(value):,}"
    return f"{value:.4g}"


def step_range(finding: Finding, trace: Trace) -> str:
    """Return the first and last step of a finding, and the step of its detection."""
    series = trace.get(finding.metric)
    last = int(series.steps[-1]) if series is not None and len(series) else trace.last_step
    if finding.ended <= finding.began:
        text = f"at {finding.began:,}"
    elif finding.ended >= last:
        text = f"from {finding.began:,} to the end"
    else:
        text = f"from {finding.began:,} to {finding.ended:,}"
    if finding.known < 0:
        return text
    run = trace.last_step - trace.first_step
    share = f" ({(finding.known - trace.first_step) / run:.0%} of the run)" if run > 0 else ""
    return f"{text}; detectable from {finding.known:,}{share}"


def curve(finding: Finding, trace: Trace) -> Curve | None:
    """Return the curve of a finding, else of its metric; None without points."""
    if finding.curve is not None:
        return finding.curve
    series = trace.get(finding.metric)
    return None if series is None or not len(series) else Curve(finding.metric, series)


def limit(finding: Finding) -> str:
    """Return the limit, its origin and the observed value; empty where none was compared."""
    if not finding.has_limit:
        return ""
    return (
        f"{number(finding.bound.value)} ({finding.bound.origin}); "
        f"observed {number(finding.observed)}"
    )


def details(case: Case, trace: Trace) -> tuple[Line, ...]:
    """Return the labelled lines of a finding: steps, limit, evidence, causes, remedies."""
    rule, finding = case.rule, case.finding
    likely = "; ".join(finding.causes or rule.causes)
    tries = finding.remedies or tuple(map(remedies.neutral, rule.remedies))
    return (
        Line("steps", step_range(finding, trace)),
        *([Line("limit", text)] if (text := limit(finding)) else []),
        *(Line("evidence", text) for text in finding.evidence),
        *(Line("speaks against", text) for text in finding.counter),
        *([Line("false alarms", text)] if (text := false_alarm_rate(case, trace.profile)) else []),
        *([Line("false alarms", rate_text.sentence(rate))] if (rate := case.own_rate) else []),
        *([Line("likely causes", likely)] if likely else []),
        *(Line("try", text) for text in tries),
    )


def consequences(case: Case) -> tuple[Line, ...]:
    """Return the labelled lines on alternatives, forecast and cost of a finding."""
    alternatives = [
        o
        for o in case.alternatives
        if o.finding.severity > Severity.NOTE and o.rule.name not in causes.WEAK_CAUSE_RULES
    ] or _likeliest_note(case)
    return (
        *(Line("or perhaps", alternative(candidate)) for candidate in alternatives[:2]),
        *(Line("not excluded", open_cause(unlock)) for unlock in case.open_causes[:3]),
        *([Line("ahead", case.forecast.sentence)] if case.forecast else []),
        *([Line("cost", spent(case.waste))] if case.waste else []),
    )


def _likeliest_note(case: Case) -> list[Alternative]:
    """Return the likeliest note if no more severe finding explains an outcome finding.

    Only an earlier note counts: a later one may be an effect of the outcome.
    """
    if case.rule.name not in causes.OUTCOME_RULES or case.severity is Severity.NOTE:
        return []
    earlier = [o for o in case.alternatives if o.finding.began <= case.finding.began]
    return [o for o in earlier if o.rule.name not in causes.WEAK_CAUSE_RULES][:1]


def alternative(candidate: Alternative) -> str:
    """Return an alternative explanation and the reason for its lower rank."""
    return f"{candidate.finding.severity.name.lower()}[{candidate.rule.name}], but {candidate.why}"


def open_cause(unlock: Unlock) -> str:
    """Return the causes that the log does not exclude, and what to log to tell."""
    return f"{', '.join(unlock.rules)}: log {' and '.join(unlock.names)} to tell"


def false_alarm_rate(case: Case, profile: Profile) -> str:
    """Return the false-alarm rate of the rule, or an empty string if unknown."""
    is_known = profile is not Profile.UNKNOWN
    rate = case.rate
    healthy_runs = rate.healthy if rate else 0
    if case.has_severity_cap:
        runs = quantity(healthy_runs, "healthy run") if healthy_runs else "no healthy run"
        kind = "of this family" if is_known else "like it"
        return f"held at a note: measured on {runs} {kind}, {MIN_HEALTHY_RUNS} are needed"
    if rate is None or not healthy_runs or case.severity is Severity.NOTE:
        return ""  # rates count warnings and errors, not notes
    origin = rate_text.origin(rate)
    counted = f"{rate.family}; {origin}" if origin else rate.family
    if not is_known:
        family = f"of {counted}; the kind of this run is not known"
        return f"fires on {rate.rang} of {healthy_runs} healthy runs {family}"
    return f"fires on {rate.rang} of {healthy_runs} healthy runs of this family ({counted})"


def spent(waste: Waste) -> str:
    """Return the cost of a fault since its onset and since its detection."""
    since_begin, since_detectable = waste.since_began, waste.since_known
    text = f"{_amount(since_begin)} since it began"
    if since_detectable.steps and since_detectable.steps < since_begin.steps:
        text += f"; {_amount(since_detectable)} since it was detectable"
    if waste.price is not None:
        price = f"at {waste.price:g} an hour"
        text += f" ({waste.why}: no cost can be told)" if waste.why else f" ({price})"
    return text


def _amount(spent: Spent) -> str:
    texts = [quantity(spent.steps, "step")]
    if spent.hours is not None:
        texts.append(duration(spent.hours * 3600))
    if spent.money is not None:
        texts.append(f"{spent.money:,.2f}")
    return ", ".join(texts)


def duration(seconds: float) -> str:
    """Format a duration in seconds in the unit that leaves two or three digits."""
    minute, hour, day = 60, 3600, 86400
    if seconds < minute:
        return f"{seconds:.0f} s"
    if seconds < hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h" if seconds < 2 * day else f"{seconds / day:.1f} days"


def retraction_text(retraction: Retraction) -> str:
    """Return a retracted finding with its steps and the reason."""
    finding = retraction.finding
    head = f"{finding.severity.name.lower()}[{retraction.rule.name}] {finding.summary}"
    steps = f"said at {retraction.said:,}, taken back at {retraction.taken_back:,}"
    return f"{head}: {steps}: {retraction.why}"


def headline(diagnosis: Diagnosis) -> str:
    """Return the run's name, profile, steps and rows, and whether the diagnosis is provisional."""
    trace = diagnosis.trace
    if not trace.series:
        return f"{trace.name} · no known metric" if trace.name else "no known metric"
    points = max(series.count for series in trace.series.values())
    steps = f"{trace.step_unit} {trace.first_step:,}"
    if trace.last_step != trace.first_step:
        steps += f" to {trace.last_step:,}"
    if trace.budget is not None:
        steps += f" of {trace.budget.steps:,}"
    texts = [trace.name, f"profile {trace.profile}", steps, quantity(points, "row")]
    texts.append(going_on.describe_start(trace))
    return " · ".join(text for text in texts if text)


def short_summary(diagnosis: Diagnosis) -> tuple[Sentence, ...]:
    """Return the sentences that say more than the verdict; one names all that is not known."""
    unknown = [s for s in diagnosis.tldr if s.sign == "unknown" and s.topic != "reward"]
    others = [
        s
        for s in diagnosis.tldr
        if s not in unknown
        and not f"{diagnosis.verdict.why}.".casefold().endswith(s.text.casefold())
    ]
    if len(unknown) > 1:
        topics = ", ".join(sentence.topic for sentence in unknown)
        unknown = [Sentence("", f"Not known from this log: {topics}.", "unknown")]
    return (*others, *unknown)


def liveness(diagnosis: Diagnosis) -> str:
    """Return a remark if it is unknown whether the run continues, else an empty string."""
    if going_on.liveness(diagnosis.trace).live is not None:
        return ""
    return "not known whether it goes on, judged as it stands: --live or --finished"


def counts(diagnosis: Diagnosis) -> str:
    """Count the findings by severity: "1 error, 2 warnings"; "no findings"."""
    severity_counts = Counter(finding.severity for _, finding in diagnosis.findings)
    texts = [
        quantity(severity_counts[s], s.name.lower())
        for s in sorted(Severity, reverse=True)
        if severity_counts[s]
    ]
    return ", ".join(texts) or "no findings"


def muted_text(diagnosis: Diagnosis) -> str:
    """Return the muted findings with their reasons, or an empty string."""
    texts = [f"{finding.rule.name} ({finding.reason})" for finding in diagnosis.muted]
    return f"{len(texts)} muted: {', '.join(texts)}" if texts else ""


def against_baseline(diagnosis: Diagnosis) -> str:
    """Return the new and the known findings of a baseline; empty without a baseline."""
    if diagnosis.new is None:
        return ""
    known_count = sum(entry.rule not in diagnosis.new for entry in baseline.entries(diagnosis))
    new = f"{len(diagnosis.new)} new: {', '.join(diagnosis.new)}" if diagnosis.new else "none new"
    return f"{new}; {known_count} known"


def coverage(diagnosis: Diagnosis) -> str:
    """Return the number of rules that could judge, and the metrics to log for more."""
    run_coverage = diagnosis.coverage
    text = f"{run_coverage.judged} of {run_coverage.asked} rules could judge this run."
    if run_coverage.wanted:
        more = run_coverage.wanted[1 : 1 + MAX_FURTHER_NAMES]
        also = f"; then {', '.join(_key(diagnosis.trace, w) for w in more)}" if more else ""
        text += f" Log {log_suggestion(diagnosis.trace, run_coverage.wanted[0])}{also}."
    if run_coverage.wanted_settings:
        names = [f"--set {w.name}=..." for w in run_coverage.wanted_settings[:MAX_FURTHER_NAMES]]
        text += f" Say what the log does not: {', '.join(names)}."
    return text


def unknown_settings(diagnosis: Diagnosis) -> str:
    """Return the missing settings that a run cannot be reproduced without."""
    return ", ".join(diagnosis.coverage.unknown_settings)


def _key(trace: Trace, missing: Wanted) -> str:
    if suffix := _in_part(trace, missing.name):
        return f"{missing.name}{suffix}"
    return key_for(trace, missing.name) or missing.name


def _in_part(trace: Trace, name: str) -> str:
    """Return a remark if the metric is logged in a form that rules cannot use."""
    is_summed = name == "exploration/entropy" and "exploration/entropy_sum" in trace
    return " (the mean: only its sum over a batch is logged)" if is_summed else ""


def log_suggestion(trace: Trace, missing: Wanted) -> str:
    """Return a missing metric, named as in the run's framework, and the rules it enables."""
    rules = f"{quantity(missing.rules, 'more rule')} could judge"
    return f"{_key(trace, missing)} and {rules}"


def to_know(trace: Trace, name: str) -> str:
    """Return the key to log a metric under in this framework, or `--set` for a setting."""
    metric = metrics.find(name)
    if metric is None or metric.kind == "setting":
        return f"--set {name}=..."
    key = key_for(trace, name)
    return f"{name} ({key})" if key and key != name else name


def key_for(trace: Trace, name: str) -> str | None:
    """Return the framework's key of a metric or a setting; None if unknown."""
    table = remedies.framework(trace)
    if table is None:
        return None
    keys = (key for key, entry in table.keys.items() if entry.metric.name == name)
    settings = (key for key, canonical in table.settings.items() if canonical == name)
    return next(keys, None) or next(settings, None)


def undecided_rules(diagnosis: Diagnosis) -> dict[str, tuple[str, ...]]:
    """Group the rules that could not judge by reason, the commonest first.

    Several metrics with too few values form one reason; so do several that are not logged.
    """
    short = {a.why for _, a in diagnosis.undecided if TOO_FEW_NUMBERS.search(a.why)}
    absent = {m[1]: a.why for _, a in diagnosis.undecided if (m := ABSENT_METRIC.fullmatch(a.why))}
    merged = {}
    if len(short) > 1:
        merged = dict.fromkeys(short, "too few numbers yet: let it run, or log more often")
    if len(absent) > 1:
        # These metrics come from saved rollouts alone.
        logged = [m for m in sorted(absent) if not m.startswith("rollout/")]
        missing = ", ".join(f"{m}{_in_part(diagnosis.trace, m)}" for m in logged)
        if len(logged) < len(absent):
            missing += ", saved rollouts"
        merged |= dict.fromkeys(absent.values(), f"not logged: {missing}")
    reasons: dict[str, list[str]] = {}
    for rule, answer in diagnosis.undecided:
        reasons.setdefault(merged.get(answer.why, answer.why), []).append(rule.name)
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    return {reason: tuple(sorted(names)) for reason, names in ordered}


def notes(trace: Trace, *, provenance: bool = True) -> tuple[str, ...]:
    """Return at most 12 notes on the reading of the log; without `provenance` count those on it."""
    lines = trace.notes
    if trace.provenance and not provenance:
        count = quantity(len(trace.provenance), "note")
        lines = (
            *(note for note in lines if note not in trace.provenance),
            f"{count} on which of several files or keys is read: -v",
        )
    max_notes = 12
    if len(lines) <= max_notes:
        return lines
    hidden = f"and {len(lines) - max_notes + 1} more: --json has them all"
    return (*lines[: max_notes - 1], hidden)


def unmapped_text(trace: Trace, max_keys: int = 8) -> str:
    """Return at most `max_keys` unmapped keys, or an empty string."""
    keys = trace.unmapped
    if not keys:
        return ""
    short = [key if len(key) <= 60 else f"{key[:60]}..." for key in keys]
    return f"{join_first(short, max_keys)} (rlvitals metrics PATH --unmapped)"
