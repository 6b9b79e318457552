"""Figure: the user's own outcome measures, a panel each."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from rlvitals.metrics.catalogue.outcome import DOMAIN
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import annotate, members


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return a panel for each measure, because their units differ."""
    lines = sorted(members(subjects, DOMAIN), key=lambda line: (line.part, line.run))
    return tuple(
        annotate(
            subjects,
            Panel(
                measure_lines[0].label.capitalize(),
                lines=tuple(replace(line, part=0) for line in measure_lines),
            ),
            (),
        )
        for measure_lines in (
            list(group) for _, group in groupby(lines, key=lambda line: line.part)
        )
    )


FIGURE = Figure("domain", "Measures of your own", needs=(DOMAIN,), panels=panels, columns=2)
