"""Compare groups of runs: scores, intervals and verdicts."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvitals.comparison import grouping, result, scores, statistics, tasks
from rlvitals.comparison.grouping import Member, RunGroup
from rlvitals.comparison.result import Comparison, Group, RunScore, Task
from rlvitals.comparison.scores import At, Axis
from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass

DEFAULT_SCORE_AT = At()


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of a comparison."""

    by: tuple[str, ...] = ()
    metric: str = ""  # empty: the outcome that most runs log
    at: At = DEFAULT_SCORE_AT
    axis: Axis = "steps"
    short_fails: bool = False  # a run that ends before the others has failed
    level: float | None = None  # as logged; None: 90 % of the way to what the first group reaches


def compare(members: Sequence[Member], options: CompareOptions) -> Comparison:
    """Group runs and compare the groups with the first. Raises UsageError for a missing metric."""
    if not members:
        raise UsageError("no run to compare")
    return groups(grouping.groups(members, options.by), options)


def groups(run_groups: Sequence[RunGroup], options: CompareOptions) -> Comparison:
    """Compare groups of runs with the first group."""
    traces = [member.trace for group in run_groups for member in group.members]
    metric = (
        scores.find_metric(options.metric, traces)
        if options.metric
        else scores.select_outcome(traces)
    )
    runs, notes = tasks.read(run_groups, metric, options.axis, short_fails=options.short_fails)
    by_task: dict[str, list[tasks.Read]] = {}
    for run in runs:
        by_task.setdefault(run.member.task, []).append(run)
    ends = {name: tasks.end(task_runs) for name, task_runs in by_task.items()}
    tasks_by_name = {
        name: tasks.task(task_runs, ends[name], metric, options.at, options.level)
        for name, task_runs in by_task.items()
    }
    run_scores: list[list[RunScore]] = [[] for _ in run_groups]
    for name, task_runs in by_task.items():
        floor = tasks.floor(task_runs, tasks_by_name[name], metric, options.at)
        for run in task_runs:
            run_score = _score(run, tasks_by_name[name], floor, metric, options.at)
            run_scores[run.group].append(run_score)
    notes += tasks.format_cuts(runs, ends, options.axis)
    return _comparison(
        run_groups,
        _rescale(run_scores, tasks_by_name),
        tuple(tasks_by_name.values()),
        metric,
        options,
        notes,
    )


def _score(run: tasks.Read, task: Task, floor: float, metric: str, score_at: At) -> RunScore:
    sign = scores.sign(metric)
    gain, failure = floor, run.failed
    if not failure:
        gain = scores.score(run.curve, score_at, task.end)
        if not math.isfinite(gain):
            gain, failure = floor, "no number where the score is taken"
    steps, seconds = scores.find_level(run.curve, sign * task.level, task.end)
    return RunScore(
        name=run.member.trace.name,
        task=task.name,
        seed=run.member.seed,
        score=sign * gain,
        failed=failure,
        gain=gain,
        steps_to_level=steps,
        seconds_to_level=seconds,
    )


def _rescale(run_scores: list[list[RunScore]], tasks: dict[str, Task]) -> list[list[RunScore]]:
    """Rescale the gains of several tasks: 0 is chance, 1 a solved task.

    For tasks of unknown scale 0 and 1 are the lowest and the highest score of all runs: the scale
    must not depend on which group is the first.
    """
    if len(tasks) < 2:
        return run_scores
    scales = {}
    for name, task in tasks.items():
        gains = [run.gain for runs in run_scores for run in runs if run.task == name]
        sign = 1.0 if task.high >= task.low else -1.0
        scales[name] = (
            (sign * task.low, task.span) if task.is_known else (min(gains), np.ptp(gains) or 1.0)
        )
    return [
        [replace(run, gain=(run.gain - scales[run.task][0]) / scales[run.task][1]) for run in runs]
        for runs in run_scores
    ]


def _comparison(  # noqa: PLR0913, PLR0917 - the parts of a comparison
    run_groups: Sequence[RunGroup],
    run_scores: list[list[RunScore]],
    tasks: tuple[Task, ...],
    metric: str,
    options: CompareOptions,
    notes: list[str],
) -> Comparison:
    sign = scores.sign(metric) if len(tasks) == 1 else 1.0
    gains = [run.gain for runs in run_scores for run in runs]
    levels = np.linspace(min(gains), max(gains), 21)
    seeds = min(result.count_seeds(runs) for runs in run_scores if runs)
    groups = [
        _group(group, runs, levels, sign, is_bootstrapped=seeds >= statistics.MIN_BOOTSTRAP_SEEDS)
        for group, runs in zip(run_groups, run_scores, strict=True)
        if runs
    ]
    confidence = 1 - (1 - statistics.CONFIDENCE_LEVEL) / max(len(groups) - 1, 1)
    threshold = 0.05 * (tasks[0].span if len(tasks) == 1 else 1.0)  # of the task's scale
    verdicts = tuple(
        result.compare_groups(group, groups[0], threshold, confidence) for group in groups[1:]
    )
    members = sum(len(group.members) for group in run_groups)
    if len(verdicts) > 1:
        notes = [*notes, f"{len(verdicts)} comparisons: each interval is one of {confidence:.1%}"]
    return Comparison(
        sentence=result.format_sentence(groups, verdicts, metric, members),
        metric=metric,
        at=str(options.at),
        axis=options.axis,
        tasks=tasks,
        groups=tuple(groups),
        against=verdicts,
        levels=tuple((sign * levels).tolist()),
        notes=tuple(notes),
    )


def _group(
    run_group: RunGroup,
    runs: Sequence[RunScore],
    levels: statistics.Array,
    sign: float,
    *,
    is_bootstrapped: bool,
) -> Group:
    sample = result.gains_by_task(runs, result.shared_tasks(runs))
    typical = (
        statistics.bootstrap(sample)
        if is_bootstrapped
        else statistics.welch(sample, None, statistics.CONFIDENCE_LEVEL)
    )
    low, high = sorted((sign * typical.low, sign * typical.high))
    times = [run.seconds_to_level for run in runs]
    return Group(
        label=run_group.label,
        settings=run_group.settings,
        runs=tuple(runs),
        seeds=statistics.min_seeds(sample),
        mean=sign * statistics.mean(sample),
        median=sign * float(np.median(np.concatenate(sample))),
        typical=replace(typical, value=sign * typical.value, low=low, high=high),
        failures=sum(bool(run.failed) for run in runs),
        steps_to_level=_upper_median([run.steps_to_level for run in runs]),
        seconds_to_level=math.nan if any(map(math.isnan, times)) else _upper_median(times),
        profile=tuple(statistics.profile(sample, levels).tolist()),
    )


def _upper_median(values: Sequence[float]) -> float:
    """Return the upper median: infinite where half of the runs never reach the level."""
    return sorted(values)[len(values) // 2]
