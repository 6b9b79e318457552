"""The result of a comparison: groups of runs, their scores and verdicts."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from rlvitals.comparison import statistics
from rlvitals.comparison.statistics import Interval
from rlvitals.rules import standing
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Setting

Answer = Literal["better", "worse", "cannot tell"]


@dataclass(frozen=True, slots=True)
class RunScore:
    """One run of a group."""

    name: str
    task: str
    seed: str
    score: float  # as logged; of a failed run what it counts as
    failed: str  # why; empty where it did not
    gain: float  # up = better; over several tasks on the scale of its task
    steps_to_level: float  # infinite where it never gets there
    seconds_to_level: float  # NaN where the log has no times


@dataclass(frozen=True, slots=True)
class Task:
    """The scale and level by which the runs of one task are compared."""

    name: str
    end: float  # on the axis: rows after it are ignored
    level: float  # as logged: the time to reach it is measured
    low: float  # of the scale, as logged: chance, or where the runs began
    high: float  # a solved task, or what the first group reaches
    scale_from: str
    is_known: bool  # from what is known of the environment

    @property
    def span(self) -> float:
        """The length of the scale, always above 0."""
        return abs(self.high - self.low) or 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that repeat one experiment. Scores as logged; over several tasks, of their scales."""

    label: str
    settings: dict[str, Setting | None]
    runs: tuple[RunScore, ...]
    seeds: int  # of the task that has fewest
    mean: float
    median: float
    typical: Interval  # of the mean; from 10 seeds on of the interquartile mean
    failures: int
    steps_to_level: float  # median over runs; infinite where half of them never get there
    seconds_to_level: float
    profile: tuple[float, ...]  # share of runs above each level of the comparison


@dataclass(frozen=True, slots=True)
class Against:
    """The comparison of one group with the reference."""

    group: str
    reference: str
    word: Answer
    why: str
    difference: Interval  # up = better
    permutation: float  # share of deals that differ as much; NaN where not asked
    improvement: Interval  # probability that a run beats one of the reference
    matters: float  # the smallest difference that counts, in its unit
    more_seeds: int | None  # per group, for an interval of that width; None: unknown


@dataclass(frozen=True, slots=True)
class Comparison:
    """The complete result of a comparison."""

    sentence: str  # the answer
    metric: str  # canonical name
    at: str  # "last", "best" or "mean of last N %"
    axis: str  # "steps", "samples", "episodes", "tokens" or "time"
    tasks: tuple[Task, ...]
    groups: tuple[Group, ...]  # the reference first
    against: tuple[Against, ...]  # each other group with the reference
    levels: tuple[float, ...]  # of the performance profile
    notes: tuple[str, ...] = ()


def gains_by_task(group: Sequence[RunScore], tasks: Sequence[str]) -> list[statistics.Array]:
    """Return a group's gains for each task."""
    return [np.array([run.gain for run in group if run.task == task]) for task in tasks]


def count_seeds(group: Sequence[RunScore]) -> int:
    """Return the number of seeds of the group's task with fewest."""
    return statistics.min_seeds(gains_by_task(group, shared_tasks(group)))


def shared_tasks(*groups: Sequence[RunScore]) -> list[str]:
    """List the tasks that all groups have in common, in the order of the first."""
    task_sets = [{run.task for run in group} for group in groups[1:]]
    order = dict.fromkeys(run.task for run in groups[0])
    return [task for task in order if all(task in task_set for task_set in task_sets)]


