"""Made runs of a known level, and the recorded ones of the fault benchmark by their seeds."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

import rlvitals
from rlvitals.comparison.grouping import Member
from rlvitals.types import Budget, Lifecycle, Series, Trace

TIER_1 = Path(__file__).resolve().parents[2] / "faults" / "tier-1"


def run(level, seed=0, *, path="", rows=100, end=100_000, metric="outcome/return", **more):
    """A run that climbs from 0 to `level` within its first half and stays there."""
    lifecycle = more.pop("lifecycle", None) or Lifecycle()
    budget = more.pop("budget", None)
    values = level * np.minimum(np.linspace(0, 2, rows), 1.0)
    if "values" in more:
        values = np.asarray(more.pop("values"), dtype=float)
    steps = np.linspace(0, end, len(values)).astype(np.int64)
    series = Series(steps, 1e9 + steps / 100, values)
    trace = Trace(
        {metric: series},
        {},
        settings={"seed": seed, **more},
        lifecycle=lifecycle,
        budget=Budget(budget, "test") if budget else None,
        name=f"{path or 'run'}-{seed}",
    )
    return Member(trace, path)


def runs(path, *levels, **more):
    """Runs of one group, a level each."""
    return [run(level, seed, path=path, **more) for seed, level in enumerate(levels)]


@lru_cache(maxsize=64)
def recorded(task, kind, path, most=99):
    """Runs of the benchmark, by their kind: "healthy", "weight-nan-mid"."""
    lines = (TIER_1 / task / "runs.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    chosen = [one for one in found if one["name"] == f"{kind}-s{one['seed']}"][:most]
    assert chosen
    return tuple(
        Member(
            rlvitals.trace(
                TIER_1 / task / f"{one['name']}.csv.zst",
                settings={"env_id": one["env_id"], "seed": one["seed"]},
            ),
            path,
        )
        for one in chosen
    )
