"""Find runs that are one training, logged by several trackers into folders of their own.

    copies = find({0: (trackers, trace), ...})

Two runs are one training where different trackers logged them, an outcome that both have moves and
is the same at the same steps, and nothing that both have differs. Two seeds that begin alike, and
a training that was repeated with the same tracker, are two runs.
"""

from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from itertools import pairwise

import numpy as np

from rlvitals.types import Series, Trace


def find(runs: Mapping[int, tuple[frozenset[str], Trace]], min_values: int = 10) -> dict[int, int]:
    """Return the index of each copy, and that of the run which it is a copy of.

    `runs` are (trackers, trace). Of several copies the run with the most series and settings is
    the one that is kept. An outcome of fewer than `min_values` different values proves nothing:
    many failed runs have the same.
    """
    if len({trackers for trackers, _ in runs.values()}) == 1:
        return {}
    by_outcome: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for index, (_, trace) in runs.items():
        for name, series in trace.series.items():
            if name.startswith("outcome/") and _count_values(series) >= min_values:
                by_outcome[name, _content(series)].append(index)
    groups: dict[int, set[int]] = {}  # the runs of each run's training
    for indices in by_outcome.values():
        for first, second in pairwise(indices):
            if _is_same(runs[first][1], runs[second][1]):
                group = groups.get(first, {first}) | groups.get(second, {second})
                groups |= dict.fromkeys(group, group)
    copies: dict[int, int] = {}
    for index, group in groups.items():
        fullest = max(group, key=lambda member: (*_extent(runs[member][1]), -member))
        count = sum(len(runs[member][0]) for member in group)
        # Nobody can say which of two trainings a third log belongs to.
        if index != fullest and count == len(frozenset().union(*(runs[m][0] for m in group))):
            copies[index] = fullest
    return copies


def _is_same(trace: Trace, second: Trace) -> bool:
    """Return whether two runs with the same outcome agree in all that both have."""
    return _agree(trace.settings, second.settings) and all(
        _content(trace.series[name]) == _content(second.series[name])
        for name in trace.series.keys() & second.series.keys()
        if not name.startswith(("throughput/", "progress/"))  # each tracker's own clock
    )


def _agree(first: Mapping[str, object], second: Mapping[str, object]) -> bool:
    seeds = {str(each["seed"]) for each in (first, second) if "seed" in each}
    return len(seeds) <= 1


def _content(series: Series) -> bytes:
    """Return a digest of the steps and finite values, as TensorBoard stores them: in 32 bits."""
    points = series.finite()
    with np.errstate(over="ignore"):
        values = points.values.astype(np.float32)
    return sha256(points.steps.astype(np.int64).tobytes() + values.tobytes()).digest()


def _count_values(series: Series) -> int:
    return len(np.unique(series.finite().values))


def _extent(trace: Trace) -> tuple[int, int]:
    return len(trace.series), len(trace.settings)