def compare_groups(
    group: Group, reference: Group, matters: float, confidence: float = statistics.CONFIDENCE_LEVEL
) -> Against:
    """Compare a group with a reference over their common tasks."""
    tasks = shared_tasks(reference.runs, group.runs)
    if not tasks:
        no_interval = Interval(math.nan, math.nan, math.nan, confidence, "no task in common", True)
        reason = "they have no task in common: --by a setting that they share"
        return Against(
            group=group.label,
            reference=reference.label,
            word="cannot tell",
            why=reason,
            difference=no_interval,
            permutation=math.nan,
            improvement=no_interval,
            matters=matters,
            more_seeds=None,
        )
    sample = gains_by_task(group.runs, tasks)
    reference_sample = gains_by_task(reference.runs, tasks)
    difference = statistics.difference(sample, reference_sample, confidence)
    permutation = statistics.permutation(sample, reference_sample)
    seed_count = statistics.min_seeds(sample, reference_sample)
    answer, reason = decide(difference, permutation, seed_count, matters)
    seeds_needed = statistics.seeds_for(sample, reference_sample, matters, confidence)
    more = None if seeds_needed is None else max(seeds_needed, statistics.MIN_SEEDS) - seed_count
    return Against(
        group=group.label,
        reference=reference.label,
        word=answer,
        why=reason,
        difference=difference,
        permutation=permutation.p,
        improvement=statistics.improvement(sample, reference_sample),
        matters=matters,
        more_seeds=more if more is not None and more > 0 else None,
    )


def decide(
    difference: Interval, permutation: statistics.Permutation, seeds: int, matters: float
) -> tuple[Answer, str]:
    """Return the answer and the reason for it."""
    if seeds < statistics.MIN_SEEDS:
        seeds_text = "1 seed" if seeds == 1 else f"{seeds} seeds"
        return "cannot tell", f"from {seeds_text} nobody can tell how far seeds lie apart"
    if difference.value == 0 and difference.low == difference.high:
        return "cannot tell", "there is no difference at all"
    if not difference.excludes_zero:
        small = max(-difference.low, difference.high) <= matters
        reason = "the interval of the difference includes 0"
        reason += "; any difference is smaller than what counts" if small else ""
        return "cannot tell", reason
    if difference.approximate and not permutation.small(1 - difference.confidence):
        return "cannot tell", f"{permutation.p:.0%} of the ways to deal these runs differ as much"
    return ("better" if difference.value > 0 else "worse"), difference.method


def format_sentence(
    groups: Sequence[Group], verdicts: Sequence[Against], metric: str, members: int
) -> str:
    """Return the sentence that sums up the verdicts; `members`: runs, with those left out."""
    name = standing.label(metric)
    if not verdicts:
        count = len(groups[0].runs)
        runs_text = "1 run" if count == 1 else f"{count} runs of one group"
        if count < members:
            logs = "logs" if count == 1 else "log"
            runs_text = f"only {count} of {members} runs {logs} {metric}"
        return f"nothing to compare with: {runs_text}, {name} {groups[0].mean:.4g}"
    if len(verdicts) == 1:
        return verdict(verdicts[0], name)
    better = [item.group for item in verdicts if item.word == "better"]
    worse = [item.group for item in verdicts if item.word == "worse"]
    phrases = [f"better is {'; '.join(better)}"] if better else []
    phrases += [f"worse is {'; '.join(worse)}"] if worse else []
    unknown = len(verdicts) - len(better) - len(worse)
    phrases += [f"of {unknown} nobody can tell"] if unknown else []
    return f"against {groups[0].label}, by {name}: {' · '.join(phrases)}"


def verdict(against: Against, name: str) -> str:
    """Format one verdict with its numbers, and the number of seeds that could decide it."""
    difference = against.difference
    numbers = f"{name} {difference.value:+.4g} ({difference.low:+.4g} to {difference.high:+.4g})"
    if against.word != "cannot tell":
        return f"{against.group} is {against.word} than {against.reference}: {numbers}"
    text = f"nobody can tell {against.group} from {against.reference}: {against.why}"
    text += f": {numbers}" if math.isfinite(difference.low) else ""
    if against.more_seeds is None:
        return text
    return f"{text}; {format_seeds_needed(against.more_seeds, f'{against.matters:.3g}')}"


def format_seeds_needed(count: int, amount: str) -> str:
    """Format the number of seeds that a difference of `amount` needs."""
    more = "1 more seed" if count == 1 else f"{count} more seeds"
    return f"{more} a group would tell it to ±{amount}"
