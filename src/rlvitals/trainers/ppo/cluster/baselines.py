"""Baseline schedulers. None chooses a replica that is down."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.replicas import Floats, Ints, least_work
from rlvitals.trainers.ppo.cluster.simulator import Cluster

# From the observations [B, D] and the clusters themselves to a replica for each, [B].
Policy = Callable[[NDArray[np.float32], Cluster], Ints]


def random(seed: int = 0) -> Policy:
    """Any replica, all alike; where it is down, the next."""
    generator = np.random.default_rng(seed)

    def choose(_: NDArray[np.float32], cluster: Cluster) -> Ints:
        return _nth_up(cluster, generator.integers(0, cluster.config.replicas, cluster.batch))

    return choose


def round_robin(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Each replica in turn; the next one if it is down."""
    return _nth_up(cluster, cluster.age % cluster.config.replicas)


def _nth_up(cluster: Cluster, n: Ints) -> Ints:
    """Return the n-th replica of each cluster, [B]; where it is down, the next that is up."""
    order = (n[:, None] + np.arange(cluster.config.replicas)) % cluster.config.replicas
    first = np.take_along_axis(cluster.up, order, axis=1).argmax(axis=1)
    return np.asarray((n + first) % cluster.config.replicas)


def lor(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding requests."""
    return _least_up(cluster, cluster.replicas.outstanding)


def lor_speed(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding requests, with this one, for the replica's speed."""
    return least_work(cluster.replicas, cluster.speeds, cluster.up)


def tokens_speed(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding tokens for the replica's speed: of all prompts and answers accepted.

    It knows how long every answer will be, which no router does: as good as counting tokens gets.
    """
    replicas = cluster.replicas
    running = (replicas.reserved - replicas.cached) + replicas.waiting_tokens
    mine = (cluster.prompt + cluster.output)[:, None]
    return _least_up(cluster, (running + mine) / cluster.speeds)


def _least_up(cluster: Cluster, cost: Floats | Ints) -> Ints:
    """Return the replica with the least cost, [B, N], of those that are up."""
    return np.asarray(np.where(cluster.up, cost, np.inf).argmin(axis=1))


def baselines(seed: int = 0) -> dict[str, Policy]:
    """Return the baselines by the names that tables use, the weakest first."""
    return {
        "random": random(seed),
        "round_robin": round_robin,
        "lor": lor,
        "lor/speed": lor_speed,
        "tokens/speed": tokens_speed,
    }
