"""Failures and repairs of replicas, and the rerouting of their requests.

A failure or a return takes effect at the next arrival. A replica that fails loses its KV cache. Its
requests are sent again at once, the oldest first, each to the replica with the least outstanding
requests for its speed: their prompts and the tokens generated so far are prefilled there, and their
latency counts from when they first arrived. One that finds every queue full is lost. A replica
returns empty. The last replica of a cluster that is up does not fail.
"""

import numpy as np

from rlvitals.trainers.ppo.cluster.config import FailureConfig
from rlvitals.trainers.ppo.cluster.replicas import (
    NEVER_TICK,
    Bools,
    Floats,
    Ints,
    Replicas,
    least_work,
    route,
)


class Failures:
    """The replicas of B clusters that are up, and the time of each next failure or return.

    Times are drawn from the generator alone: they are the same whatever a scheduler decides.
    """

    def __init__(self, config: FailureConfig, shape: tuple[int, int]) -> None:
        """Begin with all replicas up; `shape` is (B, N)."""
        self.config = config
        self.up = np.ones(shape, np.bool_)
        self.due = np.full(shape, np.inf)  # s, when it fails or returns

    def begin(self, generator: np.random.Generator, clusters: Bools) -> None:
        """Begin anew in some clusters, [B]: all replicas up, at time 0."""
        times = generator.exponential(self.config.mean_time_to_failure, self.up.shape)
        self.up[clusters], self.due[clusters] = True, times[clusters]

    def advance(self, time_s: Floats, generator: np.random.Generator, active: Bools) -> Bools:
        """Run to `now`, [B] in s, in the active clusters; returns which replicas failed, [B, N]."""
        changes = (self.due <= time_s[:, None]) & active[:, None]
        failed = changes & self.up
        if not changes.any():
            return failed
        up = self.up ^ changes
        survivors: Bools = np.any(up, axis=1, keepdims=True)  # else the last ones stay up
        failed = failed & survivors
        self.up = np.where(survivors, up, self.up)
        means = np.where(self.up, self.config.mean_time_to_failure, self.config.mean_time_to_repair)
        self.due = np.where(changes, time_s[:, None] + generator.exponential(means), self.due)
        return failed


def send_again(
    replicas: Replicas, failed: Bools, up: Bools, speeds: Floats, time_s: Floats
) -> tuple[Ints, Ints]:
    """Empty the replicas that failed, [B, N], and route their requests to those that are up.

    Returns how many requests of each cluster were sent again and how many were lost, [B] each.
    """
    resent, lost_counts = np.zeros(len(time_s), np.int64), np.zeros(len(time_s), np.int64)
    for cluster in np.flatnonzero(failed.any(axis=1)):
        requests = [
            request
            for replica in np.flatnonzero(failed[cluster])
            for request in _remove_requests(replicas, int(cluster), int(replica))
        ]
        rows = np.array([cluster])
        for born, prompt, output in sorted(requests):
            room = up & (replicas.size < replicas.queue_prompt.shape[2])
            if not room[cluster].any():
                lost_counts[cluster] += 1
                continue
            targets = least_work(replicas, speeds, room)[rows]
            route(
                replicas, rows, targets, time_s[rows], np.array([prompt]), np.array([output]),
                born=np.array([born]),
            )  # fmt: skip
            resent[cluster] += 1
    return resent, lost_counts


def _remove_requests(
    replicas: Replicas, cluster: int, replica: int
) -> list[tuple[float, int, int]]:
    """Empty one replica; returns arrival, tokens to prefill and tokens to generate of each."""
    index, s = (cluster, replica), replicas
    running = np.flatnonzero(s.ends[index] != NEVER_TICK)
    output = s.ends[index][running] - s.tick[index]
    requests = [
        *zip(s.born[index][running], s.totals[index][running] - output, output, strict=True)
    ]
    if s.todo[index]:
        prompt = s.prefill_total[index] - s.prefill_output[index]
        requests.append((s.prefill_born[index], prompt, s.prefill_output[index]))
    queue = (s.head[index] + np.arange(s.size[index])) % s.queue_prompt.shape[2]
    queued = s.queue_born[index][queue], s.queue_prompt[index][queue], s.queue_output[index][queue]
    requests += zip(*queued, strict=True)
    for array in (s.decoding, s.cached, s.reserved, s.todo, s.head, s.size, s.waiting_tokens,
                  s.waiting_prompts, s.waiting_born):  # fmt: skip
        array[index] = 0
    s.ends[index], s.next_end[index] = NEVER_TICK, NEVER_TICK
    return requests
