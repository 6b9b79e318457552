"""Fit the thresholds of rules that fire on a lab's own healthy runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite, log, sqrt

from rlvitals.diagnosis.marks import Mark
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Finding, Rule, Severity, Threshold, Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace


@dataclass(frozen=True, slots=True)
class Fit:
    """A threshold at which a rule fires on none of the healthy runs, and what that costs."""

    rule: str
    threshold: Threshold | None  # None: no threshold of the rule silences it
    value: float
    healthy: int  # runs that the rule could judge
    rang: int  # of these, where it fires at the default
    held_out: int  # of these, where it fires at the value fitted without the run
    faulted: int  # runs marked as the fault that the rule names
    caught: int  # of these, where it fires at the value


def fit(runs: Iterable[tuple[Mark, Trace]]) -> list[Fit]:
    """Return a fit for each rule that fires on a run marked healthy, or on one marked wrong.

    Of a rule's thresholds the one is taken that keeps most of the marked faults, then the one
    that moves least.
    """
    runs = list(runs)
    return [each for rule in CATALOGUE if (each := _fit_rule(rule, runs)) is not None]


def _fit_rule(rule: Rule, runs: Sequence[tuple[Mark, Trace]]) -> Fit | None:
    traces = [
        trace
        for mark, trace in runs
        if mark.label == "healthy" or (mark.label, mark.subject) == ("wrong", rule.name)
    ]
    traces = [trace for trace in traces if rule.suits(trace)]
    loud = [trace for trace in traces if _fires(rule, trace, {})]
    if not loud:
        return None
    healthy = sum(not isinstance(rule.judge(trace), Undecided) for trace in traces)
    faulted = [trace for mark, trace in runs if (mark.label, mark.subject) == ("broken", rule.name)]

    def caught(values: Mapping[str, float]) -> int:
        return sum(_fires(rule, trace, values) for trace in faulted)

    fits = []
    for threshold in rule.thresholds:
        for factor in (2.0, 0.5):
            value = _least_silent(rule, threshold, factor, loud)
            if value is not None:
                hits = caught({threshold.name: value})
                fits.append((-hits, abs(log(value / threshold.default)), threshold, factor, value))
    if not fits:
        return Fit(rule.name, None, 0.0, healthy, len(loud), len(loud), len(faulted), caught({}))
    negative_hits, _, threshold, factor, value = min(fits, key=lambda candidate: candidate[:2])
    held_out = 0
    for i, trace in enumerate(loud):
        without = _least_silent(rule, threshold, factor, [*loud[:i], *loud[i + 1 :]])
        held_out += without is None or _fires(rule, trace, {threshold.name: without})
    return Fit(
        rule.name, threshold, value, healthy, len(loud), held_out, len(faulted), -negative_hits
    )  # fmt: skip


def _fires(rule: Rule, trace: Trace, values: Mapping[str, float]) -> bool:
    """Return True if a rule warns of a run that is judged by given thresholds."""
    answer = rule.judge(replace(trace, thresholds={**trace.thresholds, **values}))
    return isinstance(answer, Finding) and answer.severity >= Severity.WARNING


def _least_silent(
    rule: Rule, threshold: Threshold, factor: float, traces: Sequence[Trace]
) -> float | None:
    """Return the value nearest the default at which a rule fires on none; None without one."""

    def is_silent(value: float) -> bool:
        return not any(_fires(rule, trace, {threshold.name: value}) for trace in traces)

    loud = threshold.default
    for value in _values(threshold, factor):
        if is_silent(value):
            break
        loud = value
    else:
        return None
    for _ in range(8):  # of a factor of 2: to 0.3 %
        middle = sqrt(loud * value)
        loud, value = (loud, middle) if is_silent(middle) else (middle, value)
    rounded = float(f"{value:.3g}")
    return rounded if threshold.allows(rounded) and is_silent(rounded) else value


def _values(threshold: Threshold, factor: float) -> Iterator[float]:
    """Generate the default times powers of a factor, up to the end of what may be set."""
    value = threshold.default
    end = threshold.high if factor > 1 else threshold.low
    for _ in range(12):  # a limit that is 4,096 x off is not the one that is wrong
        if value <= 0 or value == end:
            return
        value *= factor
        if isfinite(end) and (value > end if factor > 1 else value < end):
            value = end
        if value > 0:
            yield value
