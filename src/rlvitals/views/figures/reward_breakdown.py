"""Figure: components of the reward."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue import reward
from rlvitals.views.figures.figure import Figure, Line, Panel, Subject
from rlvitals.views.figures.panels import annotate, first_of, members
from rlvitals.views.figures.rewards import MEAN_REWARDS

REWARD_METRICS = (reward.COMPONENT, reward.ABSOLUTE, reward.DELTA)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Return one run's components in one panel, several runs' in one each, and the total."""
    member_lines = [*members(subjects, reward.COMPONENT)]
    for metric, label in ((reward.ABSOLUTE, "absolute score"), (reward.DELTA, "delta score")):
        member_lines += [
            Line(label, metric.name, series, run)
            for run, subject in enumerate(subjects)
            if (series := subject.trace.get(metric.name)) is not None
        ]
    groups: dict[str, list[Line]] = {}
    for line in member_lines:
        groups.setdefault(line.label, []).append(line)
    size = {name: max(_size(line) for line in group) for name, group in groups.items()}
    largest = sorted((name for name in groups if size[name] > 0), key=lambda name: -size[name])[:10]
    components = [
        (name, [replace(line, part=index if len(subjects) == 1 else 0) for line in groups[name]])
        for index, name in enumerate(largest)
    ]
    total = first_of(subjects, *MEAN_REWARDS, title="The whole reward")
    if len(subjects) == 1:
        lines = tuple(line for _, group in components for line in group)
        drawings = [annotate(subjects, Panel("Parts", "reward", lines), REWARD_METRICS)]
    else:
        drawings = [
            annotate(subjects, Panel(name, "reward", tuple(group)), REWARD_METRICS)
            for name, group in components
        ]
    return tuple(panel for panel in (*drawings, total) if panel.lines)


def _size(line: Line) -> float:
    """Return the mean magnitude plus the standard deviation; 0 if always zero."""
    values = line.series.finite().values
    return float(np.abs(values).mean() + values.std()) if len(values) else 0.0


FIGURE = Figure(
    "reward_breakdown", "What the reward is made of", needs=REWARD_METRICS, panels=panels
)
