"""Stages of a curriculum: a harder one earns less at first, and no skill is lost by that."""

import numpy as np

from rlvitals.metrics.catalogue.progress import CURRICULUM
from rlvitals.signals.blocks import block_means
from rlvitals.signals.spread import noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace


@dataclass(frozen=True, slots=True)
class StageChange:
    """A step from which a column of the curriculum has another value."""

    step: int
    stage: str  # what the column is called, below the metric's name

    @property
    def sentence(self) -> str:
        """Say what moved, and when."""
        name = self.stage.replace("_", " ")
        owner = "" if "curriculum" in name else "curriculum's "
        return f"the {owner}{name} moved at step {self.step:,}"


def stage_changes(trace: Trace) -> tuple[StageChange, ...]:
    """List the changes of stage by step; none of a column that moves more than five times."""
    changes = []
    for stage, logged in trace.family(CURRICULUM.name).items():
        points = logged.finite()
        indices = np.flatnonzero(points.values[1:] != points.values[:-1]) + 1
        if indices.size <= 5:  # a curriculum that moves more often is a schedule
            changes += [StageChange(int(points.steps[i]), stage) for i in indices]
    return tuple(sorted(changes, key=lambda change: change.step))


@dataclass(frozen=True, slots=True)
class Stretch:
    """The points of an outcome that belong to one stage, and how to say so."""

    series: Series
    description: str = ""  # "since ..." or "until ..."; empty for all points


def within_stage(trace: Trace, series: Series) -> Stretch:
    """Cut an outcome, finite points with up = better, at the changes of stage where it drops.

    The last stage with 20 points or more is kept. Where no change makes it drop, nothing is cut:
    then the stages were mastered one by one.
    """
    cuts = [change for change in stage_changes(trace) if _drops(series, change.step)]
    successor = None
    for change in reversed(cuts):
        stage = series.since(change.step)
        stage = stage if successor is None else stage.until(successor.step - 1)
        if len(stage) >= 20:  # two blocks, as `_drops` compares them
            return Stretch(stage, f"since {change.sentence}")
        successor = change
    if successor is None:
        return Stretch(series)
    return Stretch(series.until(successor.step - 1), f"until {successor.sentence}")


def _drops(series: Series, step: int, *, width: int = 10) -> bool:
    """Tell whether an outcome is lower after a step than right before it, beyond its noise.

    The levels are means of `width` points. Of those after the step the lowest of a tenth of the
    run counts: a mean over many episodes falls slowly, and what falls later fell by itself.
    """
    head, tail = series.until(step - 1).values, series.since(step).values
    tail = tail[: max(len(series) // 10, 2 * width)]
    if len(head) < width or not len(tail):
        return False
    drop = head[-width:].mean() - block_means(tail, min(width, len(tail))).min()
    error = (noise_sd(series.values) or 0.0) * (2 / width) ** 0.5  # of such a difference
    return bool(drop > 4 * error)
