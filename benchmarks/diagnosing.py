"""Measure the cost of a diagnosis: of one long run, and of a hundred live runs.

From a Trace in memory to a Diagnosis, all rules, with the first step at which each finding could
have been known. Beside it rldoctor and rlwatch over the same numbers, those of the columns that
they know, each in its own environment: see `diagnosing_peers.py`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import diagnosing_peers
import numpy as np

from rlvitals.diagnosis.engine import Diagnosis, diagnose
from rlvitals.metrics import CATALOGUE
from rlvitals.metrics.metric import Metric
from rlvitals.types import Profile, Series, Trace

POINTS, METRICS = 1_000_000, 50
RUNS, LIVE_METRICS, LIVE_POINTS, ROUNDS, NEW_ROWS, EVERY = 100, 100, 2_000, 3, 10, 10.0
AGAIN = 5  # times as many new rows: a tool that looks at every 25th row is asked for its mean
PEERS = [peer for peer in diagnosing_peers.PEERS if peer.name in ("rldoctor", "rlwatch")]
KEYS = {  # of Stable-Baselines3: what both of them know
    "outcome/return": "rollout/ep_rew_mean",
    "exploration/entropy": "train/entropy_loss",
    "policy/approx_kl": "train/approx_kl",
    "policy/clip_fraction": "train/clip_fraction",
    "policy/loss": "train/policy_gradient_loss",
    "value/explained_variance": "train/explained_variance",
    "optimiser/learning_rate": "train/learning_rate",
    "optimiser/grad_norm": "train/grad_norm",
}
TITLES = (
    "| tool | whole, CPU ms | x ours | 10 new rows, CPU ms | x ours |",
    "| --- | --- | --- | --- | --- |",
)


def main() -> list[str]:
    """Judge, time and return the tables' rows."""
    rows = [_long("healthy", broken=False), _long("collapsed", broken=True), _live()]
    print(f"{METRICS} metrics x {POINTS:,} points; {RUNS} live runs x {LIVE_METRICS} metrics")
    print("| run | CPU s | findings |", "| --- | --- | --- |", *rows, sep="\n")
    peer_costs = _beside()
    print(f"\none run, healthy, {LIVE_POINTS:,} rows; {NEW_ROWS} new rows of it", *TITLES, sep="\n")
    print(*peer_costs, sep="\n")
    return [*rows, *peer_costs]


def _long(name: str, *, broken: bool) -> str:
    run = trace(POINTS, METRICS, seed=0, broken=broken)
    cost, diagnosis = _timed(run)
    return f"| {name}, {len(run.series)} x {POINTS:,} | {cost:.2f} | {_said(diagnosis)} |"


def _timed(run: Trace) -> tuple[float, Diagnosis]:
    start_time = time.process_time()
    diagnosis = diagnose(run)
    return time.process_time() - start_time, diagnosis


def _said(diagnosis: Diagnosis) -> str:
    return ", ".join(rule.name for rule, _ in diagnosis.findings) or "none"


def _live() -> str:
    """Judge a hundred growing runs, a third of them broken, once for each ten seconds."""
    runs = [
        trace(LIVE_POINTS + ROUNDS * NEW_ROWS, LIVE_METRICS, seed=n, broken=n % 3 == 0)
        for n in range(RUNS)
    ]
    costs = []
    for grown in _rounds(runs):
        start_time = time.process_time()
        for run in grown:
            diagnose(run)
        costs.append(time.process_time() - start_time)
    worst = max(costs)
    name = f"{RUNS} live runs, a round every {EVERY:g} s"
    return f"| {name} | {worst:.2f} | {worst / EVERY:.0%} of a core |"


