"""Runs in, comparison out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvitals.comparison import grouping, result, scores, statistics, tasks
from rlvitals.comparison.grouping import Gathered, Member
from rlvitals.comparison.result import Comparison, Group, RunScore, Task
from rlvitals.comparison.scores import At, Axis
from rlvitals.errors import UsageError

MATTERS = 0.05  # of a task's scale: less of a difference is of no account
LATEST = At()
LEVELS = 21  # of a performance profile


@dataclass(frozen=True, slots=True)
class Asked:
    """How runs are to be compared."""

    by: tuple[str, ...] = ()
    metric: str = ""  # empty: the outcome that most runs log
    at: At = LATEST
    axis: Axis = "steps"
    short_fails: bool = False  # a run that ends before the others has failed
    level: float | None = None  # as logged; None: 90 % of the way to what the first group reaches


def compare(members: Sequence[Member], asked: Asked) -> Comparison:
    """Compare groups of runs with the first of them. Raises UsageError for what nobody logs."""
    if not members:
        raise UsageError("no run to compare")
    return groups(grouping.groups(members, asked.by), asked)


def groups(gathered: Sequence[Gathered], asked: Asked) -> Comparison:
    """Compare groups that are known, the first being what the others are compared with."""
    traces = [one.trace for group in gathered for one in group.members]
    metric = scores.named(asked.metric, traces) if asked.metric else scores.outcome(traces)
    read, notes = tasks.read(gathered, metric, asked.axis, short_fails=asked.short_fails)
    by_task: dict[str, list[tasks.Read]] = {}
    for one in read:
        by_task.setdefault(one.member.task, []).append(one)
    ends = {name: tasks.end(own) for name, own in by_task.items()}
    about = {
        name: tasks.task(own, ends[name], metric, asked.at, asked.level)
        for name, own in by_task.items()
    }
    held: list[list[RunScore]] = [[] for _ in gathered]
    for name, own in by_task.items():
        worst = tasks.floor(own, about[name], metric, asked.at)
        for one in own:
            held[one.group].append(_score(one, about[name], worst, metric, asked.at))
    notes += tasks.cut(read, ends, asked.axis)
    return _told(gathered, _scaled(held, about), tuple(about.values()), metric, asked, notes)


def _score(one: tasks.Read, about: Task, worst: float, metric: str, at: At) -> RunScore:
    sign = scores.sign(metric)
    gain, why = worst, one.failed
    if not why:
        gain = scores.score(one.curve, at, about.end)
        if not math.isfinite(gain):
            gain, why = worst, "no number where the score is taken"
    steps, seconds = scores.reaches(one.curve, sign * about.level, about.end)
    return RunScore(
        name=one.member.trace.name,
        task=about.name,
        seed=one.member.seed,
        score=sign * gain,
        failed=why,
        gain=gain,
        steps_to_level=steps,
        seconds_to_level=seconds,
    )


def _scaled(held: list[list[RunScore]], about: dict[str, Task]) -> list[list[RunScore]]:
    """Bring the gains of several tasks to one scale: 0 is chance, 1 a solved task.

    Of tasks that nobody knows 0 and 1 are the lowest and the highest score of all the runs: what
    the groups are divided by must not depend on which is the first.
    """
    if len(about) < 2:  # noqa: PLR2004
        return held
    ends = {}
    for name, one in about.items():
        own = [run.gain for runs in held for run in runs if run.task == name]
        sign = 1.0 if one.high >= one.low else -1.0
        ends[name] = (sign * one.low, one.span) if one.is_known else (min(own), np.ptp(own) or 1.0)
    return [
        [replace(run, gain=(run.gain - ends[run.task][0]) / ends[run.task][1]) for run in runs]
        for runs in held
    ]


def _told(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    gathered: Sequence[Gathered],
    held: list[list[RunScore]],
    about: tuple[Task, ...],
    metric: str,
    asked: Asked,
    notes: list[str],
) -> Comparison:
    sign = scores.sign(metric) if len(about) == 1 else 1.0
    gains = [run.gain for runs in held for run in runs]
    levels = np.linspace(min(gains), max(gains), LEVELS)
    least = min(result.seeds(runs) for runs in held if runs)
    made = [
        _group(one, runs, levels, sign, many=least >= statistics.MANY)
        for one, runs in zip(gathered, held, strict=True)
        if runs
    ]
    confidence = 1 - (1 - statistics.CONFIDENCE) / max(len(made) - 1, 1)
    matters = MATTERS * (about[0].span if len(about) == 1 else 1.0)
    said = tuple(result.against(one, made[0], matters, confidence) for one in made[1:])
    if len(said) > 1:
        notes = [*notes, f"{len(said)} comparisons: each interval is one of {confidence:.1%}"]
    return Comparison(
        sentence=result.sentence(made, said, metric),
        metric=metric,
        at=str(asked.at),
        axis=asked.axis,
        tasks=about,
        groups=tuple(made),
        against=said,
        levels=tuple((sign * levels).tolist()),
        notes=tuple(notes),
    )


def _group(
    gathered: Gathered,
    runs: Sequence[RunScore],
    levels: statistics.Array,
    sign: float,
    *,
    many: bool,
) -> Group:
    sample = result.strata(runs, result.shared(runs))
    whole = (
        statistics.bootstrap(sample)
        if many
        else statistics.welch(sample, None, statistics.CONFIDENCE)
    )
    low, high = sorted((sign * whole.low, sign * whole.high))
    times = [run.seconds_to_level for run in runs]
    return Group(
        label=gathered.label,
        settings=gathered.settings,
        runs=tuple(runs),
        seeds=statistics.fewest(sample),
        mean=sign * statistics.mean(sample),
        median=sign * float(np.median(np.concatenate(sample))),
        typical=replace(whole, value=sign * whole.value, low=low, high=high),
        failures=sum(bool(run.failed) for run in runs),
        steps_to_level=_median([run.steps_to_level for run in runs]),
        seconds_to_level=math.nan if any(map(math.isnan, times)) else _median(times),
        profile=tuple(statistics.profile(sample, levels).tolist()),
    )


def _median(values: Sequence[float]) -> float:
    """Return the upper median: infinite where half of the runs never got there."""
    return sorted(values)[len(values) // 2]
