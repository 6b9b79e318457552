"""Schedulers that do not learn: what a policy must beat."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.replicas import Ints
from rlvitals.trainers.ppo.cluster.simulator import Cluster

# From the observations [B, D] and the clusters themselves to a replica for each, [B].
Policy = Callable[[NDArray[np.float32], Cluster], Ints]


def random(seed: int = 0) -> Policy:
    """Any replica, all alike."""
    generator = np.random.default_rng(seed)

    def choose(_: NDArray[np.float32], cluster: Cluster) -> Ints:
        return generator.integers(0, cluster.config.replicas, cluster.batch)

    return choose


def round_robin(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """One replica after the other."""
    return np.asarray(cluster.age % cluster.config.replicas)


def lor(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding requests."""
    return np.asarray(cluster.replicas.outstanding.argmin(axis=1))


def lor_speed(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding requests, with this one, for the replica's speed."""
    return np.asarray(((cluster.replicas.outstanding + 1) / cluster.speeds).argmin(axis=1))


def tokens_speed(_: NDArray[np.float32], cluster: Cluster) -> Ints:
    """Least outstanding tokens for the replica's speed: of all prompts and answers accepted.

    It knows how long every answer will be, which no router does: as good as counting tokens gets.
    """
    replicas = cluster.replicas
    running = (replicas.reserved - replicas.cached) + replicas.waiting_tokens
    mine = (cluster.prompt + cluster.output)[:, None]
    return np.asarray(((running + mine) / cluster.speeds).argmin(axis=1))


def baselines(seed: int = 0) -> dict[str, Policy]:
    """Return the baselines by the names that tables use, the weakest first."""
    return {
        "random": random(seed),
        "round_robin": round_robin,
        "lor": lor,
        "lor/speed": lor_speed,
        "tokens/speed": tokens_speed,
    }
