"""Determine the end, scale and level of each task, and the score of failed runs."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rlvitals.comparison import scores
from rlvitals.comparison.failed_runs import MIN_STEPS_SHARE, find_failure, is_short
from rlvitals.comparison.grouping import Member, RunGroup
from rlvitals.comparison.result import Task
from rlvitals.comparison.scores import At, Axis, Curve
from rlvitals.errors import UsageError, join_first
from rlvitals.rules import known_task
from rlvitals.startup.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Read:
    """A run with its curve, before scoring."""

    member: Member
    group: int
    curve: Curve  # empty of a run that crashed before its first row
    failed: str  # why; empty where it did not


def read(
    run_groups: Sequence[RunGroup], metric: str, axis: Axis, *, short_fails: bool
) -> tuple[list[Read], list[str]]:
    """Read the curves; return them and a note on the runs without the metric that did not fail."""
    curves = [
        (i, member, scores.curve(member.trace, metric, axis))
        for i, group in enumerate(run_groups)
        for member in group.members
    ]
    members = [member for _, member, _ in curves]
    times: dict[str, float] = {}
    for member in members:
        last = member.trace.lifecycle.last_row
        times[member.task] = max(
            times.get(member.task, -math.inf), -math.inf if last is None else last
        )
    longest, latest = _last_steps(members), times
    runs, missing = [], []
    for i, member, curve in curves:
        failure = find_failure(
            member, curve, longest[member.task], latest[member.task], short_fails=short_fails
        )
        if failure or len(curve.x):
            runs.append(Read(member, i, curve, failure))
        else:
            missing.append(member.trace.name)
    if not any(len(run.curve.x) for run in runs):
        raise UsageError(f"no run logs {metric}", hint="--metric NAME")
    notes = [f"without {metric}, left out: {join_first(missing, 3)}"] if missing else []
    return runs, notes


def _last_steps(members: Sequence[Member]) -> dict[str, int]:
    """Return the last step that any run of each task reached."""
    last_steps: dict[str, int] = {}
    for member in members:
        last_steps[member.task] = max(last_steps.get(member.task, 0), member.trace.last_step)
    return last_steps


def end(runs: Sequence[Read]) -> float:
    """Return the smallest last position on the axis of the runs that did not fail."""
    ends = [run.curve.last for run in runs if not run.failed]
    all_ends = [run.curve.last for run in runs if len(run.curve.x)]
    return min(ends) if ends else max(all_ends, default=0.0)


def format_cuts(runs: Sequence[Read], ends: Mapping[str, float], axis: Axis) -> list[str]:
    """Return a note for each task whose shortest run ends long before the others."""
    notes = []
    longest = _last_steps([run.member for run in runs])
    for task, end_place in ends.items():
        finished = [run for run in runs if run.member.task == task and not run.failed]
        last = max((run.curve.last for run in finished), default=end_place)
        if end_place < MIN_STEPS_SHARE * last:
            short = next(run for run in finished if run.curve.last == end_place)
            task_text = f" of {task}" if task and len(ends) > 1 else ""
            way = (
                " (--short failed: it has failed)" if is_short(short.member, longest[task]) else ""
            )
            notes.append(
                f"runs{task_text} are compared up to {axis} {end_place:,.10g} of {last:,.10g}:"
                f" {short.member.trace.name} ends there{way}"
            )
    return notes


def task(runs: Sequence[Read], stop: float, metric: str, score_at: At, level: float | None) -> Task:
    """Determine a task's scale and level; `level` is as logged."""
    sign = scores.sign(metric)
    starts = [scores.start(run.curve) for run in runs]
    low = min((level for level in starts if math.isfinite(level)), default=0.0)
    first_group = min(run.group for run in runs)
    gains = [scores.score(run.curve, score_at, stop) for run in runs if run.group == first_group]
    numbers = [gain for gain in gains if math.isfinite(gain)]
    typical = float(np.median(numbers)) if numbers else low
    known_scale = _find_known_scale(runs, metric)
    if known_scale is not None:
        (bottom, top), origin = known_scale, "random actions to a solved task"
    elif typical > low:
        bottom, top, origin = low, typical, "the start of the runs to what the first group reaches"
    else:
        bottom, top, origin = low, low + (abs(typical) or 1.0), "what the first group reaches"
    # 90 % of the way from chance to the score of the first group.
    timed = bottom + 0.9 * (typical - bottom) if typical > bottom else typical
    return Task(
        name=runs[0].member.task,
        end=stop,
        level=sign * timed if level is None else level,
        low=sign * bottom,
        high=sign * top,
        scale_from=origin,
        is_known=known_scale is not None,
    )


def _find_known_scale(runs: Sequence[Read], metric: str) -> tuple[float, float] | None:
    """Return the returns of random actions and of a solved task; None where unknown."""
    # Only returns have a known random and solved value.
    if metric not in ("outcome/return", "outcome/eval_return"):
        return None
    for run in runs:
        numbers = run.curve.gains[np.isfinite(run.curve.gains)]
        facts = known_task.task(run.member.trace, metric, numbers) if len(numbers) else None
        if facts is None or facts.random_return is None or facts.solved_return is None:
            continue
        if facts.solved_return > facts.random_return:
            return facts.random_return, facts.solved_return
    return None


def floor(runs: Sequence[Read], task: Task, metric: str, score_at: At) -> float:
    """Return the score of a failed run, up = better: the worst of any run of the task."""
    levels = [scores.sign(metric) * task.low]
    levels += [scores.start(run.curve) for run in runs]
    levels += [scores.score(run.curve, score_at, task.end) for run in runs if not run.failed]
    return min(level for level in levels if math.isfinite(level))
