"""Compare a run with healthy runs of the same task: settings, band and first divergence."""

from collections.abc import Sequence

import numpy as np

from rlvitals.comparison.diff import Difference, diff_runs
from rlvitals.comparison.divergence_step import Divergence
from rlvitals.rules import standing
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace


@dataclass(frozen=True, slots=True)
class Siblings:
    """What separates a run from its healthy siblings."""

    names: tuple[str, ...]  # of the siblings, the most similar one first
    changed: tuple[Difference, ...]  # settings: of the most similar sibling, of this run
    metric: str  # of the outcome
    low: float  # lowest level of the siblings at the last common step
    high: float
    level: float  # of this run there
    divergence: Divergence | None  # the first metric that leaves the band of the siblings

    @property
    def sentence(self) -> str:
        """Write it in words: the outcome, the settings that differ, the first divergence."""
        count = len(self.names)
        siblings = f"{count} healthy runs" if count > 1 else f"the healthy run {self.names[0]}"
        band = f"{self.low:.4g} to {self.high:.4g}" if count > 1 else f"{self.low:.4g}"
        outcome = f"{standing.label(self.metric)} is {self.level:.4g}, {band} in {siblings}"
        changed = [
            f"{change.key} {change.second or 'not set'} (there {change.first or 'not set'})"
            for change in self.changed
            if change.area == "setting"
        ]
        settings = (
            f"settings that differ: {', '.join(changed)}" if changed else "no setting differs"
        )
        first = self.divergence
        if first is None or first.step is None:
            return f"{outcome}; {settings}; no metric leaves their band"
        levels = f"{first.second:.4g} where {self.names[0]} has {first.first:.4g}"
        course = f"{first.metric} leaves their band first, at step {first.step:,}: {levels}"
        return f"{outcome}; {settings}; {course}"


def is_sibling(trace: Trace, sibling: Trace) -> bool:
    """Return whether another run is of the same task: kind of training, environment, outcome."""
    same_kind = trace.profile is sibling.profile and trace.step_unit == sibling.step_unit
    environments = [run.settings.get("env_id") for run in (trace, sibling)]
    metrics = [outcome[0] if (outcome := standing.outcome(run)) else "" for run in (trace, sibling)]
    return same_kind and environments[0] == environments[1] and metrics[0] == metrics[1] != ""


def compare_siblings(trace: Trace, healthy: Sequence[Trace]) -> Siblings | None:
    """Compare a run with the healthy runs of its task; None where none of them is.

    The most similar sibling is the one with the fewest settings that differ. A metric has left the
    band where its mean over a tenth of the common steps lies beyond that of every sibling.
    """
    siblings = [sibling for sibling in healthy if is_sibling(trace, sibling)]
    if not siblings:
        return None
    diffs = [diff_runs(sibling, trace) for sibling in siblings]
    order = sorted(range(len(diffs)), key=lambda i: len(diffs[i].changed))
    nearest = diffs[order[0]]
    outcome = standing.outcome(trace)
    metric = "" if outcome is None else outcome[0]
    end = min(run.last_step for run in (trace, *siblings))
    width = max((end - trace.first_step) // 10, 1)
    levels = [_level(sibling, metric, end - width, end) for sibling in siblings]
    diverged = (
        divergence
        for divergence in nearest.partings
        if divergence.step is not None
        and _is_outside(trace, siblings, divergence.metric, (divergence.step, width))
    )
    return Siblings(
        names=tuple(siblings[i].name for i in order),
        changed=nearest.changed,
        metric=metric,
        low=float(np.nanmin(levels)),
        high=float(np.nanmax(levels)),
        level=_level(trace, metric, end - width, end),
        divergence=next(diverged, None),
    )


def _level(trace: Trace, metric: str, start: int, end: int) -> float:
    """Return the mean of a metric between two steps; the nearest value where none is logged."""
    if (series := trace.get(metric)) is None:
        return float("nan")
    points = series.finite().until(end)
    values = points.since(start).values
    if len(values):
        return float(values.mean())
    return float(points.values[-1]) if len(points) else float("nan")


def _is_outside(
    trace: Trace, siblings: Sequence[Trace], metric: str, window: tuple[int, int]
) -> bool:
    start, width = window
    levels = [_level(sibling, metric, start, start + width) for sibling in siblings]
    level = _level(trace, metric, start, start + width)
    return not np.nanmin(levels) <= level <= np.nanmax(levels)
