"""Figure: training loss."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import optimiser, policy
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, has_metric, together
from rlvitals.views.figures.value import VALUE_LOSSES

POLICY_LOSSES = (policy.LOSS, policy.ACTOR_LOSS, policy.LOSS_SUM, policy.LOSS_MAGNITUDE)
TOTAL_LOSSES = (optimiser.LOSS, optimiser.EVAL_LOSS)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the total loss, or the policy's and value losses if it is not logged."""
    if any(has_metric(subject.trace, optimiser.LOSS) for subject in subjects):
        pairs = list(zip(TOTAL_LOSSES, ("training", "evaluation"), strict=True))
        return (together(subjects, pairs, "Loss"),)
    candidates = (
        first_of(subjects, *POLICY_LOSSES, title="Policy loss"),
        first_of(subjects, *VALUE_LOSSES, title="Value loss"),
        first_of(subjects, optimiser.EVAL_LOSS),
    )
    return tuple(panel for panel in candidates if panel.lines)


FIGURE = Figure(
    "training_loss",
    "Training loss",
    needs=(*TOTAL_LOSSES, *POLICY_LOSSES, *VALUE_LOSSES),
    panels=panels,
)
