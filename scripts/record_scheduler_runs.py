"""Train a PPO request scheduler on a small simulated serving cluster and keep its CSV log.

    python scripts/record_scheduler_runs.py --list
    python scripts/record_scheduler_runs.py OUT healthy-s0 collapsed-onto-one-replica
    python scripts/record_scheduler_runs.py OUT --all          # also writes OUT/SUMMARY.md

Each run leaves `OUT/<name>/metrics/ppo_metrics_<date>.csv` and `settings.json`. One CSV holds three
kinds of rows, told apart by `data_type`: `training` (one scheduling decision), `ppo_update` and
`rollout`. Column names are those of the PPO scheduler stack whose logs have this shape.

To add a run, add one entry to `RUNS`. The clock is the simulated one, so that a recording is the
same to the last digit each time. Sixteen clusters are simulated side by side to learn from; the
`training` rows are the decisions of the first. Nothing is injected into the log: where a run is
broken, its settings or its simulated cluster are.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from scheduler_run import Run
from serving_cluster import REPLICAS, Cluster, Thermostat
from torch import nn
from torch.distributions import Categorical

START = datetime(2026, 1, 5, 9, 0, 0)  # noqa: DTZ001  (the log's own format has no zone)
CLUSTERS = 16
WARM_UP = 256  # decisions at random before the log begins, so that the queues are in their stride

# fmt: off
RUNS: tuple[Run, ...] = (
    Run("healthy-s0"),
    Run("healthy-s1", seed=1),
    *(Run(f"healthy-s{seed}", seed=seed) for seed in range(2, 15)),
    # The reward pays for cache hits, so the policy learns to send all to one replica.
    Run("collapsed-onto-one-replica-s0", "replica-collapse", lr=8e-4, balance_weight=0.0,
        absolute_weight=0.1, affinity_bonus=1.0),
    Run("collapsed-onto-one-replica-s1", "replica-collapse", seed=1, lr=1.5e-4, balance_weight=0.0,
        absolute_weight=0.1, affinity_bonus=1.0),
    # The entropy term has the wrong sign: certainty is rewarded, whatever it is certain of.
    Run("entropy-sign-wrong", "entropy-coef-negative", entropy_coef=-0.6),
    # Every rise of latency is punished, no fall rewarded: the delta part eats the absolute one.
    Run("delta-over-penalised", "reward-breakdown", qps=3.4, delta_weight=1.0,
        delta_latency_weight=80.0, punishes_rises_only=True, latency_weight=0.05),
    # The latency probe dies at 60 % and reads 0: reward jumps, the cluster is as slow as before.
    Run("latency-probe-lost", "reward-spike", latency_lost_after=0.6, latency_weight=1.0),
    # Imbalance costs nothing, and neither does latency.
    Run("balance-free", "balance-penalty-high", balance_weight=0.0, latency_weight=0.0),
    Run("no-learning", "lr-1e-7", lr=1e-7),
    Run("replica-lost", "world-change", replica_lost_after=0.5),
    Run("temperature-too-high", "temperature-out-of-range", temperature_base=2.6,
        temperature_max=3.0),
    Run("pulses-while-rising", "pulse-without-stagnation", pulse_interval=24,
        pulse_magnitude=1.5),
    # Updates far too large: the first still learns, the second no longer does.
    Run("kl-above-target", "lr-x25", lr=7.5e-2, epochs=16),
    Run("kl-far-above-target", "lr-x100", lr=0.3, epochs=12),
    # Tiny updates from few samples: k1 is noise around 0, and its negative half is clamped to 0.
    Run("kl-clamped-at-zero", "kl-estimator-clamped", lr=5e-4, epochs=1, minibatch_size=128),
)
# fmt: on


# --------------------------------------------------------------------------- the learner


class Policy(nn.Module):
    """Queue lengths (n, 4) to logits (n, 4) and value (n,)."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(REPLICAS, 32), nn.Tanh(), nn.Linear(32, REPLICAS))
        self.critic = nn.Sequential(nn.Linear(REPLICAS, 32), nn.Tanh(), nn.Linear(32, 1))
        nn.init.orthogonal_(self.actor[2].weight, 0.01)

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.actor(3.0 * obs), self.critic(3.0 * obs).squeeze(-1)