def _beside() -> list[str]:
    """Judge one live run by every tool: from its rows in memory, and again after new ones."""
    run = trace(LIVE_POINTS + AGAIN * NEW_ROWS, LIVE_METRICS, seed=1, broken=False)
    peer_run = Trace({name: run[name] for name in KEYS}, {}, profile=run.profile)
    costs = [
        (f"rlvitals, {LIVE_METRICS} metrics", *[_least(run)] * 2),
        (f"rlvitals, {len(KEYS)} metrics", *[_least(peer_run)] * 2),
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rows.json").write_text(json.dumps(_as_rows(peer_run)))
        costs += [cost for peer in PEERS if (cost := _asked(peer, Path(folder))) is not None]
    ours = costs[1]
    return [
        f"| {name} | {1e3 * full_cost:.1f} | {full_cost / ours[1]:.1f} "
        f"| {1e3 * live:.1f} | {live / ours[2]:.1f} |"
        for name, full_cost, live in costs
    ]


def _least(run: Trace) -> float:
    """Return the CPU time of the fastest of some judgements of a run nobody has asked about."""
    last = int(run["outcome/return"].steps[-1])
    return min(_timed(run.until(last))[0] for _ in range(ROUNDS))


def _as_rows(run: Trace) -> list[dict[str, float]]:
    """Write a run as the rows of Stable-Baselines3, which logs minus the entropy."""
    signs = {"exploration/entropy": -1.0}
    columns = {key: signs.get(name, 1.0) * run[name].values for name, key in KEYS.items()}
    columns["time/total_timesteps"] = run["outcome/return"].steps
    return [
        dict(zip(columns, map(float, row), strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def _asked(peer: diagnosing_peers.Peer, folder: Path) -> tuple[str, float, float] | None:
    """Return the peer, its CPU time for the whole run and for as many new rows as we judge by."""
    python = diagnosing_peers.environment(peer)
    if python is None:
        return None
    module, new = f"peers.cost_{peer.name}", str(AGAIN * NEW_ROWS)
    command = [python, "-m", module, folder / "rows.json", folder / "cost.json", new]
    env = {**os.environ, "PYTHONPATH": str(diagnosing_peers.HERE), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, cwd=folder, env=env, capture_output=True)
    cost = json.loads((folder / "cost.json").read_text())
    return f"{peer.name} {cost['version']}", cost["whole"], cost["live"] / AGAIN


def _rounds(runs: list[Trace]) -> Iterator[list[Trace]]:
    for n in range(1, ROUNDS + 1):
        rows = LIVE_POINTS + n * NEW_ROWS
        yield [run.until(int(run["outcome/return"].steps[rows - 1])) for run in runs]


def trace(points: int, metrics: int, *, seed: int, broken: bool) -> Trace:
    """A run of PPO that learns, or one whose policy collapses at 60 % of it."""
    draw = np.random.default_rng(seed)
    t = np.linspace(0, 1, points)
    is_missing = (t > 0.6) & broken

    def noise(size: float) -> np.ndarray:
        return draw.normal(0, size, points)

    rises = np.where(
        is_missing, 0.1, 0.9 - 0.8 * np.exp(-3 * t)
    )  # every other measure of the outcome
    values = {
        "outcome/return": np.where(is_missing, 12.0, 20 + 400 * (1 - np.exp(-3 * t))) + noise(8),
        "outcome/episode_length": 20 + 100 * (1 - np.exp(-3 * t)) + noise(3),
        "policy/approx_kl": np.abs(0.01 + noise(0.003)) * np.where(is_missing, 1e-4, 1.0),
        "policy/clip_fraction": np.abs(0.1 + noise(0.03)),
        "policy/advantage_mean": noise(0.1),
        "policy/loss": noise(0.004) - 0.01,
        "exploration/entropy": np.where(is_missing, 0.001, 0.69 * np.exp(-t))
        + np.abs(noise(0.001)),
        "value/explained_variance": np.minimum(0.9, 2 * t) + noise(0.01),
        "value/loss": 40 * np.exp(-3 * t) + np.abs(noise(2)),
        "optimiser/learning_rate": 3e-4 * (1 - t) + 1e-6,
        "optimiser/grad_norm": np.abs(0.4 + noise(0.1)),
        "throughput/steps_per_second": 1200 + noise(30),
    }
    other_metrics = [m for m in CATALOGUE if not m.family and m.name not in values]
    values |= {
        m.name: _usual(m, rises) + noise(0.02) for m in other_metrics[: metrics - len(values)]
    }
    steps = 64 * np.arange(1, points + 1, dtype=np.int64)
    times = 1.7e9 + 0.5 * np.arange(points)
    series = {name: Series(steps, times, v) for name, v in values.items()}
    return Trace(series, {}, profile=Profile.CONTROL_PPO)


def _usual(metric: Metric, rises: np.ndarray) -> np.ndarray:
    """Return a course [points] that no healthy run would be told off for."""
    low, high = metric.possible.low or 0.0, metric.possible.high
    if metric.kind == "outcome":
        return low + rises * (1.0 if high is None else high - low)
    return np.full(rises.size, 1.0 if high is None else (low + high) / 2)


if __name__ == "__main__":
    sys.exit(not main())
