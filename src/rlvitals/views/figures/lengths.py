"""Figure: lengths of prompts and responses, and the share of truncated responses."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import language
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import first_of, together

RESPONSE_LENGTHS = (
    (language.LENGTH_MEAN, "mean"), (language.LENGTH_MIN, "shortest"),
    (language.LENGTH_MAX, "longest"),
)  # fmt: skip
LENGTH_SPREADS = ((language.LENGTH_STD, "responses"), (language.QUERY_LENGTH_STD, "prompts"))


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the lengths, their spread, and the shares of truncated and ended responses."""
    candidates = (
        together(subjects, RESPONSE_LENGTHS, "Response length"),
        together(subjects, LENGTH_SPREADS, "Spread of lengths"),
        first_of(subjects, language.QUERY_LENGTH_MEAN),
        first_of(subjects, language.TRUNCATED_SHARE, low=0.0, high=1.0),
        first_of(subjects, language.EOS_TOKENS),
    )
    return tuple(panel for panel in candidates if panel.lines)


FIGURE = Figure(
    "lengths",
    "Lengths of prompts and responses",
    needs=(
        *(metric for metric, _ in (*RESPONSE_LENGTHS, *LENGTH_SPREADS)),
        language.QUERY_LENGTH_MEAN,
        language.TRUNCATED_SHARE,
        language.EOS_TOKENS,
    ),
    panels=panels,
    columns=2,
)
