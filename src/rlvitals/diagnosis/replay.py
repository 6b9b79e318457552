"""A run judged as it grew: what was said when, and what was taken back since."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rlvitals.rules import CATALOGUE
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rate import Rates, held_at_note
from rlvitals.rules.rates import RATES
from rlvitals.rules.rule import Answer, Finding, Rule, Severity, Undecided
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Lifecycle, Trace

REPLAY_PARTS = 20  # prefixes: one at every 5 % of the run


@dataclass(frozen=True, slots=True)
class Retraction:
    """Something that was said as a warning or an error and taken back."""

    rule: Rule
    finding: Finding  # as it was said at its gravest
    said: int  # step of the first prefix that said so
    taken_back: int  # step of the first prefix that no longer did
    why: str


@dataclass(frozen=True, slots=True)
class Course:
    """What one rule said along a run."""

    rule: Rule
    steps: tuple[int, ...]  # where it was asked
    answers: tuple[Answer, ...]
    retractions: tuple[Retraction, ...] = ()

    @property
    def first_warning_step(self) -> int | None:
        """The first step at which it gave a warning or an error; None if it never did."""
        heard = (s for s, a in zip(self.steps, self.answers, strict=True) if _is_warning(a))
        return next(heard, None)

    @property
    def flips(self) -> int:
        """How often it went from a warning or an error to less, or back to one."""
        return sum(
            _is_warning(answer) != _is_warning(next_) for answer, next_ in pairwise(self.answers)
        )


def replay(
    trace: Trace, rules: Sequence[Rule] = CATALOGUE, rates: Rates = RATES, parts: int = REPLAY_PARTS
) -> tuple[Course, ...]:
    """Ask every rule that applies on growing prefixes of a run, the whole of it last.

    As on a live run the budget is unknown, and so is how the process will end, but on the whole.
    """
    grown = prefixes(trace, parts)
    applicable = [rule for rule in rules if rule.applies(trace.profile)]
    return tuple(_course(rule, grown, rates) for rule in applicable)


def retractions(courses: Sequence[Course]) -> tuple[Retraction, ...]:
    """Return what was taken back, in the order it was said."""
    every = (retraction for course in courses for retraction in course.retractions)
    return tuple(sorted(every, key=lambda r: (r.said, r.taken_back, r.rule.name)))


def prefixes(trace: Trace, parts: int = REPLAY_PARTS) -> tuple[Trace, ...]:
    """Return the run as it stood after each of several equal shares of it, as a watcher met it.

    Parameters
    ----------
    trace : Trace
        The run.
    parts : int
        Number of shares.

    Returns
    -------
    tuple of Trace
        At most `parts` prefixes, the whole run last. On the others the log grew just now: neither
        the budget nor the end of the run is known.
    """
    first, last = trace.first_step, trace.last_step
    ends = sorted({first + round((last - first) * index / parts) for index in range(1, parts)})
    lifecycle = Lifecycle(
        live=True, live_by="it was watched", silence=0.0, attempts=trace.lifecycle.attempts
    )
    live = replace(trace, budget=None, lifecycle=lifecycle)
    return (*(_drop_empty(live.until(step)) for step in ends if step < last), trace)


def _drop_empty(trace: Trace) -> Trace:
    """Leave out what was not logged yet: an empty series is no series."""
    return replace(trace, series={name: s for name, s in trace.series.items() if len(s)})


def _course(rule: Rule, grown: Sequence[Trace], rates: Rates) -> Course:
    answers = tuple(_judge_prefix(rule, trace, rates) for trace in grown)
    steps = tuple(trace.last_step for trace in grown)
    undone: list[Retraction] = []
    standing: list[Finding] = []
    start_step = 0
    for i, answer in enumerate(answers):
        if isinstance(answer, Finding) and _is_warning(answer):
            start_step = start_step if standing else steps[i]
            standing.append(answer)
        elif standing:
            gravest = max(standing, key=lambda finding: finding.severity)
            undone.append(
                Retraction(rule, gravest, start_step, steps[i], why_taken_back(answer, grown[i]))
            )
            standing = []
    return Course(rule, steps, answers, tuple(undone))


def _judge_prefix(rule: Rule, trace: Trace, rates: Rates) -> Answer:
    answer = rule.judge(trace)
    return held_at_note(rule, answer, rates) if isinstance(answer, Finding) else answer


def _is_warning(answer: Answer) -> bool:
    return isinstance(answer, Finding) and answer.severity > Severity.NOTE


def why_taken_back(answer: Answer, trace: Trace) -> str:
    """Say what took a finding back: what the rule says now, and how the outcome stands."""
    if isinstance(answer, Undecided):
        return answer.why
    status = "only a note by then" if isinstance(answer, Finding) else "it no longer holds"
    counter = answer.counter if isinstance(answer, Finding) else ()
    trend = verdict_trend(trace)
    if counter or trend.state == "unknown":
        return "; ".join((status, *counter))
    is_near_best = trend.best > 0 and np.isfinite(trend.last) and trend.last >= 0.9 * trend.best
    best = f", {trend.last / trend.best:.0%} of its best" if is_near_best else ""
    return f"{status}; {trend.sentence}{best}"
