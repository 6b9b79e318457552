"""How the outcome weighs a symptom: proven stalled it is a fault, else it is worth knowing."""

from rlvitals.metrics.catalogue.outcome import ACCURACY
from rlvitals.metrics.metric import Bound
from rlvitals.rules.answers import answers, learned
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import Standing
from rlvitals.types import Series, Trace

Sentences = tuple[str, ...]


def content(now: Standing) -> bool:
    """Tell whether the outcome improves, or holds the best it has learned."""
    return now.improves or now.state == "holding its best"


def severity(
    now: Standing,
    stalled: Severity = Severity.WARNING,
    unknown: Severity = Severity.NOTE,
) -> Severity:
    """Pick a severity by the outcome's direction; where it improves or holds, at most a note."""
    if content(now):
        return Severity.NOTE
    return stalled if now.stalled else unknown


def sides(now: Standing) -> tuple[Sentences, Sentences]:
    """Return what the outcome says for the finding, and what against it."""
    if content(now):
        return (), (f"{now.sentence} all the same",)
    if now.stalled:
        return (f"{now.sentence} meanwhile",), ()
    return (), ()  # an outcome that cannot be told is evidence of nothing


def by_learning(  # noqa: PLR0913, PLR0917 - the fields of one finding
    trace: Trace,
    summary: str,
    shown: tuple[str, Series],
    since: tuple[int, float],
    bound: Bound,
    said: Sentences,
    causes: Sentences,
    *,
    most: Severity = Severity.ERROR,
) -> Finding:
    """Make a finding of what goes on to the end, weighed by what the model learned meanwhile.

    `shown` is the metric's name and points, `since` the step it began at and the level it came to,
    `most` the highest severity.
    """
    (name, series), (began, level) = shown, since
    now = learned(trace)
    evidence, counter = sides(now)
    return Finding(
        summary,
        severity=min(severity(now), most),
        metric=name,
        began=began,
        ended=int(series.steps[-1]),
        observed=level,
        bound=bound,
        evidence=(*said, *evidence),
        counter=counter,
        causes=causes,
    )


def clear_by_answers(trace: Trace) -> Clear | Undecided:
    """Clear what the outcome speaks for, if right answers say so: a total may be what is gamed."""
    if answers(trace) is None:
        return Undecided("no reward for right answers is logged", (ACCURACY.name,))
    return Clear()
