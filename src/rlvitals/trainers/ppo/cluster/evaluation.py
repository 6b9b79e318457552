"""Evaluate schedulers: end-to-end latency on held-out arrivals."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from rlvitals.trainers.ppo.cluster.baselines import Policy
from rlvitals.trainers.ppo.cluster.config import ClusterConfig, CurriculumConfig, SafetyConfig
from rlvitals.trainers.ppo.cluster.simulator import Cluster

EVALUATION_STREAM = 0x5EED  # keeps these streams apart from those of a training with the same seed
# 97.5 % points of Student's t for 1 to 9 degrees of freedom; for more the last one is too wide.
STUDENT_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Latency of requests under a scheduler: seconds from arrival to the last token."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    throughput: float  # requests/s finished by one cluster
    finished: int
    rejected: int
    reward: float  # of a decision


@dataclass(frozen=True, slots=True)
class Busy:
    """Clusters in the middle of their work, and what will arrive: evaluations begin there."""

    state: Mapping[str, Any]
    generator: np.random.Generator


def busy(
    policy: Policy, config: ClusterConfig, *, seed: int = 0, envs: int = 32, steps: int = 1024
) -> Busy:
    """Let a policy decide for idle clusters until they are as busy as it keeps them."""
    cluster, generator = _make_clusters(config, envs, seed)
    for _ in range(steps):
        cluster.step(policy(cluster.observe(), cluster), generator)
    return Busy(cluster.state_dict(), generator)


def _make_clusters(
    config: ClusterConfig, envs: int, seed: int, begin: Busy | None = None
) -> tuple[Cluster, np.random.Generator]:
    safety = SafetyConfig(queue_limit=config.safety.queue_limit)
    endless = replace(config, horizon=2**20, curriculum=CurriculumConfig(), safety=safety)
    cluster = Cluster(endless, envs)
    if begin is not None:
        cluster.load_state_dict(dict(begin.state))
        return cluster, copy.deepcopy(begin.generator)
    generator = np.random.default_rng([EVALUATION_STREAM, seed])
    cluster.reset(generator)
    return cluster, generator


def evaluate(  # noqa: PLR0913 - who decides, for what, and for how long
    policy: Policy,
    config: ClusterConfig | None = None,
    *,
    seed: int = 0,
    envs: int = 32,
    steps: int = 1200,
    begin: Busy | None = None,
) -> Evaluation:
    """Run a policy on `envs` clusters for `steps` decisions each; the first quarter warms up.

    They begin idle, or where as many of this config left off: then `seed` plays no part.
    All policies meet the same requests for the same seed: nothing is drawn from what they do.
    There is no horizon, no curriculum and no end at a latency; a safety limit on queues holds.
    """
    cluster, generator = _make_clusters(config or ClusterConfig(), envs, seed, begin)
    warm = int(0.25 * steps)  # clusters begin idle
    refusals = ("rejected",) if cluster.failures is None else ("rejected", "lost")
    latencies, rejected, earned, start_s = [], 0, 0.0, cluster.now.copy()
    for step in range(steps):
        outcome = cluster.step(policy(cluster.observe(), cluster), generator)
        if step == warm - 1:
            start_s = cluster.now.copy()
        if step >= warm:
            latencies.append(cluster.finished.latency)
            rejected += sum(int(outcome.info[name].sum()) for name in refusals)
            earned += float(outcome.reward.sum())
    times = np.concatenate(latencies)
    p50, p90, p95, p99 = np.percentile(times, (50, 90, 95, 99)) if len(times) else [np.nan] * 4
    return Evaluation(
        mean=float(times.mean()) if len(times) else np.nan,
        p50=float(p50),
        p90=float(p90),
        p95=float(p95),
        p99=float(p99),
        throughput=float(len(times) / (cluster.now - start_s).sum()),
        finished=len(times),
        rejected=rejected,
        reward=earned / (envs * (steps - warm)),
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


class Lead(NamedTuple):
    """The relative latency of two schedulers: below 0, the first is faster."""

    mean: float
    low: float  # the 95 % interval of Student's t over the seeds; NaN for a single one
    high: float


def lead(mine: Sequence[Evaluation], theirs: Sequence[Evaluation], metric: str = "mean") -> Lead:
    """Compare two schedulers seed by seed: both met the same requests for each."""
    pairs = zip(mine, theirs, strict=True)
    shares = np.array(
        [getattr(first, metric) / getattr(second, metric) - 1 for first, second in pairs]
    )
    mean, count = float(shares.mean()), len(shares)
    if count == 1:
        return Lead(mean, nan, nan)
    half = (
        STUDENT_T_975[min(count - 1, len(STUDENT_T_975)) - 1]
        * float(shares.std(ddof=1))
        / count**0.5
    )
    return Lead(mean, mean - half, mean + half)


def sentence(results: Mapping[str, Sequence[Evaluation]], name: str = "ppo") -> str:
    """Return one sentence: a scheduler's mean and p95 against the best of the others in each."""
    rivals = {rival: each for rival, each in results.items() if rival != name}
    mine, count = results[name], len(results[name])
    streams = f"{count} stream{'s' if count > 1 else ''} of held-out arrivals"
    clauses = []
    for metric, label in (("mean", "mean latency"), ("p95", "p95 latency")):
        text = f"a {label} of {_mean(mine, metric):.2f} s"
        if rivals:
            best = min(rivals, key=lambda other: _mean(rivals[other], metric))
            text += f", {_compare(lead(mine, rivals[best], metric), best)}"
        clauses.append(text)
    refused = _refusal_share(mine)
    end = f"; it refuses {refused:.1%} of the requests" if refused else ""
    best_of = f" (each time the best of {len(rivals)} other schedulers)" if rivals else ""
    return f"On {streams}, {name} has {', and '.join(clauses)}{best_of}{end}."


