"""Figure: metrics of PSR, NSR and W-REINFORCE in four panels."""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics.catalogue import language, outcome
from rlvitals.types import Profile
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of

SAMPLE_SHARES = (language.POSITIVE_SHARE, language.NEGATIVE_SHARE, language.POS_NEG_RATIO)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the shares of positive and negative samples, their ratio and the mean rewards."""
    rewards = [
        subject
        for subject in subjects
        if subject.trace.profile in (Profile.PSR, Profile.NSR, Profile.W_REINFORCE)
    ]
    averages = (language.FILTERED_REWARD, *((outcome.REWARD,) if rewards else ()))
    candidates = (
        (first_of(subjects, SAMPLE_SHARES[0], low=0.0, high=1.0), "PSR"),
        (first_of(subjects, SAMPLE_SHARES[1], low=0.0, high=1.0), "NSR"),
        (first_of(subjects, SAMPLE_SHARES[2]), "W-REINFORCE"),
        (first_of(subjects, *averages, title="Average reward"), "any of the three"),
    )
    return tuple(
        panel if panel.lines else replace(panel, absent=f"not logged: {mode} logs it")
        for panel, mode in candidates
    )


FIGURE = Figure(
    "nsr_metrics",
    "Training on right or on wrong samples",
    needs=(*SAMPLE_SHARES, language.FILTERED_REWARD),
    panels=panels,
    columns=2,
)
