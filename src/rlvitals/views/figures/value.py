"""Figure: loss, explained variance and predictions of the value function."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import policy, value
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, together

VALUE_LOSSES = (value.LOSS, value.CRITIC_LOSS, value.LOSS_SUM, value.TD_ERROR)
EXPLAINED_VARIANCES = (value.EXPLAINED_VARIANCE, value.MSE_EXPLAINED_VARIANCE)
VALUE_LEVELS = (
    (value.MEAN, "value"), (value.RETURN_MEAN, "return"), (value.Q_MEAN, "Q"),
    (value.PREDICTION_MEAN, "predicted"), (value.Q_MAX, "largest Q"),
)  # fmt: skip


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the logged panels of the four."""
    candidates = (
        first_of(subjects, *VALUE_LOSSES, title="Value loss"),
        first_of(subjects, *EXPLAINED_VARIANCES, title="Explained variance", high=1.0),
        together(subjects, VALUE_LEVELS, "Values and returns"),
        first_of(subjects, policy.ADVANTAGE_STD),
    )
    return tuple(panel for panel in candidates if panel.lines)


FIGURE = Figure(
    "value",
    "Value function",
    needs=(*VALUE_LOSSES, *EXPLAINED_VARIANCES, *(metric for metric, _ in VALUE_LEVELS)),
    panels=panels,
    columns=2,
)
