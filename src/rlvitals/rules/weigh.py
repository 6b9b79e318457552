"""How the outcome weighs a symptom: proven stalled it is a fault, else it is worth knowing."""

from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import Standing

Sentences = tuple[str, ...]


def severity(
    now: Standing,
    stalled: Severity = Severity.WARNING,
    unknown: Severity = Severity.NOTE,
) -> Severity:
    """Pick a severity by the outcome's direction; where it improves, never more than a note."""
    if now.improves:
        return Severity.NOTE
    return stalled if now.stalled else unknown


def sides(now: Standing) -> tuple[Sentences, Sentences]:
    """Return what the outcome says for the finding, and what against it."""
    if now.improves:
        return (), (f"{now.sentence} all the same",)
    if now.stalled:
        return (f"{now.sentence} meanwhile",), ()
    return (now.sentence,), ()
