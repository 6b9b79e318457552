"""Groups of runs as pictures: who does better than each score, and how soon."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.comparison.compared import Comparison
from rlvitals.comparison.courses import Course
from rlvitals.rules.standing import label
from rlvitals.show import wording
from rlvitals.show.figures.figure import Across, Kind, Limit, Panel, Picture, Words

Column = NDArray[np.float64]
AXES = {"steps": "steps", "episodes": "episodes", "tokens": "tokens", "time": "seconds of training"}


def pictures(told: Comparison, courses: Sequence[Course]) -> tuple[Picture, ...]:
    """Make the performance profile, and the sample efficiency (by time: time efficiency)."""
    name = label(told.metric)
    one_task = len(told.tasks) == 1
    score = name if one_task else "score, each task on its own scale"
    better = [(c.group, c.level, c.better, c.better_low, c.better_high) for c in courses]
    profile = Panel(
        "Runs that do better",
        "share of the runs",
        across=_across(better),
        kind=Kind.ACROSS,
        low=0.0,
        high=1.0,
        x_label=score,
        said=Words("bands: 95 %, Wilson's interval of a share, place by place", "dim"),
    )
    where = AXES[told.axis] if one_task else f"share of each task's {AXES[told.axis]}"
    held = Panel(
        f"Runs that have come to hold {_level(told)}",
        "share of the runs",
        across=_across([(c.group, c.place, c.held, c.held_low, c.held_high) for c in courses]),
        kind=Kind.ACROSS,
        low=0.0,
        high=1.0,
        x_label=where,
        said=Words("bands: 95 %, Wilson's interval of a share, place by place", "dim"),
    )
    rows = [(c.group, c.place, c.score, c.score_low, c.score_high) for c in courses]
    known = [row for row in rows if np.isfinite(row[2]).any()]
    found = [held]
    if known and len(known) == len(rows):
        limits = (Limit(told.tasks[0].level, f"the level: {wording.number(told.tasks[0].level)}"),)
        course = Panel(
            name[:1].upper() + name[1:], _typical(told), across=_across(rows, "line"),
            limits=limits, kind=Kind.ACROSS, x_label=where,
            said=Words(f"bands: 95 %, place by place; {told.groups[0].typical.method}", "dim"),
        )  # fmt: skip
        found = [course, held]
    soon = "time_efficiency" if told.axis == "time" else "sample_efficiency"
    title = soon.replace("_", " ").capitalize()
    return (
        _picture(told, "performance_profile", "Performance profile", [profile]),
        _picture(told, soon, title, found),
    )


def _across(rows: Sequence[tuple[str, Column, Column, Column, Column]], shape: str = "steps",
) -> tuple[Across, ...]:  # fmt: skip
    return tuple(
        Across(name, x, values, low, high, run, "line" if shape == "line" else "steps")
        for run, (name, x, values, low, high) in enumerate(rows)
    )


def _level(told: Comparison) -> str:
    if len(told.tasks) > 1:
        return "their task's level"
    return f"{label(told.metric)} {wording.number(told.tasks[0].level)}"


def _typical(told: Comparison) -> str:
    return "mean" if told.groups[0].typical.approximate else "interquartile mean"


def _picture(told: Comparison, name: str, title: str, panels: Sequence[Panel]) -> Picture:
    runs = tuple(f"{one.label} ({len(one.runs)})" for one in told.groups)
    return Picture(
        name, title, told.sentence, runs, "", first=0, last=1, panels=tuple(panels), columns=1
    )
