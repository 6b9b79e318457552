"""Figure: KL, clip fraction, entropy and probability ratio of the policy."""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics.catalogue import exploration, policy
from rlvitals.rules import kinds
from rlvitals.views.figures.figure import Figure, Limit, Panel, Subject
from rlvitals.views.figures.panels import first_of

KL_METRICS = (policy.APPROX_KL, policy.KL_SIGNED)
REFERENCE_KLS = (
    policy.KL_TO_REFERENCE, policy.KL_TO_REFERENCE_PER_TOKEN, policy.KL_TO_WARM_START,
)  # fmt: skip
CLIP_FRACTIONS = (policy.CLIP_FRACTION, policy.CLIP_FRACTION_EFFECTIVE)
ENTROPY_METRICS = (exploration.ENTROPY, exploration.ENTROPY_SEQUENCE, exploration.ENTROPY_SUM)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the logged panels, with KL to the reference and a Gaussian's std."""
    ratio = first_of(subjects, policy.RATIO)
    reference = first_of(subjects, *REFERENCE_KLS, title="KL to the reference")
    if not all(subject.trace.profile in kinds.LANGUAGE for subject in subjects):
        reference = replace(reference, limits=())  # the target is of language models only
    candidates = (
        first_of(subjects, *KL_METRICS, title="KL per update"),
        first_of(subjects, *CLIP_FRACTIONS, title="Clip fraction", low=0.0, linear=True),
        first_of(subjects, *ENTROPY_METRICS, title="Entropy", linear=True),
        replace(ratio, limits=(*ratio.limits, Limit(1.0, "unchanged: 1")))
        if ratio.lines
        else ratio,
        reference,
        first_of(subjects, exploration.STD),
    )
    return tuple(panel for panel in candidates if panel.lines)


FIGURE = Figure(
    "policy",
    "Policy",
    needs=(*KL_METRICS, *REFERENCE_KLS, *CLIP_FRACTIONS, *ENTROPY_METRICS),
    panels=panels,
    columns=2,
)
