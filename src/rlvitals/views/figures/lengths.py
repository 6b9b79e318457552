"""How long prompts and responses are: what drifts, what explodes, what is cut off."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import language
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, together

RESPONSES = (
    (language.LENGTH_MEAN, "mean"), (language.LENGTH_MIN, "shortest"),
    (language.LENGTH_MAX, "longest"),
)  # fmt: skip
SPREADS = ((language.LENGTH_STD, "responses"), (language.QUERY_LENGTH_STD, "prompts"))
OTHERS = (language.QUERY_LENGTH_MEAN, language.TRUNCATED_SHARE, language.EOS_TOKENS)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw lengths, their spread, prompts, and how many responses end by themselves."""
    found = (
        together(subjects, RESPONSES, "Response length"),
        together(subjects, SPREADS, "Spread of lengths"),
        first_of(subjects, language.QUERY_LENGTH_MEAN),
        first_of(subjects, language.TRUNCATED_SHARE, low=0.0, high=1.0),
        first_of(subjects, language.EOS_TOKENS),
    )
    return tuple(panel for panel in found if panel.lines)


FIGURE = Figure(
    "lengths",
    "Lengths of prompts and responses",
    needs=(*(metric for metric, _ in (*RESPONSES, *SPREADS)), *OTHERS),
    panels=panels,
    columns=2,
)
