"""Say which states of a run are alarms: findings, verdicts, silence, limits of a metric.

conditions = tuple(map(parse, ["error", "silent", "outcome/return < 100 after 1M"]))
alarms = find_alarms(diagnosis, conditions)
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from rlvitals.diagnosis.engine import Diagnosis
from rlvitals.diagnosis.root_cause import Case
from rlvitals.diagnosis.urgent_errors import find_urgent_errors
from rlvitals.diagnosis.verdict import Word
from rlvitals.errors import UsageError, nearest
from rlvitals.metrics import find as find_metric
from rlvitals.rules import CATALOGUE
from rlvitals.rules.going_on import UPDATE_METRICS, describe_start, goes_on
from rlvitals.rules.rule import Severity
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace
from rlvitals.views import phrases, rate_text

SILENT, RUN_FINISHED = "silent", "finished"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as the user wrote it; `sign` is "<" or ">" for a limit of a metric, else ""."""

    text: str
    metric: str = ""
    sign: str = ""
    value: float = 0.0
    after: float = 0.0  # steps


@dataclass(frozen=True, slots=True)
class Alarm:
    """One state of a run that a person wants to know."""

    subject: str  # what it is about: a rule, a verdict, a limit
    severity: str  # "error", "warning", "note" or "info"
    summary: str
    step: int | None = None  # at which it set in
    rate: str = ""  # how often this alarm is wrong
    counter: tuple[str, ...] = ()  # what speaks against it
    remedies: tuple[str, ...] = ()
    cause: str = ""  # the rule whose finding explains this one
    is_final: bool = False  # it does not pass by itself: told at once


def parse(text: str) -> Condition:
    """Read a condition. Raises UsageError for an unknown word, rule or metric."""
    name = " ".join(text.split())
    limit = re.fullmatch(
        r"(?P<metric>\S+)\s*(?P<sign>[<>])\s*(?P<value>\S+)(?:\s+after\s+(?P<after>\S+))?", name
    )
    if limit is not None:
        return _parse_limit(name, limit)
    rules = {rule.name for rule in CATALOGUE}
    states = {"error", "warning", SILENT, RUN_FINISHED, *(verdict.value for verdict in Word)}
    if name not in rules | states:
        raise UsageError(
            f"{text!r} is not a condition",
            where="when",
            hint=nearest(name, rules | states)
            or 'error, warning, silent, a verdict, a rule, "outcome/return < 100 after 1M"',
        )
    return Condition(name)


def find_alarms(diagnosis: Diagnosis, conditions: Sequence[Condition]) -> dict[str, Alarm]:
    """Return the alarms that hold, by subject. A symptom has its `cause`."""
    names = {condition.text for condition in conditions}
    alarms = {alarm.subject: alarm for alarm in _find_states(diagnosis, names)}
    urgent = find_urgent_errors(diagnosis) if "error" in names else frozenset()
    matches = {
        case.rule.name: (case, cause)
        for case, cause in _walk(diagnosis.cases)
        if (case.rule.name in urgent or _matches(case, names)) and not _is_too_early(diagnosis)
    }
    for name, (case, cause) in matches.items():
        # A finding is sent by itself if its cause is not sent, or the user named its rule.
        shown_cause = cause if cause in matches and name not in names else ""
        alarms[name] = _finding_alarm(case, shown_cause, diagnosis.trace)
    for condition in conditions:
        if condition.sign and (alarm := _limit_alarm(diagnosis.trace, condition)) is not None:
            alarms[condition.text] = alarm
    return alarms


def _find_states(diagnosis: Diagnosis, names: set[str]) -> Iterator[Alarm]:
    """Yield the alarms of the verdict, of silence and of the end."""
    verdict, trace = diagnosis.verdict, diagnosis.trace
    is_silent = verdict.word is Word.HUNG and SILENT in names
    if is_silent or verdict.word.value in names:
        is_final = verdict.word in {Word.FAILED, Word.HUNG}
        subject = SILENT if is_silent else verdict.word.value
        severity = {"red": "error", "yellow": "warning"}.get(
            phrases.VERDICT_COLOURS[verdict.word], "info"
        )
        yield Alarm(subject, severity, verdict.why, trace.last_step, is_final=is_final)
    if RUN_FINISHED in names and trace.lifecycle.over and not trace.lifecycle.failed:
        text = f"the run has ended: {verdict.word.value}, {verdict.why}"
        yield Alarm(RUN_FINISHED, "info", text, trace.last_step, is_final=True)


def _walk(cases: Sequence[Case], cause: str = "") -> Iterator[tuple[Case, str]]:
    for case in cases:
        yield case, cause
        yield from _walk(case.symptoms, cause or case.rule.name)


def _matches(case: Case, names: set[str]) -> bool:
    return case.finding.severity > Severity.NOTE and bool({case.rule.name, "warning"} & names)


def _is_too_early(diagnosis: Diagnosis) -> bool:
    """Return whether a run that goes on has shown no update yet, and cannot be judged."""
    trace = diagnosis.trace
    return (
        goes_on(trace)
        and not diagnosis.can_tell
        and not any(name in trace for name in UPDATE_METRICS)
    )


def _finding_alarm(case: Case, cause: str, trace: Trace) -> Alarm:
    finding = case.finding
    start = describe_start(trace)
    rate = (
        phrases.false_alarm_rate(case, trace.profile)
        or "not calibrated: no healthy runs of this kind were measured"
    )
    if case.own_rate is not None:
        rate = rate_text.sentence(case.own_rate)
    return Alarm(
        case.rule.name,
        finding.severity.name.lower(),
        finding.summary,
        finding.began,
        rate,
        (start, *finding.counter) if start else finding.counter,
        (finding.remedies or case.rule.remedies)[:3],
        cause,
        is_final=trace.lifecycle.over,
    )


def _limit_alarm(trace: Trace, condition: Condition) -> Alarm | None:
    series = trace.get(condition.metric)
    numbers = series.finite() if series is not None else None
    if numbers is None or not len(numbers) or numbers.steps[-1] < condition.after:
        return None
    # The median of several numbers is compared: one noisy episode is no alarm.
    value = float(np.median(numbers.tail(10).values))
    is_beyond = value < condition.value if condition.sign == "<" else value > condition.value
    if not is_beyond:
        return None
    text = f"{condition.metric} is {phrases.number(value)}: {condition.text}"
    return Alarm(condition.text, "warning", text, int(numbers.steps[-1]), "your own limit")


def _parse_limit(text: str, match: re.Match[str]) -> Condition:
    metric = match["metric"]
    if find_metric(metric) is None:
        hint = "`rlvitals metrics` lists the names; --map NAME=METRIC maps your own"
        raise UsageError(f"no metric is called {metric!r}", where=text, hint=hint)
    try:
        value = float(match["value"])
    except ValueError:
        raise UsageError(f"{match['value']!r} is not a number", where=text) from None
    after = _parse_count(match["after"], text) if match["after"] else 0.0
    return Condition(text, metric, match["sign"], value, after)


def _parse_count(text: str, condition: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([kmb]?)", text, re.IGNORECASE)
    if match is None:
        raise UsageError(f"{text!r} is not a number of steps", where=condition, hint="after 500k")
    return float(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}[match[2].lower()]