def advantages_of(
    run: Run, rewards: np.ndarray, values: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """GAE over (T, clusters); the cluster never ends, so nothing is terminal."""
    advantage, out = np.zeros_like(last), np.zeros_like(rewards)
    following = [*values[1:], last]
    for t in reversed(range(len(rewards))):
        error = rewards[t] + run.gamma * following[t] - values[t]
        advantage = error + run.gamma * run.gae_lambda * advantage
        out[t] = advantage
    return out


def update(
    run: Run, policy: Policy, optimiser: torch.optim.Optimizer, batch: dict[str, torch.Tensor]
) -> dict[str, float]:
    """Clipped PPO over one rollout; the answer is the mean of each statistic over minibatches."""
    stats: list[dict[str, float]] = []
    size = len(batch["action"])
    for _ in range(run.epochs):
        for rows in torch.randperm(size).split(run.minibatch_size):
            minibatch = {name: column[rows] for name, column in batch.items()}
            logits, value = policy(minibatch["seen"])
            distribution = Categorical(logits=logits / minibatch["temperature"][:, None])
            log_ratio = distribution.log_prob(minibatch["action"]) - minibatch["log_probability"]
            ratio, advantage = log_ratio.exp(), minibatch["advantage"]
            clipped = ratio.clamp(1 - run.clip_ratio, 1 + run.clip_ratio)
            pi_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            vf_loss = 0.5 * (value - minibatch["return"]).square().mean()
            entropy = distribution.entropy().mean()
            optimiser.zero_grad()
            (pi_loss + run.value_coef * vf_loss - run.entropy_coef * entropy).backward()
            norm = nn.utils.clip_grad_norm_(policy.parameters(), run.max_grad_norm)
            optimiser.step()
            residual, spread = (minibatch["return"] - value).var(), minibatch["return"].var()
            numbers = {
                "pi_loss": pi_loss,
                "vf_loss": vf_loss,
                "entropy": entropy,
                "pg_grad_norm": norm,
                "approx_kl": (-log_ratio).mean().clamp(min=0.0),  # as that stack reports it
                "clipfrac": ((ratio - 1).abs() > run.clip_ratio).float().mean(),
                "explained_var": 1 - residual / (spread + 1e-8),
            }
            stats.append(
                {name: float(torch.as_tensor(number).detach()) for name, number in numbers.items()}
            )
    return {name: float(np.mean([s[name] for s in stats])) for name in stats[0]}


# --------------------------------------------------------------------------- recording


def train(run: Run) -> list[dict[str, Any]]:
    """All rows of the log, in the order written."""
    torch.manual_seed(run.seed)
    rng = np.random.default_rng(run.seed)
    clusters = [Cluster(run, child) for child in rng.spawn(CLUSTERS)]
    for _ in range(WARM_UP):
        for cluster in clusters:
            cluster.route(int(rng.integers(REPLICAS)), 0.0)
    thermostats = [Thermostat(run) for _ in clusters]
    policy = Policy()
    optimiser = torch.optim.Adam(policy.parameters(), run.lr, eps=1e-5)
    rows: list[dict[str, Any]] = []
    memory: list[dict[str, torch.Tensor | np.ndarray]] = []
    for step in range(run.decisions):
        obs = torch.from_numpy(np.stack([cluster.observe() for cluster in clusters]))
        heat = [t.next(c.latency) for t, c in zip(thermostats, clusters, strict=True)]
        temperature = torch.tensor([float(h["temp_current_temperature"]) for h in heat])
        with torch.no_grad():
            logits, value = policy(obs)
            distribution = Categorical(logits=logits / temperature[:, None])
            action = distribution.sample()
            log_probability = distribution.log_prob(action)
        progress = step / run.decisions
        stats = [c.route(int(a), progress) for c, a in zip(clusters, action, strict=True)]
        rewards = np.array([t["reward"] for t in stats])
        memory.append(
            {
                "seen": obs,
                "temperature": temperature,
                "action": action,
                "value": value,
                "log_probability": log_probability,
                "reward": rewards,
            }
        )
        clock = stamp(clusters[0].now)
        replica = int(action[0])
        rows.append(
            {
                "data_type": "training",
                "step": step,
                **clock,
                "mode": "hybrid",
                **stats[0],
                **heat[0],
                "action": replica,
                "replica_id": replica,
                "selected_replica": replica,
                "log_probability": float(log_probability[0]),
                "value_estimate": float(value[0]),
                "temperature": float(temperature[0]),
                "temp_base_temperature": run.temperature_base,
            }
        )
        if len(memory) == run.rollout_length:
            rows += learn(run, policy, optimiser, memory, clusters, {"step": step, **clock})
            memory = []
    return rows


def stamp(seconds: float) -> dict[str, Any]:
    moment = START + timedelta(seconds=seconds)
    return {
        "timestamp": round(moment.timestamp(), 3),
        "datetime": moment.isoformat("T", "milliseconds"),
    }


def learn(  # noqa: PLR0913, PLR0917 - the parts of one training loop
    run: Run,
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    memory: list[dict[str, Any]],
    clusters: list[Cluster],
    when: dict[str, Any],
) -> list[dict[str, Any]]:
    """Update the policy from one rollout; its two rows of the log."""
    names = ("seen", "temperature", "action", "log_probability")
    batch = {name: torch.cat([m[name] for m in memory]) for name in names}
    rewards = np.stack([m["reward"] for m in memory])
    values = np.stack([m["value"].numpy() for m in memory])
    with torch.no_grad():
        obs = torch.from_numpy(np.stack([cluster.observe() for cluster in clusters]))
        last = policy(obs)[1].numpy()
    advantage = advantages_of(run, rewards, values, last)
    returns = advantage + values
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    batch["advantage"] = torch.from_numpy(scaled.astype(np.float32).ravel())
    batch["return"] = torch.from_numpy(returns.astype(np.float32).ravel())
    stats = update(run, policy, optimiser, batch)
    counts = np.bincount(batch["action"].numpy(), minlength=REPLICAS)
    return [
        {
            "data_type": "ppo_update",
            **when,
            **stats,
            "lr": run.lr,
            "buffer_size": rewards.size,
            "rollout_length": run.rollout_length,
        },
        {
            "data_type": "rollout",
            **when,
            "buffer_progress": 1.0,
            "reward_mean": rewards.mean(),
            "reward_std": rewards.std(),
            "reward_min": rewards.min(),
            "reward_max": rewards.max(),
            "value_mean": values.mean(),
            "return_mean": returns.mean(),
            "advantage_std": advantage.std(),
            **{f"action_replica_{i}": int(count) for i, count in enumerate(counts)},
        },
    ]


def short(value: Any) -> Any:
    if isinstance(value, str | int):
        return value
    return f"{value:.16g}" if value > 1e9 else f"{value:.6g}"


def record(run: Run, out: Path) -> str:
    torch.set_num_threads(1)
    folder = out / run.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "metrics").mkdir(parents=True)
    rows = train(run)
    header = sorted({name for row in rows for name in row})
    with (folder / "metrics" / f"ppo_metrics_{START:%Y%m%d_%H%M%S}.csv").open("w", newline="") as f:
        writer = csv.DictWriter(f, header, restval="")
        writer.writeheader()
        writer.writerows({name: short(value) for name, value in row.items()} for row in rows)
    settings = {
        "algorithm": "PPO",
        "num_replicas": REPLICAS,
        "num_clusters": CLUSTERS,
        **{name: value for name, value in asdict(run).items() if name not in ("name", "fault")},
        "fault": run.fault,
        "injected": [],
        "made_by": f"scripts/record_scheduler_runs.py {run.name}",
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")
    return f"{run.name}: {len(rows)} rows"


# --------------------------------------------------------------------------- the summary

# fmt: off
COLUMNS = (
    ("rollout", "reward_mean"), ("training", "throughput"), ("training", "latency"),
    ("training", "balance_penalty"), ("training", "absolute_score"), ("training", "delta_score"),
    ("training", "temperature"), ("ppo_update", "entropy"), ("ppo_update", "approx_kl"),
    ("ppo_update", "clipfrac"), ("ppo_update", "explained_var"), ("ppo_update", "pg_grad_norm"),
)
# fmt: on


def summarise(out: Path) -> None:
    lines = [
        "# Recorded scheduler runs",
        "",
        "Means over the fifths of each run; `top share`: the busiest replica's share of actions.",
        "",
        "| run | " + " | ".join(name for _, name in COLUMNS) + " | KL = 0 | top share | kB |",
        "|" + "---|" * (len(COLUMNS) + 4),
    ]
    for file in sorted(out.glob("*/metrics/*.csv")):
        with file.open() as stream:
            segment = list(csv.DictReader(stream))
        cells = []
        for kind, name in COLUMNS:
            values = np.array([float(r[name]) for r in segment if r["data_type"] == kind])
            cells.append(" ".join(f"{segment.mean():.2g}" for segment in np.array_split(values, 5)))
        kl = [float(r["approx_kl"]) for r in segment if r["data_type"] == "ppo_update"]
        actions = np.array([int(r["action"]) for r in segment if r["data_type"] == "training"])
        top = " ".join(
            f"{np.bincount(segment).max() / len(segment):.2f}"
            for segment in np.array_split(actions, 5)
        )
        cells += [f"{sum(k == 0 for k in kl)}/{len(kl)}", top, f"{file.stat().st_size / 1e3:.0f}"]
        lines.append(f"| {file.parents[1].name} | " + " | ".join(cells) + " |")
    (out / "SUMMARY.md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, help="folder that receives one folder per run")
    parser.add_argument("names", nargs="*", help="runs to record")
    parser.add_argument("--all", action="store_true", help="record every run of the table")
    parser.add_argument("--list", action="store_true", help="print the table and stop")
    args = parser.parse_args()
    if args.list:
        for run in RUNS:
            print(f"{run.name:32} {run.decisions:5} decisions  {run.fault or ''}")
        return 0
    unknown = sorted(set(args.names) - {run.name for run in RUNS})
    if args.out is None or unknown or not (args.names or args.all):
        parser.error(
            f"no such run: {', '.join(unknown)}" if unknown else "say OUT and NAME or --all"
        )
    for run in RUNS:
        if args.all or run.name in args.names:
            print(record(run, args.out), flush=True)
    summarise(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
