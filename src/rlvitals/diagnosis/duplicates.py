"""Find runs that are one training, logged by several trackers into folders of their own.

    copies = find({0: identify(trackers, trace), ...})

Two runs are one training where different trackers logged them, an outcome or a metric of updates
that both have moves and is the same at the same steps, and nothing that both have differs. A mean
of episodes is another quantity than the episodes. Of two runs that go on, one may be some rows
behind; printed numbers may lack digits. Two seeds that begin alike, and a
training that was repeated with the same tracker, are two runs.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from hashlib import blake2b
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rlvitals.rules.going_on import goes_on
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

Key = TypeVar("Key", bound=Hashable)
Points = tuple[NDArray[np.int64], NDArray[np.float32]]  # steps and values, [points]


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one training from another, without the rows of its log."""

    trackers: frozenset[str]
    outcomes: Mapping[str, Points]  # outcomes and metrics of updates that move
    openings: Mapping[str, bytes]  # digest of each until it has taken enough values
    digests: Mapping[str, bytes]  # of each series but clocks and speeds
    windows: Mapping[str, int]  # points that each value is a mean of
    seed: str
    extent: tuple[int, int]  # number of series and of settings
    grows: bool


def identify(trackers: frozenset[str], trace: Trace, *, grew: bool = False) -> Identity:
    """Return what tells a run from others.

    `trackers` are the names of the readers of its files; `grew`: it was seen to grow.
    The output that another tracker keeps beside its log makes the console none of its trackers.
    """
    points = {name: _points(series) for name, series in trace.series.items()}
    lengths = {
        name: _opening_length(points[name][1], 3 if _is_of_updates(name) else 10)
        for name in points
        if name.startswith("outcome/") or _is_of_updates(name)
    }
    outcomes = {name: points[name] for name, length in lengths.items() if length}
    return Identity(
        (trackers - {"console"}) or trackers,
        outcomes,
        {name: _digest(*outcomes[name], lengths[name]) for name in outcomes},
        {
            name: _digest(*columns, len(columns[0]))
            for name, columns in points.items()
            if not name.startswith(("throughput/", "progress/"))  # each tracker's own clock
        },
        {name: measured.window for name, measured in trace.measured.items()},
        str(trace.settings.get("seed", "")),
        (len(trace.series), len(trace.settings)),
        grew or goes_on(trace),
    )


def find(runs: Mapping[Key, Identity]) -> dict[Key, Key]:
    """Return each run that is a copy, and the run that it is a copy of.

    Of several copies the run with the most series and settings is the one that is kept.
    """
    if len({run.trackers for run in runs.values()}) <= 1:
        return {}
    by_opening: dict[tuple[str, bytes], list[Key]] = defaultdict(list)
    for key, run in runs.items():
        for opening in run.openings.items():
            by_opening[opening].append(key)
    groups: dict[Key, set[Key]] = {}  # the runs of each run's training
    for keys in by_opening.values():
        for first, second in combinations(keys, 2):
            if _is_same(runs[first], runs[second]):
                group = groups.get(first, {first}) | groups.get(second, {second})
                groups |= dict.fromkeys(group, group)
    order = {key: position for position, key in enumerate(runs)}
    copies: dict[Key, Key] = {}
    for key, group in groups.items():
        fullest = max(group, key=lambda member: (*runs[member].extent, -order[member]))
        count = sum(len(runs[member].trackers) for member in group)
        # Nobody can say which of two trainings a third log belongs to.
        if key != fullest and count == len(frozenset().union(*(runs[m].trackers for m in group))):
            copies[key] = fullest
    return copies | _find_console_copies(runs, copies)


def traits(run: Identity) -> tuple[str, ...]:
    """Return short texts; a recorded run and another log that share none are not one training.

    A copy shares the opening of an outcome; one that was only printed, rounded or without steps,
    shares their number.
    """
    openings = [f"{name} {digest.hex()}" for name, digest in run.openings.items()]
    if run.trackers not in ({"console"}, {"rlvitals"}):
        return tuple(openings)
    counts = (f"{name} at {len(steps)} steps" for name, (steps, _) in run.outcomes.items())
    return (*openings, *counts)


