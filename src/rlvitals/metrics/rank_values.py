"""Gather what each rank of a run logged under one metric, thinned to some common steps."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue import optimiser, policy, throughput, value
from rlvitals.metrics.steps import resume
from rlvitals.types import Log, Measured, RankValues, Series

# What tells ranks apart: the losses, the gradient, the time of a step.
METRICS = (
    optimiser.LOSS,
    optimiser.GRAD_NORM,
    policy.LOSS,
    value.LOSS,
    throughput.STEP_TIME,
)
MAX_STEPS = 256  # of a metric: at 17 bytes a point, 1,024 ranks take 4.5 MB


def gather(logs: Sequence[Log], measured: Mapping[str, Measured]) -> dict[str, RankValues]:
    """Return the values of all ranks by canonical metric; empty for a run of a single rank.

    `measured`: the key that each metric was read from, which the other ranks share.
    """
    by_name: dict[str, RankValues] = {}
    for log in logs:
        # By key, the series of every rank of the last attempt; none where no key is of another
        # rank.
        keys: dict[str, list[tuple[int, str]]] = {}
        for key in log.series:
            prefix, _, rank_key = key.partition("/")
            rank, _, name = rank_key.partition("/")
            if prefix == "rank" and rank.isdecimal() and (not log.ranks or int(rank) in log.ranks):
                keys.setdefault(name, []).append((int(rank), key))
        main = log.ranks[0] if log.ranks else 0
        by_key = {
            key: [(rank, log.series[name]) for rank, name in ((main, key), *other_ranks)]
            for key, other_ranks in keys.items()
            if key in log.series
        }
        for metric in METRICS:
            source = measured.get(metric.name)
            if source is None or source.where != log.where or source.key not in by_key:
                continue
            by_rank = {rank: series for rank, series in by_key[source.key] if len(series)}
            if len(by_rank) > 1 and metric.name not in by_name:
                by_name[metric.name] = _on_common_steps(by_rank)
    return by_name


def _on_common_steps(by_rank: Mapping[int, Series]) -> RankValues:
    """Put the ranks' series on the steps that at least half of them logged."""
    straight = {rank: resume.straighten(series).series for rank, series in by_rank.items()}
    ranks = np.array(sorted(straight), dtype=np.int64)
    steps = _common_steps([series.steps for series in straight.values()])
    if len(steps) > MAX_STEPS:
        steps = steps[np.linspace(0, len(steps) - 1, MAX_STEPS).round().astype(np.int64)]
    shape = (len(ranks), len(steps))
    times, values, logged = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, bool)
    for row, rank in enumerate(ranks):
        series = straight[int(rank)]
        index = np.clip(series.steps.searchsorted(steps, side="right") - 1, 0, None)
        logged[row] = series.steps[index] == steps
        times[row] = np.where(logged[row], series.times[index], np.nan)
        values[row] = np.where(logged[row], series.values[index], np.nan)
    return RankValues(ranks, steps, times, values, logged)


def _common_steps(steps_by_rank: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the steps that at least half of the ranks logged: most ranks share all of theirs."""
    distinct = {steps.tobytes(): np.unique(steps) for steps in steps_by_rank}
    counts = Counter(steps.tobytes() for steps in steps_by_rank)
    weighted = [np.full(len(steps), float(counts[key])) for key, steps in distinct.items()]
    steps = np.concatenate([*distinct.values()])
    unique, inverse = np.unique(steps, return_inverse=True)
    votes = np.bincount(inverse, weights=np.concatenate([*weighted]), minlength=len(unique))
    return unique[2 * votes >= len(steps_by_rank)]
