"""What training on right or on wrong samples alone is watched by: four panels."""

from collections.abc import Sequence
from dataclasses import replace

from rlvitals.metrics.catalogue import language, outcome
from rlvitals.types import Profile
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of

SHARES = (language.POSITIVE_SHARE, language.NEGATIVE_SHARE, language.POS_NEG_RATIO)
MODES = (Profile.PSR, Profile.NSR, Profile.W_REINFORCE)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the shares of right and wrong samples, their ratio, and the mean rewards."""
    rewards = [one for one in subjects if one.trace.profile in MODES]
    averages = (language.FILTERED_REWARD, *((outcome.REWARD,) if rewards else ()))
    found = (
        (first_of(subjects, SHARES[0], low=0.0, high=1.0), "PSR"),
        (first_of(subjects, SHARES[1], low=0.0, high=1.0), "NSR"),
        (first_of(subjects, SHARES[2]), "W-REINFORCE"),
        (first_of(subjects, *averages, title="Average reward"), "any of the three"),
    )
    return tuple(
        panel if panel.lines else replace(panel, absent=f"not logged: {mode} logs it")
        for panel, mode in found
    )


FIGURE = Figure(
    "nsr_metrics",
    "Training on right or on wrong samples",
    needs=(*SHARES, language.FILTERED_REWARD),
    panels=panels,
    columns=2,
)
