"""Groups of runs as pictures: who does better than each score, and how soon."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.comparison.learning_curves import LearningCurve
from rlvitals.comparison.result import Comparison
from rlvitals.rules.standing import label
from rlvitals.views import phrases
from rlvitals.views.figures.figure import Across, Kind, Limit, Panel, Picture, Words

Column = NDArray[np.float64]
Row = tuple[str, Column, Column, Column, Column]  # name, x, values, both ends of their band
AXES = {"steps": "steps", "episodes": "episodes", "tokens": "tokens", "time": "seconds of training"}


def pictures(told: Comparison, courses: Sequence[LearningCurve]) -> tuple[Picture, ...]:
    """Make the performance profile, and the sample efficiency (by time: time efficiency)."""
    soon = "time_efficiency" if told.axis == "time" else "sample_efficiency"
    found = [*_scores(told, courses), _held(told, courses)]
    return (
        _picture(told, "performance_profile", "Performance profile", [_profile(told, courses)]),
        _picture(told, soon, soon.replace("_", " ").capitalize(), found),
    )


def _profile(told: Comparison, courses: Sequence[LearningCurve]) -> Panel:
    """Draw the share of the runs that do better than each score."""
    rows = [(c.group, c.level, c.better, c.better_low, c.better_high) for c in courses]
    one_task = len(told.tasks) == 1
    score = label(told.metric) if one_task else "score, each task on its own scale"
    return _shares("Runs that do better", rows, score)


def _held(told: Comparison, courses: Sequence[LearningCurve]) -> Panel:
    """Draw the share of the runs that hold the level, by how soon."""
    rows = [(c.group, c.place, c.held, c.held_low, c.held_high) for c in courses]
    return _shares(f"Runs that have come to hold {_level(told)}", rows, _where(told))


def _scores(told: Comparison, courses: Sequence[LearningCurve]) -> list[Panel]:
    """Draw the groups' scores on the way; nothing of several tasks."""
    rows = [(c.group, c.place, c.score, c.score_low, c.score_high) for c in courses]
    if not all(np.isfinite(row[2]).any() for row in rows):
        return []
    level, name = told.tasks[0].level, label(told.metric)
    typical = told.groups[0].typical
    panel = Panel(
        name[:1].upper() + name[1:],
        "mean" if typical.approximate else "interquartile mean",
        across=tuple(Across(*row, run) for run, row in enumerate(rows)),
        limits=(Limit(level, f"the level: {phrases.number(level)}"),),
        kind=Kind.ACROSS,
        x_label=_where(told),
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


def _where(told: Comparison) -> str:
    counted = AXES[told.axis]
    return counted if len(told.tasks) == 1 else f"share of each task's {counted}"


def _level(told: Comparison) -> str:
    if len(told.tasks) > 1:
        return "their task's level"
    return f"{label(told.metric)} {phrases.number(told.tasks[0].level)}"


def _picture(told: Comparison, name: str, title: str, panels: Sequence[Panel]) -> Picture:
    runs = tuple(f"{one.label} ({len(one.runs)})" for one in told.groups)
    return Picture(
        name, title, told.sentence, runs, "", first=0, last=1, panels=tuple(panels), columns=1
    )
