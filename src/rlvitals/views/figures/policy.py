"""How far updates move the policy, and how undecided it is: KL, clipping, entropy, ratio."""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics.catalogue import exploration, policy
from rlvitals.rules import kinds
from rlvitals.views.figures.figure import Figure, Limit, Panel, Subject
from rlvitals.views.figures.panels import first_of

KLS = (policy.APPROX_KL, policy.KL_SIGNED)
REFERENCE = (
    policy.KL_TO_REFERENCE, policy.KL_TO_REFERENCE_PER_TOKEN, policy.KL_TO_WARM_START,
)  # fmt: skip
CLIPS = (policy.CLIP_FRACTION, policy.CLIP_FRACTION_EFFECTIVE)
ENTROPIES = (exploration.ENTROPY, exploration.ENTROPY_SEQUENCE, exploration.ENTROPY_SUM)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the four; how far from the reference it is, and a Gaussian's width, where logged."""
    ratio = first_of(subjects, policy.RATIO)
    found = (
        first_of(subjects, *KLS, title="KL per update"),
        first_of(subjects, *CLIPS, title="Clip fraction", low=0.0, linear=True),
        first_of(subjects, *ENTROPIES, title="Entropy", linear=True),
        replace(ratio, limits=(*ratio.limits, Limit(1.0, "unchanged: 1")))
        if ratio.lines
        else ratio,
        _reference(subjects),
        first_of(subjects, exploration.STD),
    )
    return tuple(panel for panel in found if panel.lines)


def _reference(subjects: Sequence[Subject]) -> Panel:
    """Draw how far the policy is from where it began; a language model's has a target."""
    panel = first_of(subjects, *REFERENCE, title="KL to the reference")
    if all(one.trace.profile in kinds.LANGUAGE for one in subjects):
        return panel
    return replace(panel, limits=())


FIGURE = Figure(
    "policy", "Policy", needs=(*KLS, *REFERENCE, *CLIPS, *ENTROPIES), panels=panels, columns=2
)
