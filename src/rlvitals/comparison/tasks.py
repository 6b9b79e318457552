"""Up to where the runs of a task are compared, on which scale, and what a failed run counts as."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlvitals.comparison import scores
from rlvitals.comparison.failed_runs import NEARLY, failed, is_short
from rlvitals.comparison.grouping import Gathered, Member
from rlvitals.comparison.result import Task
from rlvitals.comparison.scores import At, Axis, Curve
from rlvitals.errors import UsageError
from rlvitals.rules import standing

NAMED = 3  # runs that a note names
HELD = 0.9  # of the way to what the first group reaches: the level that "how soon" is asked of
RETURNS = ("outcome/return", "outcome/eval_return")  # what chance and success are known of


@dataclass(frozen=True, slots=True)
class Read:
    """A run with its curve, before it has a score."""

    member: Member
    group: int
    curve: Curve  # empty of a run that crashed before its first row
    failed: str  # why; empty where it did not


def read(
    gathered: Sequence[Gathered], metric: str, axis: Axis, *, short_fails: bool
) -> tuple[list[Read], list[str]]:
    """Take the curves; a run that logs none and did not fail is left out, and named."""
    curves = [
        (i, one, scores.curve(one.trace, metric, axis))
        for i, group in enumerate(gathered)
        for one in group.members
    ]
    members = [one for _, one, _ in curves]
    longest, latest = _longest(members), _latest(members)
    kept, missing = [], []
    for i, one, found in curves:
        why = failed(one, found, longest[one.task], latest[one.task], short_fails=short_fails)
        if why or len(found.x):
            kept.append(Read(one, i, found, why))
        else:
            missing.append(one.trace.name)
    if not any(len(one.curve.x) for one in kept):
        raise UsageError(f"no run logs {metric}", hint="--metric NAME")
    return kept, _missing(metric, missing)


def _longest(members: Sequence[Member]) -> dict[str, int]:
    """Return the last step that any run of each task reached."""
    found: dict[str, int] = {}
    for one in members:
        found[one.task] = max(found.get(one.task, 0), one.trace.last_step)
    return found


def _latest(members: Sequence[Member]) -> dict[str, float]:
    """Return the wall time of the newest row of each task's runs, in epoch s; -inf for none."""
    found: dict[str, float] = {}
    for one in members:
        last = one.trace.lifecycle.last_row
        found[one.task] = max(found.get(one.task, -math.inf), -math.inf if last is None else last)
    return found


def _missing(metric: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [f"without {metric}, left out: {', '.join(names[:NAMED])}{more}"]


def end(own: Sequence[Read]) -> float:
    """Return the place up to which every run of a task that did not fail has come."""
    whole = [one.curve.last for one in own if not one.failed]
    every = [one.curve.last for one in own if len(one.curve.x)]
    return min(whole) if whole else max(every, default=0.0)


def cut(runs: Sequence[Read], ends: Mapping[str, float], axis: Axis) -> list[str]:
    """Say which run ends so early that the others' rest is not compared."""
    notes = []
    longest = _longest([one.member for one in runs])
    for task, stop in ends.items():
        held = [one for one in runs if one.member.task == task and not one.failed]
        last = max((one.curve.last for one in held), default=stop)
        if stop < NEARLY * last:
            short = next(one for one in held if one.curve.last == stop)
            where = f" of {task}" if task and len(ends) > 1 else ""
            way = (
                " (--short failed: it has failed)" if is_short(short.member, longest[task]) else ""
            )
            notes.append(
                f"runs{where} are compared up to {axis} {stop:,.10g} of {last:,.10g}:"
                f" {short.member.trace.name} ends there{way}"
            )
    return notes


def task(own: Sequence[Read], stop: float, metric: str, at: At, level: float | None) -> Task:
    """Find a task's scale, and the level that its runs are timed by; `level` is as logged."""
    sign = scores.sign(metric)
    starts = [scores.start(one.curve) for one in own]
    low = min((one for one in starts if math.isfinite(one)), default=0.0)
    first = min(one.group for one in own)
    reached = [scores.score(one.curve, at, stop) for one in own if one.group == first]
    numbers = [one for one in reached if math.isfinite(one)]
    typical = float(np.median(numbers)) if numbers else low
    known = _known(own, metric)
    if known is not None:
        (bottom, top), origin = known, "random actions to a solved task"
    elif typical > low:
        bottom, top, origin = low, typical, "the start of the runs to what the first group reaches"
    else:
        bottom, top, origin = low, low + (abs(typical) or 1.0), "what the first group reaches"
    timed = bottom + HELD * (typical - bottom) if typical > bottom else typical
    return Task(
        name=own[0].member.task,
        end=stop,
        level=sign * timed if level is None else level,
        low=sign * bottom,
        high=sign * top,
        scale_from=origin,
        is_known=known is not None,
    )


def _known(own: Sequence[Read], metric: str) -> tuple[float, float] | None:
    """Return what random actions and a solved task earn, where the metric is such a return."""
    if metric not in RETURNS:
        return None
    for one in own:
        numbers = one.curve.gains[np.isfinite(one.curve.gains)]
        facts = standing.task(one.member.trace, metric, numbers) if len(numbers) else None
        if facts is None or facts.random_return is None or facts.solved_return is None:
            continue
        if facts.solved_return > facts.random_return:
            return facts.random_return, facts.solved_return
    return None


def floor(own: Sequence[Read], about: Task, metric: str, at: At) -> float:
    """Return what a failed run counts as, up = better: the worst that any run of the task did."""
    levels = [scores.sign(metric) * about.low]
    levels += [scores.start(one.curve) for one in own]
    levels += [scores.score(one.curve, at, about.end) for one in own if not one.failed]
    return min(level for level in levels if math.isfinite(level))
