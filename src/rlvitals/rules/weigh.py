"""Severity of a symptom by the outcome: a warning where the outcome stalls, else a note."""

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.outcome import ACCURACY, SUCCESS_RATE
from rlvitals.metrics.metric import Bound
from rlvitals.rules.answers import answers, learning_trend
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, Standing
from rlvitals.types import Series, Trace

Sentences = tuple[str, ...]


def content(trend: Standing) -> bool:
    """Tell whether the outcome improves, or holds the best it has learned."""
    return trend.improves or trend.state == "holding its best"


def severity(
    trend: Standing,
    stalled: Severity = Severity.WARNING,
    unknown: Severity = Severity.NOTE,
) -> Severity:
    """Pick a severity by the outcome's direction; where it improves or holds, at most a note."""
    if content(trend):
        return Severity.NOTE
    return stalled if trend.stalls else unknown


def sides(trend: Standing) -> tuple[Sentences, Sentences]:
    """Return what the outcome says for the finding, and what against it."""
    if content(trend):
        return (), (f"{trend.sentence} all the same",)
    if trend.stalls:
        return (f"{trend.sentence} meanwhile",), ()
    return (), ()  # an outcome that cannot be told is evidence of nothing


def by_learning(  # noqa: PLR0913, PLR0917 - the fields of one finding
    trace: Trace,
    summary: str,
    curve: tuple[str, Series],
    onset: tuple[int, float],
    bound: Bound,
    sentences: Sentences,
    causes: Sentences,
    *,
    max_severity: Severity = Severity.ERROR,
) -> Finding:
    """Make a finding of what goes on to the end, weighed by what the model learned meanwhile.

    `curve` is the metric's name and points, `onset` the step it began at and the level it came to,
    `max_severity` the highest severity.
    """
    (name, series), (onset_step, level) = curve, onset
    trend = learning_trend(trace)
    evidence, counter = sides(trend)
    return Finding(
        summary,
        severity=min(severity(trend), max_severity),
        metric=name,
        began=onset_step,
        ended=int(series.steps[-1]),
        observed=level,
        bound=bound,
        evidence=(*sentences, *evidence),
        counter=counter,
        causes=causes,
    )


def clear_by_answers(trace: Trace) -> Clear | Undecided:
    """Clear what the outcome speaks for, if right answers say so: a total may be what is gamed."""
    if answers(trace) is None:
        lacks = "no reward for right answers is logged"
        lacks = describe_absence(trace, lacks, ACCURACY, SUCCESS_RATE, min_count=MIN_OUTCOME_POINTS)
        return Undecided(lacks, (ACCURACY.name,))
    return Clear()
