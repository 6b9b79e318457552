"""How groups of runs do on the way: their score, and who has held the level, place by place."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlvitals.comparison import grouping, result, scores, statistics, tasks
from rlvitals.comparison.compare import Asked
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison, Group
from rlvitals.comparison.statistics import Array

PLACES = 60  # on the axis
LEVELS = 201  # of a performance profile
RESAMPLES = 1000  # at each place
AIR = 0.03  # of the scores' range


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One group along the axis, and along its scores; every column float64."""

    group: str
    level: Array  # [k], as logged; of several tasks on their scale; ascending
    better: Array  # [k], share of the runs that do better
    better_low: Array  # [k]
    better_high: Array  # [k]
    place: Array  # [n]; of several tasks, shares of where each is compared
    held: Array  # [n], share of the runs that have come to hold the level
    held_low: Array  # [n]
    held_high: Array  # [n]
    score: Array  # [n], as logged; empty of several tasks
    score_low: Array  # [n]
    score_high: Array  # [n]


def courses(members: Sequence[Member], asked: Asked, told: Comparison) -> tuple[Course, ...]:
    """Follow the groups of a comparison; the same runs, and the same settings, give `told`."""
    gathered = grouping.groups(members, asked.by)
    read, _ = tasks.read(gathered, told.metric, asked.axis, short_fails=asked.short_fails)
    labels = [one.label for one in gathered]
    return tuple(
        _course(group, [one for one in read if labels[one.group] == group.label], told)
        for group in told.groups
    )


def _course(group: Group, own: Sequence[tasks.Read], told: Comparison) -> Course:
    one_task = len(told.tasks) == 1
    sign = scores.sign(told.metric) if one_task else 1.0
    levels = _levels(told)
    order = np.argsort(sign * levels)
    sample = result.strata(group.runs, result.shared(group.runs))
    better = (statistics.profile(sample, levels), *statistics.profile_band(sample, levels))
    place = np.linspace(0.0, told.tasks[0].end if one_task else 1.0, PLACES + 1)
    scored = _scored(own, place, told, sign) if one_task else np.empty((3, 0))
    columns = [sign * levels, *better]
    columns = [*(column[order] for column in columns), place, *_held(group, place, told), *scored]
    return Course(group.label, *columns)


def _levels(told: Comparison) -> Array:
    """Return levels from one that every run is above to one that none is."""
    gains = [run.gain for one in told.groups for run in one.runs]
    beyond = AIR * (max(gains) - min(gains) or 1.0)
    return np.linspace(min(gains) - beyond, max(gains) + beyond, LEVELS)


def _held(group: Group, place: Array, told: Comparison) -> tuple[Array, Array, Array]:
    """Return the share of runs that held their task's level at each place or before, with ends."""
    units = {task.name: 1.0 if len(told.tasks) == 1 else task.end or 1.0 for task in told.tasks}
    sooner = [
        np.array([-run.steps_to_level / units[task] for run in group.runs if run.task == task])
        for task in result.shared(group.runs)
    ]
    by_then = -np.nextafter(place, math.inf)  # a profile counts what is above, and not what is at
    return statistics.profile(sooner, by_then), *statistics.profile_band(sooner, by_then)


def _scored(own: Sequence[tasks.Read], place: Array, told: Comparison, sign: float) -> Array:
    """Return a group's score at each place with its ends: [3, n]; NaN before all have begun."""
    about = told.tasks[0]
    at = scores.At("mean", scores.LATEST)
    floor = min((sign * run.score for group in told.groups for run in group.runs), default=0.0)
    many = not told.groups[0].typical.approximate
    found = np.full((3, len(place)), np.nan)
    firsts = [float(one.curve.x[0]) for one in own if len(one.curve.x)]
    for i, end in enumerate(place):
        if not own or not firsts or end < max(firsts) or end > about.end:
            continue
        gains = [_gain(one, at, float(end), floor) for one in own]
        column = np.array([gain for gain in gains if math.isfinite(gain)])
        if not len(column):
            continue
        whole = (
            statistics.bootstrap([column], resamples=RESAMPLES)
            if many and len(column) >= statistics.LEAST
            else statistics.welch([column], None, statistics.CONFIDENCE)
        )
        ends = sorted((sign * whole.low, sign * whole.high))
        found[:, i] = sign * whole.value, *ends
    return found


def _gain(one: tasks.Read, at: scores.At, end: float, floor: float) -> float:
    """Return a run's score at a place; of one that failed, from its end on, the worst of all."""
    if one.failed and (not len(one.curve.x) or end > one.curve.last):
        return floor
    gain = scores.score(one.curve, at, end)
    return floor if one.failed and not math.isfinite(gain) else gain
