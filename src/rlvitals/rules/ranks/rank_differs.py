"""A rank's loss or gradient norm leaves those of the other ranks: silent corruption.

## What it sees
First, which kind of value the ranks log. A value after an all-reduce is shared: at 90 % of the
steps, more than half of the ranks have the same, to 1 part in a million. Then a rank that differs
by more than 1 part in 10,000 at 3 steps or more, or has no number there, is wrong. A value before
it is local, each rank's own batch: then the medians of the last three eighths of the run are
compared, and a rank differs where each lies further from the other ranks than Student's t lets one
of them by chance in 10,000 runs, and by 1 %, while the first quarter of the run lay within. At
least 3 ranks for shared values, 4 for local ones.

## Why it matters
A faulty core or memory computes wrong numbers without an error. Averaged into the gradient, they
spoil the training of all ranks, and no curve of the first rank shows it.

## What to do
Run the machine's own test of the accelerator and its memory. Compare a hash of the parameters
across the ranks: after an all-reduce they are equal, or the ranks have come apart. Resume from the
checkpoint before the step that is named, without that machine.

## When it is wrong
A rank with data of its own, such as another task, that becomes easier or harder than that of the
others. A rank that logs a sum where the others log a mean: compare what each logs. A rank that
differs from the first row on is taken for one with its own data, and is not found.

## References
- Dubey et al. 2024, "The Llama 3 Herd of Models", on silent data corruption.
- Dixit et al. 2021, "Silent Data Corruptions at Scale".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.rank_values import METRICS
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.signals.rank_scatter import (
    block_medians,
    distance_limit,
    distances,
    find_shared_value,
)
from rlvitals.types import RankValues, Trace

RANK_BLOCKS = 8  # parts of a run, whose medians are compared
COMPARED_METRICS = METRICS[:-1]  # the time of a step differs as the machines do
SHARED_DIFFERENCE = 1e-4  # relative: far above what the order of a sum changes
LOCAL_DIFFERENCE = 0.01  # relative: below, it is no fault whatever the scatter
MIN_SHARED_STEPS = 3
MIN_SHARED_RANKS, MIN_LOCAL_RANKS = 3, 4
MIN_COMPARED_STEPS = 4 * RANK_BLOCKS
LAST_BLOCKS, FIRST_BLOCKS = 3, 2  # that lie outside, and inside
OUTSIDE_CHANCE, INSIDE_CHANCE = 1e-4, 0.05  # of a block, on a run without a fault


def check(trace: Trace) -> Answer:
    """Compare the losses and gradient norms of the ranks."""
    answers = [
        _judge(trace, metric.name, trace.ranks[metric.name])
        for metric in COMPARED_METRICS
        if metric.name in trace.ranks
    ]
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    if findings:
        return max(findings, key=lambda finding: (finding.severity, -finding.began))
    if any(isinstance(answer, Clear) for answer in answers):
        return Clear()
    return Undecided("no loss or gradient norm of enough ranks and steps")


def _judge(trace: Trace, name: str, values: RankValues) -> Answer:
    if len(values.ranks) < MIN_SHARED_RANKS or len(values.steps) < MIN_COMPARED_STEPS:
        return Undecided("too few ranks or steps")
    shared = find_shared_value(values.values)
    if shared is not None:
        return _judge_sum(trace, name, values, shared)
    if len(values.ranks) < MIN_LOCAL_RANKS:
        return Undecided("too few ranks")
    return _judge_scatter(trace, name, values)


def differing_rows(values: RankValues) -> list[int]:
    """Return the rows of the ranks that differ at the end of the run, the furthest first.

    Of local values, also those that differed from their first row on.
    """
    if len(values.ranks) < MIN_SHARED_RANKS or len(values.steps) < MIN_COMPARED_STEPS:
        return []
    shared = find_shared_value(values.values)
    if shared is not None:
        counts = _unequal(values, shared).sum(axis=1)
        rows = np.flatnonzero(counts >= MIN_SHARED_STEPS)
        return [int(row) for row in rows[np.argsort(-counts[rows], kind="stable")]]
    medians, _ = block_medians(values.values, RANK_BLOCKS)
    complete = np.flatnonzero(np.isfinite(medians).all(axis=1))
    if len(complete) < MIN_LOCAL_RANKS:
        return []
    medians = medians[complete]
    rows = np.flatnonzero(_outside(medians)[:, -LAST_BLOCKS:].all(axis=1))
    order = np.argsort(-distances(medians)[rows, -1], kind="stable")
    return [int(row) for row in complete[rows[order]]]


def _unequal(
    values: RankValues, shared: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> NDArray[np.bool_]:
    """Return where [r, n] a rank logged something else than the value that the others share."""
    near = np.abs(values.values - shared) <= SHARED_DIFFERENCE * np.abs(shared)
    return np.asarray(values.logged & np.isfinite(shared) & ~near)


def _outside(medians: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where [r, b] a rank's median lies outside the scatter of the other ranks."""
    median_rank = np.median(medians, axis=0)
    return np.asarray(
        (distances(medians) > distance_limit(len(medians), OUTSIDE_CHANCE))
        & (np.abs(medians - median_rank) > LOCAL_DIFFERENCE * np.abs(median_rank))
    )


