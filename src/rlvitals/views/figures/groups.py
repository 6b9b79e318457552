"""Build the performance profile and sample efficiency of groups of runs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.comparison.learning_curves import LearningCurve
from rlvitals.comparison.result import Comparison
from rlvitals.rules.standing import label
from rlvitals.views import phrases
from rlvitals.views.figures.figure import Across, Kind, Limit, Panel, Picture, Words

Column = NDArray[np.float64]
Row = tuple[str, Column, Column, Column, Column]  # name, x, values, lower and upper end of the band


def pictures(comparison: Comparison, courses: Sequence[LearningCurve]) -> tuple[Picture, ...]:
    """Return the performance profile and the sample efficiency, or time efficiency."""
    name = "time_efficiency" if comparison.axis == "time" else "sample_efficiency"
    rows = [(c.group, c.place, c.held, c.held_low, c.held_high) for c in courses]
    level = "their task's level"
    if len(comparison.tasks) <= 1:
        level = f"{label(comparison.metric)} {phrases.number(comparison.tasks[0].level)}"
    panels = [
        *_scores(comparison, courses),
        _shares(f"Runs that have come to hold {level}", rows, _axis_label(comparison)),
    ]
    rows = [(c.group, c.level, c.better, c.better_low, c.better_high) for c in courses]
    one_task = len(comparison.tasks) == 1
    score = label(comparison.metric) if one_task else "score, each task on its own scale"
    return (
        _picture(
            comparison,
            "performance_profile",
            "Performance profile",
            [_shares("Runs that do better", rows, score)],
        ),
        _picture(comparison, name, name.replace("_", " ").capitalize(), panels),
    )


def _scores(comparison: Comparison, courses: Sequence[LearningCurve]) -> list[Panel]:
    """Return the groups' learning curves; none for several tasks."""
    rows = [(c.group, c.place, c.score, c.score_low, c.score_high) for c in courses]
    if not all(np.isfinite(row[2]).any() for row in rows):
        return []
    level, name = comparison.tasks[0].level, label(comparison.metric)
    typical = comparison.groups[0].typical
    panel = Panel(
        name[:1].upper() + name[1:],
        "mean" if typical.approximate else "interquartile mean",
        across=tuple(Across(*row, run) for run, row in enumerate(rows)),
        limits=(Limit(level, f"the level: {phrases.number(level)}"),),
        kind=Kind.ACROSS,
        x_label=_axis_label(comparison),
        said=Words(f"bands: 95 %, place by place; {typical.method}", "dim"),
    )
    return [panel]


def _shares(title: str, rows: Sequence[Row], x: str) -> Panel:
    return Panel(
        title,
        "share of the runs",
        across=tuple(Across(*row, run, "steps") for run, row in enumerate(rows)),
        kind=Kind.ACROSS,
        low=0.0,
        high=1.0,
        x_label=x,
        said=Words("bands: 95 %, Wilson's interval of a share, place by place", "dim"),
    )


def _axis_label(comparison: Comparison) -> str:
    axis = {
        "steps": "steps",
        "episodes": "episodes",
        "tokens": "tokens",
        "time": "seconds of training",
    }[comparison.axis]
    return axis if len(comparison.tasks) == 1 else f"share of each task's {axis}"


def _picture(comparison: Comparison, name: str, title: str, panels: Sequence[Panel]) -> Picture:
    runs = tuple(f"{group.label} ({len(group.runs)})" for group in comparison.groups)
    return Picture(
        name, title, comparison.sentence, runs, "", first=0, last=1, panels=tuple(panels), columns=1
    )
