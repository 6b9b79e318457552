"""What is minimised, over the run: it says less than the outcome does."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import optimiser, policy, value
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, logged, together

POLICY = (policy.LOSS, policy.ACTOR_LOSS, policy.LOSS_SUM, policy.LOSS_MAGNITUDE)
CRITIC = (value.LOSS, value.CRITIC_LOSS, value.LOSS_SUM, value.TD_ERROR)
WHOLE = (optimiser.LOSS, optimiser.EVAL_LOSS)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the loss as a whole; where none is logged, its parts."""
    if any(logged(one.trace, optimiser.LOSS) for one in subjects):
        pairs = list(zip(WHOLE, ("training", "evaluation"), strict=True))
        return (together(subjects, pairs, "Loss"),)
    parts = (
        first_of(subjects, *POLICY, title="Policy loss"),
        first_of(subjects, *CRITIC, title="Value loss"),
        first_of(subjects, optimiser.EVAL_LOSS),
    )
    return tuple(part for part in parts if part.lines)


FIGURE = Figure("training_loss", "Training loss", needs=(*WHOLE, *POLICY, *CRITIC), panels=panels)
