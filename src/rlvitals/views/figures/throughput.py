"""Figure: throughput in steps, updates and tokens per second, and the time of phases."""

from collections.abc import Sequence

from rlvitals.metrics.catalogue import throughput
from rlvitals.views.figures.figure import Figure, Panel, Subject
from rlvitals.views.figures.panels import annotate, first_of, members
from rlvitals.views.figures.speeds import speed

UNIT_RATES = (
    throughput.TOKENS_PER_SECOND, throughput.SAMPLES_PER_SECOND, throughput.EPISODES_PER_SECOND,
)  # fmt: skip
PHASE_METRICS = (throughput.PHASE_TIME, throughput.PHASE_SHARE)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return the known speeds, the time of a step and of its phases."""
    candidates = [
        speed(subjects, throughput.STEPS_PER_SECOND),
        speed(subjects, throughput.UPDATES_PER_SECOND),
        first_of(subjects, *UNIT_RATES, low=0.0),
        first_of(subjects, throughput.STEP_TIME, low=0.0),
    ]
    if len(subjects) == 1:
        candidates += [
            annotate(subjects, Panel(metric.title, metric.unit, lines, low=0.0), (metric,))
            for metric in PHASE_METRICS
            if (lines := members(subjects, metric))
        ]
    return tuple(panel for panel in candidates if any(len(line.series) > 1 for line in panel.lines))


FIGURE = Figure(
    "throughput",
    "Throughput",
    needs=(
        throughput.STEPS_PER_SECOND,
        throughput.UPDATES_PER_SECOND,
        *UNIT_RATES,
        throughput.STEP_TIME,
        *PHASE_METRICS,
        throughput.ELAPSED,
    ),
    panels=panels,
    columns=2,
)
