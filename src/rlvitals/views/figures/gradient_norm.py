"""Figure: gradient norm before clipping."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue.optimiser import CRITIC_GRAD_NORM, GRAD_NORM, GRAD_NORM_MAX
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import together

GRADIENT_NORMS = (GRAD_NORM, GRAD_NORM_MAX, CRITIC_GRAD_NORM)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the norms with the clipping threshold."""
    pairs = list(zip(GRADIENT_NORMS, ("mean", "largest", "critic"), strict=True))
    return (together(subjects, pairs, "Gradient norm"),)


FIGURE = Figure("gradient_norm", "Gradient norm", needs=GRADIENT_NORMS, panels=panels)