def _find_console_copies(runs: Mapping[Key, Identity], copies: Mapping[Key, Key]) -> dict[Key, Key]:
    """Return each run that was only printed, and the one run that logged the same in full."""
    originals = {
        printed: {
            copies.get(written, written)
            for written, candidate in runs.items()
            if _is_console_copy(candidate, run)
        }
        for printed, run in runs.items()
        if run.trackers == {"console"}
    }
    return {printed: keys.pop() for printed, keys in originals.items() if len(keys) == 1}


def _is_same(first: Identity, second: Identity) -> bool:
    """Return whether two runs with the same opening of an outcome are one training."""
    if first.trackers & second.trackers or len({first.seed, second.seed} - {""}) > 1:
        return False
    if first.grows and second.grows:
        return all(
            _begins_alike(first.outcomes[name], second.outcomes[name])
            for name in first.outcomes.keys() & second.outcomes.keys()
        )
    shared = {
        name
        for name in first.digests.keys() & second.digests.keys()
        if first.windows.get(name) == second.windows.get(name)
    }
    return all(first.digests[name] == second.digests[name] for name in shared)


def _is_console_copy(written: Identity, printed: Identity) -> bool:
    """Return whether a program printed what it also logged in full.

    Stable-Baselines3 prints three significant digits.
    """
    pairs = [
        (written.outcomes[name], points)
        for name, points in printed.outcomes.items()
        if name in written.outcomes and not _is_other_quantity(name, written, printed)
    ]
    if "console" in written.trackers or not pairs:
        return False
    if not all(
        len(logged[1]) == len(console[1]) and np.allclose(logged[1], console[1], rtol=5e-3, atol=0)
        for logged, console in pairs
    ):
        return False
    if all(np.array_equal(logged[0], console[0]) for logged, console in pairs):
        return True
    # Else rows are counted for lack of a step, and no two trainings share their values. A Hugging
    # Face trainer prints rows to stdout, and the steps to stderr with its progress bar. Two runs
    # that fail share their returns: ten different values are equal by no chance.
    return all((np.diff(console[0]) == 1).all() for _, console in pairs) and any(
        np.unique(console[1]).size >= 10 for _, console in pairs
    )


def _is_other_quantity(name: str, written: Identity, printed: Identity) -> bool:
    """Return whether one run logged each episode, and the other a mean of episodes."""
    return written.windows.get(name) != printed.windows.get(name) and len(
        written.outcomes[name][0]
    ) != len(printed.outcomes[name][0])


def _begins_alike(first: Points, second: Points) -> bool:
    """Return whether the shorter of two series begins the other."""
    count = min(len(first[0]), len(second[0]))
    return np.array_equal(first[0][:count], second[0][:count]) and np.array_equal(
        first[1][:count], second[1][:count]
    )


def _is_of_updates(name: str) -> bool:
    """Return whether no two trainings share a metric's values by chance.

    Those of two seeds differ from the first update on, while failed runs share few returns.
    """
    return name in {
        "optimiser/loss",
        "policy/loss",
        "value/loss",
        "exploration/entropy",
        "optimiser/grad_norm",
        "language/length_mean",
    }


def _points(series: Series) -> Points:
    """Return the steps and finite values, as TensorBoard stores them: in 32 bits."""
    points = series.finite()
    with np.errstate(over="ignore"):
        return points.steps.astype(np.int64), points.values.astype(np.float32)


def _digest(
    steps: NDArray[np.int64], values: NDArray[np.float32] | NDArray[np.int64], count: int
) -> bytes:
    return blake2b(steps[:count].tobytes() + values[:count].tobytes(), digest_size=16).digest()


def _opening_length(values: NDArray[np.float32], min_values: int) -> int:
    """Return the number of points with `min_values` different values, 0 where there are fewer."""
    _, firsts = np.unique(values, return_index=True)
    if len(firsts) < min_values:
        return 0
    return int(np.sort(firsts)[min_values - 1]) + 1
