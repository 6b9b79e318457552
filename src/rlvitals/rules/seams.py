"""Known changes in mid-run, and the change that a finding follows closely."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY_COEF
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE
from rlvitals.metrics.catalogue.policy import CLIP_RANGE, KL_COEF
from rlvitals.metrics.catalogue.progress import BATCH_SIZE, CURRICULUM, EPOCH
from rlvitals.metrics.catalogue.throughput import ELAPSED
from rlvitals.metrics.steps.stages import stage_changes
from rlvitals.rules.rule import Finding, Rule
from rlvitals.rules.standing import label
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

Kind = Literal["resume", "setting", "stage", "epoch"]

MAX_CHANGE_COVERAGE = 0.1  # of the updates near changes of one kind: more explain any finding
MAX_SETTING_CHANGES = 5  # a setting that changes more often is scheduled
WATCHED_SETTINGS = (
    CLIP_RANGE,
    ENTROPY_COEF,
    KL_COEF,
    BATCH_SIZE,
)  # logged, and constant until changed
# Where several kinds fit equally well, the first is named: it is the rarest.
CHANGE_KINDS: tuple[Kind, ...] = ("resume", "setting", "stage", "epoch")


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A step at which something about the run is known to have changed."""

    step: int  # the first that was logged after the change
    kind: Kind
    description: str  # as one says it after "after": "the resume at step 5,000"
    metric: str = ""  # canonical name of what changed, where that is logged


@dataclass(frozen=True, slots=True)
class Alignment:
    """A finding that began so many updates after a change."""

    change: ChangePoint
    updates: int  # logged points of the finding's metric; 0: at the first point after the change


def change_points(trace: Trace) -> tuple[ChangePoint, ...]:
    """Collect a run's known changes, by step: resumes, settings, stages, passes over the data."""
    changes = [*_resumes(trace), *_rates(trace), *_set(trace), *_stages(trace), *_epochs(trace)]
    return tuple(sorted(changes, key=lambda change: (change.step, CHANGE_KINDS.index(change.kind))))


def alignment(
    trace: Trace,
    finding: Finding,
    changes: Iterable[ChangePoint] | None = None,
    within: int = 20,  # updates: optimisers forget a lost state in about as many
) -> Alignment | None:
    """Return the change that a finding began at most `within` updates after; None for none.

    Updates are counted in points of the finding's own metric. Where more than a tenth of the
    run's updates follow a change of that kind as closely, it is no explanation: a finding that
    began anywhere would as likely do so. A change of its own metric is the finding itself.
    """
    steps = _rows(trace, finding)
    if not len(steps) or finding.began <= steps[0]:
        return None
    candidates = [
        change
        for change in (change_points(trace) if changes is None else changes)
        if change.metric != finding.metric and change.step > steps[0]
    ]
    onset = int(np.searchsorted(steps, finding.began))
    for kind in CHANGE_KINDS:
        same_kind = [(int(np.searchsorted(steps, c.step)), c) for c in candidates if c.kind == kind]
        near = [
            (onset - position, change)
            for position, change in same_kind
            if 0 <= onset - position <= within
        ]
        if not near:
            continue
        gap, change = min(near, key=lambda pair: pair[0])
        if (
            _coverage([position for position, _ in same_kind], len(steps), gap)
            <= MAX_CHANGE_COVERAGE
        ):
            return Alignment(change, gap)
    return None


def attribute_causes(
    trace: Trace, findings: Iterable[tuple[Rule, Finding]]
) -> list[tuple[Rule, Finding]]:
    """Say of each finding that began right after a known change so, and put that cause first."""
    changes = change_points(trace)
    return [(rule, _attribute(trace, rule, finding, changes)) for rule, finding in findings]


def _attribute(
    trace: Trace, rule: Rule, finding: Finding, changes: tuple[ChangePoint, ...]
) -> Finding:
    near = alignment(trace, finding, changes)
    if near is None:
        return finding
    cause = _cause(near.change, finding)
    count = f"{near.updates} updates after" if near.updates != 1 else "1 update after"
    sentence = (
        f"it began {count if near.updates else 'right with'} {near.change.description}: {cause}"
    )
    causes = finding.causes or rule.causes
    if cause not in causes:
        causes = (cause, *causes)
    return replace(finding, evidence=(*finding.evidence, sentence), causes=causes)


