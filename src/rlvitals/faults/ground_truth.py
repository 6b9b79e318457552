"""Label runs as healthy or broken by their true returns.

A run is broken if its true return is below the 5th percentile of its task's healthy seeds, and 10 %
of the way below their median, or if its mechanism is broken by construction. Other runs with a
fault are benign mutations. A run without a fault that lost or never learned the task failed on its
own. Both are counted separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rlvitals.faults.catalogue import find_fault
from rlvitals.faults.fault import FAILED_VERDICT
from rlvitals.faults.folder import Recorded

HARM_PERCENTILE = 5.0
MIN_HEALTHY_SEEDS = 20
MIN_LEARNED_SHARE = 0.1  # of the way from a task's first returns to its healthy outcome
MIN_HARM_SHARE = 0.1  # of that way below the healthy outcome, where healthy seeds hardly differ
MIN_LOST_SHARE = 0.5  # of the gain


class Label(StrEnum):
    """The label of a run in the benchmark."""

    HEALTHY = "healthy"
    BROKEN = "broken"
    BENIGN = "benign mutation"
    OWN_FAILURE = "failed on its own"


class Course(StrEnum):
    """The course of a run by its true returns."""

    FAILED = "failed"
    LOST = "lost"
    LEARNED = "learned"
    NOT_LEARNED = "not learned"


# The verdicts that are right for each course.
VERDICTS_BY_COURSE: Mapping[Course, tuple[str, ...]] = {
    Course.FAILED: ("failed",),
    Course.LOST: ("collapsed", "unstable", "stalled"),
    Course.LEARNED: ("learning", "plateau", "converged"),
    Course.NOT_LEARNED: ("stalled", "collapsed", "unstable"),
}


@dataclass(frozen=True, slots=True)
class Level:
    """The true returns of a task's healthy seeds."""

    first: float  # median of the first tenths
    usual: float  # median of the last tenths
    low: float  # 5th percentile of the last tenths
    seeds: int

    @property
    def harm_limit(self) -> float:
        """The outcome below which a run is worse than healthy ones are."""
        return min(self.low, self.usual - MIN_HARM_SHARE * (self.usual - self.first))


def levels(runs: Sequence[Recorded]) -> dict[str, Level]:
    """Return the level of each task with at least `MIN_HEALTHY_SEEDS` healthy seeds."""
    levels_by_task: dict[str, Level] = {}
    for task in sorted({run.task for run in runs}):
        task_runs = [r for r in runs if r.task == task and not r.fault and not r.variant]
        outcomes = [r.outcome for r in task_runs if r.outcome is not None]
        first_returns = [r.first for r in task_runs if r.first is not None]
        if len(outcomes) >= MIN_HEALTHY_SEEDS:
            levels_by_task[task] = Level(
                float(np.median(first_returns)),
                float(np.median(outcomes)),
                float(np.percentile(outcomes, HARM_PERCENTILE)),
                len(outcomes),
            )
    return levels_by_task


def course(run: Recorded, level: Level) -> Course:
    """Classify a run by its true returns."""
    if run.ended != "finished" or (run.fault and FAILED_VERDICT in find_fault(run.fault).expects):
        return Course.FAILED
    if run.outcome is None or run.best is None or run.first is None:
        return Course.NOT_LEARNED
    distance = level.usual - level.first
    start = min(run.first, level.usual)
    gain = run.best - start
    if gain >= MIN_LEARNED_SHARE * distance and run.best - run.outcome > MIN_LOST_SHARE * gain:
        return Course.LOST
    return (
        Course.LEARNED
        if run.outcome - level.first >= MIN_LEARNED_SHARE * distance
        else Course.NOT_LEARNED
    )


def looks_healthy(run: Recorded, level: Level) -> bool:
    """Return whether a faulty run learned, so that its log resembles a healthy one."""
    return (
        bool(run.fault)
        and find_fault(run.fault).hidden_while_learning
        and course(run, level) is Course.LEARNED
    )


def label(run: Recorded, level: Level) -> Label:
    """Label a run."""
    if not run.fault:
        is_learned = course(run, level) is Course.LEARNED
        return Label.HEALTHY if is_learned else Label.OWN_FAILURE
    is_harmed = run.outcome is None or run.outcome < level.harm_limit
    return Label.BROKEN if is_harmed or find_fault(run.fault).proven else Label.BENIGN
