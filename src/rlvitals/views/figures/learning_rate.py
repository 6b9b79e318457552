"""The learning rate over the run: its schedule, and what cut it."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue.optimiser import CRITIC_LEARNING_RATE, LEARNING_RATE
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import together

RATES = (LEARNING_RATE, CRITIC_LEARNING_RATE)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw it, and the critic's own beside it."""
    pairs = list(zip(RATES, ("policy", "critic"), strict=True))
    return (together(subjects, pairs, "Learning rate", unit="", smooth=False),)


FIGURE = Figure("learning_rate", "Learning rate", needs=RATES, panels=panels)
