"""How good a scheduler is: end-to-end latency on arrivals that no training saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvitals.trainers.ppo.cluster.baselines import Policy
from rlvitals.trainers.ppo.cluster.config import ClusterConfig, CurriculumConfig, SafetyConfig
from rlvitals.trainers.ppo.cluster.simulator import Cluster

HELD_OUT = 0x5EED  # keeps these streams apart from those of a training with the same seed
WARM_UP = 0.25  # share of the decisions before those that count: clusters begin idle


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What requests met under one scheduler: seconds from arrival to the last token."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    throughput: float  # requests/s finished by one cluster
    finished: int
    rejected: int


def evaluate(
    policy: Policy,
    config: ClusterConfig | None = None,
    *,
    seed: int = 0,
    envs: int = 32,
    steps: int = 1200,
) -> Evaluation:
    """Run a policy on `envs` clusters for `steps` decisions each; the first quarter warms up.

    All policies meet the same requests for the same seed: nothing is drawn from what they do.
    There is no horizon, no curriculum and no end at a latency; a safety limit on queues holds.
    """
    config = config or ClusterConfig()
    safety = SafetyConfig(queue_limit=config.safety.queue_limit)
    config = replace(config, horizon=2**20, curriculum=CurriculumConfig(), safety=safety)
    cluster = Cluster(config, envs)
    generator = np.random.default_rng([HELD_OUT, seed])
    cluster.reset(generator)
    warm = int(WARM_UP * steps)
    latencies, rejected, began = [], 0, cluster.now.copy()
    for step in range(steps):
        outcome = cluster.step(policy(cluster.observe(), cluster), generator)
        if step == warm - 1:
            began = cluster.now.copy()
        if step >= warm:
            latencies.append(cluster.finished.latency)
            rejected += int(outcome.info["rejected"].sum())
    found = np.concatenate(latencies)
    p50, p90, p95, p99 = np.percentile(found, (50, 90, 95, 99)) if len(found) else [np.nan] * 4
    return Evaluation(
        mean=float(found.mean()) if len(found) else np.nan,
        p50=float(p50),
        p90=float(p90),
        p95=float(p95),
        p99=float(p99),
        throughput=float(len(found) / (cluster.now - began).sum()),
        finished=len(found),
        rejected=rejected,
    )


def evaluate_all(
    policies: Mapping[str, Policy],
    config: ClusterConfig | None = None,
    *,
    seeds: Sequence[int] = (0,),
    envs: int = 32,
    steps: int = 1200,
) -> dict[str, tuple[Evaluation, ...]]:
    """Evaluate each policy with each seed: one evaluation a seed, in their order."""
    return {
        name: tuple(evaluate(policy, config, seed=seed, envs=envs, steps=steps) for seed in seeds)
        for name, policy in policies.items()
    }


def table(found: Mapping[str, Sequence[Evaluation]], *, against: str = "lor") -> str:
    """Return the evaluations as lines of text, means over the seeds, the best mean last.

    The last columns say how much lower mean and p95 are than those of `against`.
    """
    rows = {name: _means(each) for name, each in found.items()}
    base = rows.get(against)
    width = max(len("scheduler"), *map(len, rows))
    head = f"{'scheduler':{width}}    mean     p50     p90     p95     p99   req/s  refused"
    lines = [head + (f"  mean, p95 against {against}" if base else "")]
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["mean"]):
        numbers = "".join(f"{row[key]:8.2f}" for key in ("mean", "p50", "p90", "p95", "p99"))
        share = row["rejected"] / max(row["rejected"] + row["finished"], 1)
        line = f"{name:{width}}{numbers}{row['throughput']:8.2f}{share:9.2%}"
        if base and name != against:
            parts = (row[key] / base[key] - 1 for key in ("mean", "p95"))
            line += "".join(f"{part:+9.1%}" for part in parts)
        lines.append(line)
    return "\n".join(lines)


def _means(each: Sequence[Evaluation]) -> dict[str, float]:
    names = Evaluation.__slots__
    return {name: float(np.mean([getattr(one, name) for one in each])) for name in names}