def _judge_sum(
    trace: Trace,
    name: str,
    values: RankValues,
    shared: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Answer:
    """Find the rank that does not have the value that the others share."""
    comparable = np.isfinite(shared)
    wrong = _unequal(values, shared)
    counts = wrong.sum(axis=1)
    row = int(counts.argmax())
    if counts[row] < MIN_SHARED_STEPS:
        return Clear()
    steps = values.steps[wrong[row]]
    logged = int((values.logged[row] & comparable).sum())
    return Finding(
        f"{name} is equal on the ranks, as after an all-reduce, but not on rank "
        f"{values.ranks[row]}: it differs at {counts[row]} of {logged} steps",
        severity=Severity.WARNING,
        metric=name,
        began=int(steps[0]),
        ended=min(int(steps[-1]), trace.last_step),
        observed=float(counts[row] / logged),
        bound=Bound(0.0, "share of the steps: ranks of one all-reduce are equal"),
        limit_on_curve=False,
    )


def _judge_scatter(trace: Trace, name: str, values: RankValues) -> Answer:
    """Find the rank that leaves the others by more than their own scatter."""
    medians, starts = block_medians(values.values, RANK_BLOCKS)
    complete = np.isfinite(medians).all(axis=1)
    if complete.sum() < MIN_LOCAL_RANKS:
        return Undecided("too few ranks with a number in each part of the run")
    medians, ranks = medians[complete], values.ranks[complete]
    away = distances(medians)
    median_rank = np.median(medians, axis=0)
    limit = distance_limit(len(ranks), OUTSIDE_CHANCE)
    outside = _outside(medians)
    inside = (away[:, :FIRST_BLOCKS] < distance_limit(len(ranks), INSIDE_CHANCE)).all(axis=1)
    rows = np.flatnonzero(outside[:, -LAST_BLOCKS:].all(axis=1) & inside)
    if not len(rows):
        return Clear()
    row = int(rows[away[rows, -1].argmax()])
    first = RANK_BLOCKS - int(np.argmin(outside[row, ::-1]))
    return Finding(
        f"{name} is each rank's own, and rank {ranks[row]} has come apart from the others: "
        f"{medians[row, -1]:.4g} in the last eighth of the run, the median rank "
        f"{median_rank[-1]:.4g}",
        severity=Severity.WARNING,
        metric=name,
        began=int(values.steps[starts[first]]),
        ended=min(int(values.steps[-1]), trace.last_step),
        observed=float(away[row, -1]),
        bound=Bound(limit, "distance from the other ranks, in units of their scatter"),
        limit_on_curve=False,
    )


RULE = Rule(
    name="rank-differs",
    needs=(),
    needs_any=COMPARED_METRICS,
    check=check,
    doc=__doc__,
    causes=(
        "an accelerator or its memory computes wrong numbers",
        "the parameters of that rank have come apart: a step that it did not take part in",
        "its data differs from that of the others",
    ),
    remedies=(
        "compare a hash of the parameters across the ranks",
        "resume from the checkpoint before that step, without that machine",
        "run the accelerator's own memory and compute test",
    ),
    many_ranks=True,
)
