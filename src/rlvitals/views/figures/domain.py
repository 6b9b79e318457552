"""What matters in one field alone, as its owner has named it: a panel for each measure."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from rlvitals.metrics.catalogue.outcome import DOMAIN
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import finished, members


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw each measure by itself: their units differ."""
    lines = sorted(members(subjects, DOMAIN), key=lambda line: (line.part, line.run))
    return tuple(
        finished(
            subjects,
            Panel(own[0].label.capitalize(), lines=tuple(replace(line, part=0) for line in own)),
            (),
        )
        for own in (list(group) for _, group in groupby(lines, key=lambda line: line.part))
    )


FIGURE = Figure("domain", "Measures of your own", needs=(DOMAIN,), panels=panels, columns=2)
