"""How groups of runs do on the way: their score, and who has held the level, place by place."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlvitals.comparison import compared, grouping, samples, scores, tasks
from rlvitals.comparison.compare import Asked
from rlvitals.comparison.compared import Comparison, Group
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.samples import Array

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
    held_in = compared.shared(group.runs)
    sample = compared.strata(group.runs, held_in)
    gains = [run.gain for one in told.groups for run in one.runs]
    beyond = AIR * (max(gains) - min(gains) or 1.0)  # all do better than the first, none the last
    edges = np.linspace(min(gains) - beyond, max(gains) + beyond, LEVELS)
    better = samples.profile(sample, edges)
    low, high = samples.profile_band(sample, edges)
    sign = scores.sign(told.metric) if len(told.tasks) == 1 else 1.0
    order = np.argsort(sign * edges)
    one_task = len(told.tasks) == 1
    ends = {task.name: task.end for task in told.tasks}
    place = np.linspace(0.0, told.tasks[0].end if one_task else 1.0, PLACES + 1)
    soon = [
        np.array(
            [
                run.steps_to_level / (1.0 if one_task else ends[task] or 1.0)
                for run in group.runs
                if run.task == task
            ]
        )
        for task in held_in
    ]
    # "Above" is strict: whoever is there at a place has come no later than it.
    reversed_ = [-column for column in soon]
    held = samples.profile(reversed_, -np.nextafter(place, math.inf))
    held_low, held_high = samples.profile_band(reversed_, -np.nextafter(place, math.inf))
    scored = _scored(own, place, told, sign) if one_task else np.empty((3, 0))
    return Course(
        group.label, (sign * edges)[order], better[order], low[order], high[order],
        place, held, held_low, held_high, *scored,
    )  # fmt: skip


def _scored(own: Sequence[tasks.Read], place: Array, told: Comparison, sign: float) -> Array:
    """Return a group's score at each place with its ends: [3, n]; NaN before all have begun."""
    about = told.tasks[0]
    at = scores.At("mean", scores.LATEST)
    floor = min((sign * run.score for group in told.groups for run in group.runs), default=0.0)
    found = np.full((3, len(place)), np.nan)
    firsts = [float(one.curve.x[0]) for one in own if len(one.curve.x)]
    for i, end in enumerate(place):
        if not own or not firsts or end < max(firsts) or end > about.end:
            continue
        gains = [_gain(one, at, float(end), floor) for one in own]
        column = np.array([gain for gain in gains if math.isfinite(gain)])
        if not len(column):
            continue
        many = len(column) >= samples.MANY
        whole = (
            samples.bootstrap([column], resamples=RESAMPLES)
            if many
            else samples.welch([column], None, samples.CONFIDENCE)
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
