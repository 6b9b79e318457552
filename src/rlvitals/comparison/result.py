"""Groups of runs, each with its scores, and what can be said of one against another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvitals.comparison import statistics
from rlvitals.comparison.statistics import Interval
from rlvitals.rules import standing
from rlvitals.types import Setting

Word = Literal["better", "worse", "cannot tell"]


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
    """What the runs of one task are compared by."""

    name: str
    end: float  # the place on the axis up to which all of them count
    level: float  # as logged: what "how soon" is asked of
    low: float  # of the scale, as logged: chance, or where the runs began
    high: float  # a solved task, or what the first group reaches
    scale_from: str
    is_known: bool  # from what is known of the environment

    @property
    def span(self) -> float:
        """How far it is from one end of the scale to the other, always above 0."""
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
    """One group against the first."""

    group: str
    reference: str
    word: Word
    why: str
    difference: Interval  # up = better
    permutation: float  # share of deals that differ as much; NaN where not asked
    improvement: Interval  # probability that a run beats one of the reference
    matters: float  # the least difference that counts, in the unit of the difference
    more_seeds: int | None  # a group, to know the difference to that; None where nobody can say


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is told of groups of runs."""

    sentence: str
    metric: str
    at: str
    axis: str
    tasks: tuple[Task, ...]
    groups: tuple[Group, ...]
    against: tuple[Against, ...]
    levels: tuple[float, ...]  # of the performance profile
    notes: tuple[str, ...] = ()


def strata(group: Sequence[RunScore], tasks: Sequence[str]) -> list[statistics.Array]:
    """Return a group's gains by task, for the tasks named."""
    return [np.array([run.gain for run in group if run.task == task]) for task in tasks]


def seeds(group: Sequence[RunScore]) -> int:
    """Count the seeds of the task of which a group has fewest."""
    return statistics.fewest(strata(group, shared(group)))


def shared(*groups: Sequence[RunScore]) -> list[str]:
    """List the tasks that every group has, in the order of the first."""
    others = [{run.task for run in group} for group in groups[1:]]
    order = dict.fromkeys(run.task for run in groups[0])
    return [task for task in order if all(task in other for other in others)]


def against(
    group: Group, reference: Group, matters: float, confidence: float = statistics.CONFIDENCE
) -> Against:
    """Say whether a group is better than a reference, over the tasks that both have."""
    tasks = shared(reference.runs, group.runs)
    if not tasks:
        nothing = Interval(math.nan, math.nan, math.nan, confidence, "no task in common", True)
        why = "they have no task in common: --by a setting that they share"
        return Against(
            group.label, reference.label, "cannot tell", why, nothing, math.nan, nothing, matters,
            None,
        )  # fmt: skip
    mine, theirs = strata(group.runs, tasks), strata(reference.runs, tasks)
    apart = statistics.difference(mine, theirs, confidence)
    dealt = statistics.permutation(mine, theirs)
    held = statistics.fewest(mine, theirs)
    word, why = _word(apart, dealt, held, matters)
    wanted = statistics.seeds_for(mine, theirs, matters, confidence)
    more = None if wanted is None else max(wanted, statistics.LEAST) - held
    return Against(
        group=group.label,
        reference=reference.label,
        word=word,
        why=why,
        difference=apart,
        permutation=dealt.p,
        improvement=statistics.improvement(mine, theirs),
        matters=matters,
        more_seeds=more if more is not None and more > 0 else None,
    )


def _word(
    apart: Interval, dealt: statistics.Permutation, seeds: int, matters: float
) -> tuple[Word, str]:
    """Give the verdict and what it rests on."""
    if seeds < statistics.LEAST:
        held = "1 seed" if seeds == 1 else f"{seeds} seeds"
        return "cannot tell", f"from {held} nobody can tell how far seeds lie apart"
    if apart.value == 0 and apart.low == apart.high:
        return "cannot tell", "there is no difference at all"
    if not apart.excludes_zero:
        small = max(-apart.low, apart.high) <= matters
        why = "the interval of the difference includes 0"
        return "cannot tell", f"{why}; any difference is smaller than what counts" if small else why
    if apart.approximate and not dealt.small(1 - apart.confidence):
        return "cannot tell", f"{dealt.p:.0%} of the ways to deal these runs differ as much"
    return ("better" if apart.value > 0 else "worse"), apart.method


def sentence(groups: Sequence[Group], said: Sequence[Against], metric: str) -> str:
    """Say the answer."""
    name = standing.label(metric)
    if not said:
        count = len(groups[0].runs)
        held = "1 run" if count == 1 else f"{count} runs of one group"
        return f"nothing to compare with: {held}, {name} {groups[0].mean:.4g}"
    if len(said) == 1:
        return verdict(said[0], name)
    better = [one.group for one in said if one.word == "better"]
    worse = [one.group for one in said if one.word == "worse"]
    parts = [f"better is {'; '.join(better)}"] if better else []
    parts += [f"worse is {'; '.join(worse)}"] if worse else []
    unknown = len(said) - len(better) - len(worse)
    parts += [f"of {unknown} nobody can tell"] if unknown else []
    return f"against {groups[0].label}, by {name}: {' · '.join(parts)}"


def verdict(one: Against, name: str) -> str:
    """Say one verdict with its numbers, and how many more seeds could tell."""
    apart = one.difference
    numbers = f"{name} {apart.value:+.4g} ({apart.low:+.4g} to {apart.high:+.4g})"
    if one.word != "cannot tell":
        return f"{one.group} is {one.word} than {one.reference}: {numbers}"
    told = f"nobody can tell {one.group} from {one.reference}: {one.why}"
    told += f": {numbers}" if math.isfinite(apart.low) else ""
    if one.more_seeds is None:
        return told
    return f"{told}; {seeds_wanted(one.more_seeds, f'{one.matters:.3g}')}"


def seeds_wanted(count: int, amount: str) -> str:
    """Say how many more seeds would tell differences of an amount."""
    more = "1 more seed" if count == 1 else f"{count} more seeds"
    return f"{more} a group would tell it to ±{amount}"