def _compare(gap: Lead, rival: str) -> str:
    side = "below" if gap.mean < 0 else "above"
    if isnan(gap.low):
        return f"{abs(gap.mean):.1%} {side} that of {rival}"
    interval = f"95 % interval {gap.low:+.1%} to {gap.high:+.1%}"
    if gap.low < 0 < gap.high:
        return f"not distinguishable from that of {rival} ({gap.mean:+.1%}, {interval})"
    return f"{abs(gap.mean):.1%} {side} that of {rival} ({interval})"


def _refusal_share(each: Sequence[Evaluation]) -> float:
    """Return the share of the requests that were refused."""
    refused = _mean(each, "rejected")
    return refused / max(refused + _mean(each, "finished"), 1)


def table(results: Mapping[str, Sequence[Evaluation]], *, against: str = "lor") -> str:
    """Return the evaluations as lines of text, means over the seeds, the best mean last.

    The last columns say how far mean and p95 are from those of `against`, with the 95 % interval.
    """
    width = max(len("scheduler"), *map(len, results))
    head = f"{'scheduler':{width}}   mean    p50    p90    p95    p99  req/s refused"
    lines = [head + (f"   mean and p95 against {against}" if against in results else "")]
    for name in sorted(results, key=lambda name: -_mean(results[name], "mean")):
        each = results[name]
        numbers = "".join(
            f"{_mean(each, key):7.2f}" for key in ("mean", "p50", "p90", "p95", "p99", "throughput")
        )
        line = f"{name:{width}}{numbers}{_refusal_share(each):8.2%}"
        if against in results and name != against:
            line += "".join(_cell(lead(each, results[against], key)) for key in ("mean", "p95"))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _mean(each: Sequence[Evaluation], metric: str) -> float:
    return float(np.mean([getattr(evaluation, metric) for evaluation in each]))


def _cell(gap: Lead) -> str:
    half = "" if isnan(gap.low) else f" ±{gap.high - gap.mean:.1%}"
    return f"{gap.mean:+8.1%}{half:7}"