def _cause(change: ChangePoint, finding: Finding) -> str:
    if change.kind == "resume":
        if finding.metric.startswith("throughput/"):
            return "the run may have come back on another machine, or with other workers"
        return "the optimiser's, scheduler's or normaliser's state may not have been restored"
    if change.kind == "setting":
        return f"the {label(change.metric)} was changed there"
    if change.kind == "stage":
        return "the task changed there, not the policy alone"
    return "from there on the data has been seen before"


def _coverage(positions: list[int], count: int, within: int) -> float:
    """Return the share of the points that lie within so many after any change."""
    near = np.zeros(count, dtype=np.bool_)
    for first in positions:
        near[first : first + within + 1] = True
    return float(near.mean())


def _rows(trace: Trace, finding: Finding) -> NDArray[np.int64]:
    """Return the steps of the finding's metric, each once; of the fullest series without one."""
    series = trace.get(finding.metric)
    if series is None:
        series = max(trace.series.values(), key=len, default=None)
    return np.empty(0, dtype=np.int64) if series is None else np.unique(series.steps)


def _resumes(trace: Trace) -> list[ChangePoint]:
    """Steps that went back and were run again; clocks of the process that begin anew."""
    steps = set(trace.lifecycle.seams)
    clock = trace.get(ELAPSED.name)
    if clock is not None:
        points = clock.finite()
        fell = np.flatnonzero(points.values[1:] < 0.5 * points.values[:-1]) + 1
        if fell.size <= MAX_SETTING_CHANGES:  # a clock that falls all along counts something else
            steps |= {int(step) for step in points.steps[fell]}
    return [ChangePoint(s, "resume", f"the resume at step {s:,}") for s in sorted(steps)]


def _rates(trace: Trace) -> list[ChangePoint]:
    """Jumps of the learning rate, either way: no smooth schedule doubles within a row."""
    logged = trace.get(LEARNING_RATE.name)
    if logged is None:
        return []
    rate = logged.finite()
    rate = rate.where(rate.values > 0)
    ratios = np.maximum(rate.values[1:] / rate.values[:-1], rate.values[:-1] / rate.values[1:])
    # A linear warm-up from zero doubles once, in its second row; an end at zero halves and more.
    margin = max(2, len(rate) // 20)
    # The learning rate doubles or halves from one row to the next.
    jumps = np.flatnonzero(ratios >= 2.0) + 1
    jumps = jumps[(jumps >= margin) & (jumps < len(rate) - margin)]
    return _changes(rate, jumps, LEARNING_RATE.name)


def _set(trace: Trace) -> list[ChangePoint]:
    changes = []
    for metric in WATCHED_SETTINGS:
        logged = trace.get(metric.name)
        if logged is not None:
            points = logged.finite()
            jumps = np.flatnonzero(points.values[1:] != points.values[:-1]) + 1
            changes += _changes(points, jumps, metric.name)
    return changes


def _changes(series: Series, indices: NDArray[np.int64], name: str) -> list[ChangePoint]:
    if indices.size > MAX_SETTING_CHANGES:
        return []
    return [
        ChangePoint(
            step := int(series.steps[i]),
            "setting",
            f"the {label(name)} changed from {series.values[i - 1]:.3g} to {series.values[i]:.3g}"
            f" at step {step:,}",
            name,
        )
        for i in indices
    ]


def _stages(trace: Trace) -> list[ChangePoint]:
    return [
        ChangePoint(change.step, "stage", change.sentence, f"{CURRICULUM.name}/{change.stage}")
        for change in stage_changes(trace)
    ]


def _epochs(trace: Trace) -> list[ChangePoint]:
    """The steps at which a new pass over the data begins."""
    logged = trace.get(EPOCH.name)
    if logged is None:
        return []
    points = logged.finite()
    epoch_numbers = np.floor(points.values)
    starts = np.flatnonzero(epoch_numbers[1:] > epoch_numbers[:-1]) + 1
    if starts.size > MAX_CHANGE_COVERAGE * len(points):
        return []  # a pass over the data in a few rows: it explains nothing
    return [
        ChangePoint(
            step := int(points.steps[i]),
            "epoch",
            f"the start of epoch {epoch_numbers[i]:g}, step {step:,}",
        )
        for i in starts
    ]
