"""Sliding windows over a cluster's decisions and finished requests."""

from typing import NamedTuple

import numpy as np

from rlvitals.trainers.ppo.cluster.replicas import Bools, Finished, Floats, Ints


class Summary(NamedTuple):
    """Statistics of the windows of B clusters, [B] each; latencies are 0 before the first."""

    latency: Floats  # s, mean of the finished requests
    p90: Floats  # s, percentiles of the same, by nearest rank
    p95: Floats
    p99: Floats
    arrived: Floats  # requests/s
    finished: Floats  # requests/s
    burstiness: Floats  # coefficient of variation of the gaps between requests


class Windows:
    """The last W decisions and the last W finished requests of each of B clusters."""

    def __init__(self, batch: int, length: int) -> None:
        """Begin with empty windows."""
        self.length = length
        self.latencies = np.zeros((batch, length))  # s, of finished requests; 0: none yet
        self.finished = np.zeros(batch, np.int64)  # requests, ever
        self.gaps = np.zeros((batch, length))  # s, between decisions
        self.done = np.zeros((batch, length), np.int64)  # requests finished in each gap
        self.decisions = np.zeros(batch, np.int64)  # ever
        self.recent_gap = np.zeros(batch)  # s, moving average
        self.seen: Summary | None = None

    def clear(self, clusters: Bools) -> None:
        """Forget all of some clusters, [B]."""
        for array in (self.latencies, self.finished, self.gaps, self.done, self.decisions):
            array[clusters] = 0
        self.recent_gap[clusters] = 0
        self.seen = None

    def add(self, finished: Finished, gap: Floats, active: Bools) -> Ints:
        """Add a decision of the active clusters; returns how many requests each finished, [B]."""
        batch = len(gap)
        count = np.bincount(finished.cluster, minlength=batch)
        first = np.cumsum(count) - count  # they stand by cluster
        nth = np.arange(len(finished.cluster)) - first[finished.cluster]
        slots = (self.finished[finished.cluster] + nth) % self.length
        self.latencies[finished.cluster, slots] = finished.latency
        self.finished += count
        rows = np.flatnonzero(active)
        index = rows, self.decisions[rows] % self.length
        self.gaps[index], self.done[index] = gap[rows], count[rows]
        has_previous = self.decisions > 0
        recent_gap = np.where(has_previous, self.recent_gap + 0.2 * (gap - self.recent_gap), gap)
        self.recent_gap = np.where(active, recent_gap, self.recent_gap)
        self.decisions[rows] += 1
        self.seen = None
        return count

    def look(self) -> Summary:
        """Return what the windows say now; looked up again only after something was added."""
        if self.seen is None:
            counts = np.minimum(self.finished, self.length)
            ranked = np.sort(self.latencies, axis=1)  # places that hold none come first
            rows, rank = np.arange(len(counts)), self.length - counts - 1  # nearest rank
            p90, p95, p99 = (
                ranked[rows, rank + np.ceil(q * counts).astype(np.int64)]
                for q in (0.90, 0.95, 0.99)
            )
            decisions = np.minimum(self.decisions, self.length)
            total = self.gaps.sum(axis=1)
            seconds = np.maximum(total, 1e-9)
            mean = total / np.maximum(decisions, 1)
            square = (self.gaps * self.gaps).sum(axis=1) / np.maximum(decisions, 1)
            deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
            self.seen = Summary(
                self.latencies.sum(axis=1) / np.maximum(counts, 1),
                p90,
                p95,
                p99,
                decisions / seconds,
                self.done.sum(axis=1) / seconds,
                deviation / np.maximum(mean, 1e-9),
            )
        return self.seen
