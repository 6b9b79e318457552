"""What the reward is made of: which part pays, and which one costs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue import reward
from rlvitals.views.figures.figure import Figure, Line, Panel, Subject
from rlvitals.views.figures.panels import finished, first_of, members
from rlvitals.views.figures.rewards import REWARDS

SCORES = ((reward.ABSOLUTE, "absolute score"), (reward.DELTA, "delta score"))
MOST = 10  # parts that are drawn: those that move most
NEEDS = (reward.COMPONENT, reward.ABSOLUTE, reward.DELTA)


def panels(subjects: Sequence[Subject]) -> Sequence[Panel]:
    """Draw the parts together; of several runs each part by itself. The whole stands last."""
    parts = _parts(subjects)
    whole = first_of(subjects, *REWARDS, title="The whole reward")
    if len(subjects) == 1:
        lines = tuple(line for _, group in parts for line in group)
        found = [finished(subjects, Panel("Parts", "reward", lines), NEEDS)]
    else:
        found = [
            finished(subjects, Panel(name, "reward", tuple(group)), NEEDS) for name, group in parts
        ]
    return tuple(panel for panel in (*found, whole) if panel.lines)


def _parts(subjects: Sequence[Subject]) -> list[tuple[str, list[Line]]]:
    """Return the curves of each part that is ever paid, those that move most first."""
    lines = [*members(subjects, reward.COMPONENT)]
    for metric, label in SCORES:
        lines += [
            Line(label, metric.name, series, run)
            for run, one in enumerate(subjects)
            if (series := one.trace.get(metric.name)) is not None
        ]
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.label, []).append(line)
    size = {name: max(_size(line) for line in group) for name, group in groups.items()}
    kept = sorted((name for name in groups if size[name] > 0), key=lambda name: -size[name])[:MOST]
    return [
        (name, [replace(line, part=part if len(subjects) == 1 else 0) for line in groups[name]])
        for part, name in enumerate(kept)
    ]


def _size(line: Line) -> float:
    """Return how large a part is and how far it moves: 0 for one that is never paid."""
    values = line.series.finite().values
    return float(np.abs(values).mean() + values.std()) if len(values) else 0.0


FIGURE = Figure("reward_breakdown", "What the reward is made of", needs=NEEDS, panels=panels)
