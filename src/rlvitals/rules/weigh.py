"""How the outcome weighs a symptom: proven stalled it is a fault, else it is worth knowing."""

from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import Standing

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
