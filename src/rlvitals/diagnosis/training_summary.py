"""A run in a few lines: how far, what changed, how long it took, and whether it has converged.

Whether it has is said by the verdict, which judges the outcome first. How far the last losses
scatter stands beside it: a loss of policy gradients may lie at zero, below it, or rise as the
policy learns, and is no proof by itself.
"""

from typing import Literal

from rlvitals.diagnosis.coupling import Coupling, Spread, coupling, spread
from rlvitals.diagnosis.duration import training_time
from rlvitals.diagnosis.engine import Diagnosis, thin_trace
from rlvitals.diagnosis.status import Change
from rlvitals.diagnosis.summary import MAX_SLOW_ENTROPY_LOSS
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE, LOSS
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.form import describe_form_gain
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import Standing
from rlvitals.signals.level import first_last_change
from rlvitals.signals.shape import tail_ratio
from rlvitals.startup.fast_dataclass import dataclass

Answered = Literal["yes", "no", "unknown"]
LOSS_TAIL_POINTS = 10  # losses
MAX_FLAT_LOSS_RATIO = 0.01  # std / mean of the last losses
# Rules that speak against a small KL, and against an entropy that is kept.
KL_RULES = ("kl-above-target", "kl-spike", "reference-kl-out-of-range", "kl-penalty-dominates")
ENTROPY_RULES = ("entropy-collapse",)


@dataclass(frozen=True, slots=True)
class Goal:
    """One of the three things a policy is trained for, and whether it is had."""

    text: str
    had: Answered


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person asks of a run that is over."""

    name: str
    steps: int
    unit: str
    loss: Change | None
    outcome: Standing
    learning_rate: float | None  # the last
    seconds: float | None  # of training
    seconds_from: str
    converged: Answered
    why: str  # which evidence decided
    ratio: float | None  # std / mean of the last losses; None where it says nothing
    goals: tuple[Goal, ...]
    found: Diagnosis
    form: str = ""  # where the form of the answers improved and right answers did not
    coupling: Coupling | None = None  # of a scheduler: temperature and latency
    spread: Spread | None = None  # its choices beside the best ones


def summary(name: str, diagnosis: Diagnosis, trained_for: float | None = None) -> Summary:
    """Sum a run up. `trained_for`: seconds, where its progress file tells them."""
    trace = diagnosis.trace
    rate, loss = trace.numbers(LEARNING_RATE.name), trace.numbers(LOSS.name)
    seconds, source = training_time(trace)
    if trained_for is not None:
        seconds, source = trained_for, "its progress file"
    converged, reason = _judge_convergence(diagnosis)
    ends = None if loss is None else (float(loss.values[0]), float(loss.values[-1]))
    trend = verdict_trend(thin_trace(diagnosis.trace))
    up = trend.improves or trend.state == "holding its best"
    goals = (
        Goal("reward up", "yes" if up else "no" if trend.stalls else "unknown"),
        Goal("KL low", _rules_answer(diagnosis, KL_RULES)),
        Goal("entropy kept", entropy_answer(diagnosis)),
    )
    return Summary(
        name=name,
        steps=trace.last_step,
        unit=trace.step_unit,
        loss=Change(LOSS.name, *ends, loss) if loss is not None and ends else None,
        outcome=verdict_trend(thin_trace(trace)),
        learning_rate=None if rate is None else float(rate.values[-1]),
        seconds=seconds,
        seconds_from=source,
        converged=converged,
        why=reason,
        ratio=None if loss is None else tail_ratio(loss.values, LOSS_TAIL_POINTS),
        goals=goals,
        found=diagnosis,
        form=describe_form_gain(trace),
        coupling=coupling(trace),
        spread=spread(trace),
    )


def _judge_convergence(diagnosis: Diagnosis) -> tuple[Answered, str]:
    verdict = diagnosis.verdict
    if verdict.word is Word.UNKNOWN:
        return "unknown", verdict.why
    if verdict.word is Word.CONVERGED:
        return "yes", verdict.why
    if verdict.word is not Word.PLATEAU:
        return "no", f"{verdict.word.value}: {verdict.why}"
    # A plateau is where most trainings end well; beside a warning it is where one got stuck.
    warnings = [
        rule.name for rule, finding in diagnosis.findings if finding.severity > Severity.NOTE
    ]
    if warnings:
        return "no", f"it moves no more, but {warnings[0]} speaks against it: {verdict.why}"
    return "yes", f"it moves no more, whether or not more could be had: {verdict.why}"


def _rules_answer(diagnosis: Diagnosis, names: tuple[str, ...]) -> Answered:
    """Say what rules come to: no where one fires, be it a note, yes where none of them did."""
    if any(rule.name in names for rule, _ in diagnosis.findings):
        return "no"
    return "yes" if any(rule.name in names for rule in diagnosis.clear) else "unknown"


def entropy_answer(diagnosis: Diagnosis) -> Answered:
    """Say whether enough of the entropy is left, by its levels and by the rule on its collapse."""
    series = diagnosis.trace.get(ENTROPY.name)
    levels = None if series is None else first_last_change(series.values)
    if levels is not None and levels[0] > 0 and levels[1] < (1 - MAX_SLOW_ENTROPY_LOSS) * levels[0]:
        return "no"
    answered = _rules_answer(diagnosis, ENTROPY_RULES)
    return "yes" if answered == "unknown" and levels is not None and levels[0] > 0 else answered
