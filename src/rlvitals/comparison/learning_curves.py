"""Compute the learning curves of groups: score and share of runs at the level, by step."""

import math
from collections.abc import Sequence

import numpy as np

from rlvitals.comparison import grouping, result, scores, statistics, tasks
from rlvitals.comparison.compare import CompareOptions
from rlvitals.comparison.grouping import Member
from rlvitals.comparison.result import Comparison, Group
from rlvitals.comparison.statistics import Array
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurve:
    """The learning curve and performance profile of one group; columns of float64."""

    group: str
    level: Array  # [k], as logged; of several tasks on their scale; ascending
    better: Array  # [k], share of the runs that do better
    better_low: Array  # [k]
    better_high: Array  # [k]
    place: Array  # [n], on the axis; of several tasks, shares of each task's end
    held: Array  # [n], share of the runs that have reached the level
    held_low: Array  # [n]
    held_high: Array  # [n]
    score: Array  # [n], as logged; empty of several tasks
    score_low: Array  # [n]
    score_high: Array  # [n]


def learning_curves(
    members: Sequence[Member], options: CompareOptions, comparison: Comparison
) -> tuple[LearningCurve, ...]:
    """Return the curve of each group; `members` and `options` are those of the comparison."""
    run_groups = grouping.groups(members, options.by)
    runs, _ = tasks.read(
        run_groups, comparison.metric, options.axis, short_fails=options.short_fails
    )
    labels = [group.label for group in run_groups]
    return tuple(
        _course(group, [run for run in runs if labels[run.group] == group.label], comparison)
        for group in comparison.groups
    )


def _course(group: Group, runs: Sequence[tasks.Read], comparison: Comparison) -> LearningCurve:
    one_task = len(comparison.tasks) == 1
    sign = scores.sign(comparison.metric) if one_task else 1.0
    # From below the lowest to above the highest score.
    gains = [run.gain for group in comparison.groups for run in group.runs]
    margin = 0.03 * (max(gains) - min(gains) or 1.0)  # of the scores' range
    levels = np.linspace(min(gains) - margin, max(gains) + margin, 201)
    order = np.argsort(sign * levels)
    sample = result.gains_by_task(group.runs, result.shared_tasks(group.runs))
    better_share = (statistics.profile(sample, levels), *statistics.profile_band(sample, levels))
    places = np.linspace(0.0, comparison.tasks[0].end if one_task else 1.0, 60 + 1)
    score_columns = _score_columns(runs, places, comparison, sign) if one_task else np.empty((3, 0))
    columns = [sign * levels, *better_share]
    units = {
        task.name: 1.0 if len(comparison.tasks) == 1 else task.end or 1.0
        for task in comparison.tasks
    }
    negated_steps = [
        np.array([-run.steps_to_level / units[task] for run in group.runs if run.task == task])
        for task in result.shared_tasks(group.runs)
    ]
    levels = -np.nextafter(places, math.inf)  # a profile counts values above a level only
    share = statistics.profile(negated_steps, levels)
    columns = [
        *(column[order] for column in columns),
        places,
        *(share, *statistics.profile_band(negated_steps, levels)),
        *score_columns,
    ]
    return LearningCurve(group.label, *columns)


def _score_columns(
    runs: Sequence[tasks.Read], places: Array, comparison: Comparison, sign: float
) -> Array:
    """Return a group's score at each point with its interval: [3, n]; NaN before all runs log."""
    task = comparison.tasks[0]
    score_at = scores.At("mean", scores.DEFAULT_MEAN_PERCENT)
    floor = min(
        (sign * run.score for group in comparison.groups for run in group.runs), default=0.0
    )
    is_bootstrapped = not comparison.groups[0].typical.approximate
    columns = np.full((3, len(places)), np.nan)
    firsts = [float(run.curve.x[0]) for run in runs if len(run.curve.x)]
    for index, end in enumerate(places):
        if not runs or not firsts or end < max(firsts) or end > task.end:
            continue
        gains = [_gain(run, score_at, float(end), floor) for run in runs]
        column = np.array([gain for gain in gains if math.isfinite(gain)])
        if not len(column):
            continue
        interval = (
            statistics.bootstrap([column], resamples=1000)
            if is_bootstrapped and len(column) >= statistics.MIN_SEEDS
            else statistics.welch([column], None, statistics.CONFIDENCE_LEVEL)
        )
        ends = sorted((sign * interval.low, sign * interval.high))
        columns[:, index] = sign * interval.value, *ends
    return columns


def _gain(run: tasks.Read, score_at: scores.At, end: float, floor: float) -> float:
    """Return a run's score at a point; of a failed run, after its end, `floor`."""
    if run.failed and (not len(run.curve.x) or end > run.curve.last):
        return floor
    gain = scores.score(run.curve, score_at, end)
    return floor if run.failed and not math.isfinite(gain) else gain
