"""Which runs are really broken: by what they earned, not by what was done to them.

A fault that does no harm is no fault: a run counts as broken when it earned less than the 5th
percentile of its task's healthy seeds, and 10 % of the way less than their median, or when its
mechanism is broken by construction. The rest are benign mutations. A run without a fault that
lost or never learned the task is healthy by intention alone: it failed on its own. Both are
counted apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rlvitals.faults.catalogue import named
from rlvitals.faults.fault import FAILED
from rlvitals.faults.folder import Recorded

PERCENTILE = 5.0
LEAST_HEALTHY = 20
LEARNED = 0.1  # of the way from a task's first returns to its healthy outcome
MARGIN = 0.1  # of that way: less below the healthy outcome is no harm, where seeds hardly differ
LOST = 0.5  # of what had been gained


class Label(StrEnum):
    """What a run is to the benchmark."""

    HEALTHY = "healthy"
    BROKEN = "broken"
    BENIGN = "benign mutation"
    OWN_FAILURE = "failed on its own"


class Course(StrEnum):
    """What became of a run, by its true returns."""

    FAILED = "failed"
    LOST = "lost"
    LEARNED = "learned"
    NOT_LEARNED = "not learned"


# The verdicts that are right for each course.
RIGHT: Mapping[Course, tuple[str, ...]] = {
    Course.FAILED: ("failed",),
    Course.LOST: ("collapsed", "unstable", "stalled"),
    Course.LEARNED: ("learning", "plateau", "converged"),
    Course.NOT_LEARNED: ("stalled", "collapsed", "unstable"),
}


@dataclass(frozen=True, slots=True)
class Level:
    """What a task's healthy seeds earn."""

    first: float  # median of the first tenths
    usual: float  # median of the last tenths
    low: float  # 5th percentile of the last tenths
    seeds: int

    @property
    def harmed(self) -> float:
        """The outcome below which a run is worse than healthy ones are."""
        return min(self.low, self.usual - MARGIN * (self.usual - self.first))


def levels(runs: Sequence[Recorded]) -> dict[str, Level]:
    """Return what the healthy seeds of each task earned; tasks with too few are left out."""
    found: dict[str, Level] = {}
    for task in sorted({run.task for run in runs}):
        own = [r for r in runs if r.task == task and not r.fault and not r.variant]
        last = [r.outcome for r in own if r.outcome is not None]
        first = [r.first for r in own if r.first is not None]
        if len(last) >= LEAST_HEALTHY:
            found[task] = Level(
                float(np.median(first)),
                float(np.median(last)),
                float(np.percentile(last, PERCENTILE)),
                len(last),
            )
    return found


def course(run: Recorded, level: Level) -> Course:
    """Say what became of a run."""
    if run.ended != "finished" or (run.fault and FAILED in named(run.fault).expects):
        return Course.FAILED
    if run.outcome is None or run.best is None or run.first is None:
        return Course.NOT_LEARNED
    way = level.usual - level.first
    start = min(run.first, level.usual)
    gained = run.best - start
    if gained >= LEARNED * way and run.best - run.outcome > LOST * gained:
        return Course.LOST
    return Course.LEARNED if run.outcome - level.first >= LEARNED * way else Course.NOT_LEARNED


def hidden(run: Recorded, level: Level) -> bool:
    """Tell whether a run learned all the same and its log so looks like a healthy one's."""
    return (
        bool(run.fault)
        and named(run.fault).hidden_while_learning
        and course(run, level) is Course.LEARNED
    )


def label(run: Recorded, level: Level) -> Label:
    """Say what a run is to the benchmark."""
    if not run.fault:
        fine = course(run, level) is Course.LEARNED
        return Label.HEALTHY if fine else Label.OWN_FAILURE
    harmed = run.outcome is None or run.outcome < level.harmed
    return Label.BROKEN if harmed or named(run.fault).proven else Label.BENIGN
