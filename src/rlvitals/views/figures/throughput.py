"""Whether time is wasted: how many steps, updates and tokens a second, and where seconds go."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import throughput
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import finished, first_of, members
from rlvitals.views.figures.speeds import speed

RATES = (
    throughput.TOKENS_PER_SECOND, throughput.SAMPLES_PER_SECOND, throughput.EPISODES_PER_SECOND,
)  # fmt: skip
PARTS = (throughput.PHASE_TIME, throughput.PHASE_SHARE)
NEEDS = (
    throughput.STEPS_PER_SECOND, throughput.UPDATES_PER_SECOND, *RATES, throughput.STEP_TIME,
    *PARTS, throughput.ELAPSED,
)  # fmt: skip


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the speeds that are known, the time of a step and of its phases."""
    found = [
        speed(subjects, throughput.STEPS_PER_SECOND),
        speed(subjects, throughput.UPDATES_PER_SECOND),
        first_of(subjects, *RATES, low=0.0),
        first_of(subjects, throughput.STEP_TIME, low=0.0),
    ]
    if len(subjects) == 1:
        found += [
            finished(subjects, Panel(metric.title, metric.unit, lines, low=0.0), (metric,))
            for metric in PARTS
            if (lines := members(subjects, metric))
        ]
    return tuple(panel for panel in found if any(len(line.series) > 1 for line in panel.lines))


FIGURE = Figure("throughput", "Throughput", needs=NEEDS, panels=panels, columns=2)
