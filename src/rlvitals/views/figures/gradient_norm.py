"""The gradient's norm before clipping: it falls and settles, or it spikes."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue.optimiser import CRITIC_GRAD_NORM, GRAD_NORM, GRAD_NORM_MAX
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import together

NORMS = (GRAD_NORM, GRAD_NORM_MAX, CRITIC_GRAD_NORM)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the norms beside the one from which on they are clipped."""
    pairs = list(zip(NORMS, ("mean", "largest", "critic"), strict=True))
    return (together(subjects, pairs, "Gradient norm"),)


FIGURE = Figure("gradient_norm", "Gradient norm", needs=NORMS, panels=panels)
