"""Figure: learning rates over the run."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue.optimiser import CRITIC_LEARNING_RATE, LEARNING_RATE
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import together

LEARNING_RATES = (LEARNING_RATE, CRITIC_LEARNING_RATE)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the policy's and the critic's learning rate."""
    pairs = list(zip(LEARNING_RATES, ("policy", "critic"), strict=True))
    return (together(subjects, pairs, "Learning rate", unit="", smooth=False),)


FIGURE = Figure("learning_rate", "Learning rate", needs=LEARNING_RATES, panels=panels)
