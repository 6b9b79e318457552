"""Inputs of the reward of one decision."""

from typing import NamedTuple

import numpy as np

from rlvitals.trainers.ppo.cluster.replicas import Bools, Floats, Ints


class Signals(NamedTuple):
    """B clusters just after a decision and the gap that followed it."""

    throughput: Floats  # requests/s, finished in the last gap times the arrival rate
    steady_throughput: Floats  # requests/s, of the window
    latency: Floats  # s, the requests in the cluster over the arrival rate (Little's law)
    p95: Floats  # s, of the window's finished requests
    rate: Floats  # requests/s that arrive
    chosen: Ints  # the replica that the request went to
    gap: Floats  # between the fullest KV cache and the emptiest, shares of its capacity
    work: Floats  # [B, N] outstanding requests over speed
    queue: Ints  # [B, N] requests that wait
    queue_limit: int
    rejected: Bools
    failed: Bools  # a safety limit ended the episode
    active: Bools  # whether a decision was made at all


def deviation(values: Floats | Ints) -> Floats:
    """Return the standard deviation over the replicas, [B] of [B, N]: numpy's, with less ado."""
    count = values.shape[1]
    off = values - (values.sum(axis=1) / count)[:, None]
    return np.asarray(np.sqrt((off * off).sum(axis=1) / count))
