"""Whether the critic is of use: its loss, what it explains, and what it expects."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import policy, value
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, together

LOSSES = (value.LOSS, value.CRITIC_LOSS, value.LOSS_SUM, value.TD_ERROR)
EXPLAINED = (value.EXPLAINED_VARIANCE, value.MSE_EXPLAINED_VARIANCE)
LEVELS = (
    (value.MEAN, "value"), (value.RETURN_MEAN, "return"), (value.Q_MEAN, "Q"),
    (value.PREDICTION_MEAN, "predicted"), (value.Q_MAX, "largest Q"),
)  # fmt: skip


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw what is logged of the four."""
    found = (
        first_of(subjects, *LOSSES, title="Value loss"),
        first_of(subjects, *EXPLAINED, title="Explained variance", high=1.0),
        together(subjects, LEVELS, "Values and returns"),
        first_of(subjects, policy.ADVANTAGE_STD),
    )
    return tuple(panel for panel in found if panel.lines)


FIGURE = Figure(
    "value",
    "Value function",
    needs=(*LOSSES, *EXPLAINED, *(metric for metric, _ in LEVELS)),
    panels=panels,
    columns=2,
)
