"""State arrays of the replicas of a batch of clusters, and the routing of requests.

A replica runs iterations one after the other. In each, every request that decodes gains one token,
and the one request that is being prefilled gains up to `chunk` prompt tokens. A waiting request is
taken in when none is being prefilled, the batch has a place, and the KV cache has room for all
of its tokens: none is ever preempted. An iteration takes

    (iteration_cost + prefill_cost * chunk + decode_cost * decoding + cache_cost * cached) / speed

seconds; a request has arrived, or is finished, at the end of the iteration that runs at that time.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.trainers.ppo.cluster.config import ClusterConfig

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NEVER_TICK = np.int64(1 << 60)


class Replicas(NamedTuple):
    """B clusters of N replicas: K places in the batch, Q in the queue. Arrays are [B, N] or more.

    Plain numbers and arrays only, so that compiled loops and array operations share them.
    """

    clock: Floats  # s, the end of the last iteration
    tick: Ints  # iterations so far: each gives every decoding request one token
    decoding: Ints  # requests that decode
    cached: Ints  # tokens in the KV cache
    reserved: Ints  # tokens kept free for the requests that run
    next_end: Ints  # the tick at which the next of them is finished
    todo: Ints  # prompt tokens left of the request being prefilled; 0: there is none
    prefill_output: Ints  # its output tokens
    prefill_total: Ints  # its prompt and output tokens
    prefill_born: Floats  # s, when it arrived
    ends: Ints  # [B, N, K] the tick at which a decoding request is finished; NEVER: a free place
    totals: Ints  # [B, N, K] its prompt and output tokens
    born: Floats  # [B, N, K] s, when it arrived
    head: Ints  # the queue is a ring: the place of the oldest
    size: Ints  # requests that wait
    waiting_tokens: Ints  # their prompt and output tokens
    waiting_prompts: Ints  # their prompt tokens
    waiting_born: Floats  # s, the sum of their arrivals
    queue_prompt: Ints  # [B, N, Q]
    queue_output: Ints  # [B, N, Q]
    queue_born: Floats  # [B, N, Q] s

    @property
    def running(self) -> Ints:
        """Requests in the batch, [B, N]."""
        return self.decoding + (self.todo > 0)

    @property
    def outstanding(self) -> Ints:
        """Requests that wait or run, [B, N]."""
        return self.size + self.running

    @property
    def prompts_left(self) -> Ints:
        """Prompt tokens that are not prefilled yet, [B, N]."""
        return self.todo + self.waiting_prompts


class Costs(NamedTuple):
    """Costs of an iteration and capacities: plain numbers for the loops."""

    iteration: float
    prefill: float
    decode: float
    cache: float
    chunk: int
    max_batch: int
    kv_capacity: int


class Finished(NamedTuple):
    """The requests finished in one advance, by cluster, time and replica: arrays of one length."""

    cluster: Ints
    latency: Floats  # s, from arrival to the last token


def costs(config: ClusterConfig) -> Costs:
    """Return the numbers that the replicas run by."""
    return Costs(
        config.iteration_cost,
        config.prefill_cost,
        config.decode_cost,
        config.cache_cost,
        config.chunk,
        config.max_batch,
        config.kv_capacity,
    )


def idle_replicas(batch: int, config: ClusterConfig) -> Replicas:
    """Return the replicas of `batch` clusters without any request, at time 0."""
    shape = (batch, config.replicas)
    deep = {"ends": config.max_batch, "totals": config.max_batch, "born": config.max_batch}
    deep |= dict.fromkeys(("queue_prompt", "queue_output", "queue_born"), config.queue_limit)
    arrays: dict[str, Any] = {
        name: np.zeros(
            (*shape, deep[name]) if name in deep else shape,
            np.float64 if kind == Floats else np.int64,
        )
        for name, kind in Replicas.__annotations__.items()
    }
    arrays["ends"][:] = NEVER_TICK
    arrays["next_end"][:] = NEVER_TICK
    return Replicas(**arrays)


def clear(replicas: Replicas, clusters: Bools) -> None:
    """Take every request out of some clusters, [B], and set their clocks to 0."""
    for array in replicas:
        array[clusters] = 0
    replicas.ends[clusters] = NEVER_TICK
    replicas.next_end[clusters] = NEVER_TICK


def least_work(replicas: Replicas, speeds: Floats, usable: Bools) -> Ints:
    """Return the usable replica, [B, N], with the least outstanding requests for its speed, [B].

    The request to route is counted.
    """
    work = (replicas.outstanding + 1) / speeds
    return np.asarray(np.where(usable, work, np.inf).argmin(axis=1))


def route(  # noqa: PLR0913, PLR0917 - a request, and where it goes
    replicas: Replicas,
    clusters: Ints,
    targets: Ints,
    time_s: Floats,
    prompt: Ints,
    output: Ints,
    *,
    born: Floats | None = None,
) -> Bools:
    """Put one request into the queue of the chosen replica of each of some clusters.

    All arguments have one length; `born` is when the requests arrived, in s, where not `now`.
    Returns which were refused, because the queue is full.
    """
    limit = replicas.queue_prompt.shape[2]
    size = replicas.size[clusters, targets]
    refused: Bools = size >= limit
    accepted = ~refused
    index = clusters[accepted], targets[accepted]
    born = (time_s if born is None else born)[accepted]
    time_s, prompt, output, size = (
        time_s[accepted],
        prompt[accepted],
        output[accepted],
        size[accepted],
    )
    idle = replicas.outstanding[index] == 0
    clock = replicas.clock[index]
    replicas.clock[index] = np.where(idle, np.maximum(clock, time_s), clock)
    slot = (*index, (replicas.head[index] + size) % limit)
    replicas.queue_prompt[slot] = prompt
    replicas.queue_output[slot] = output
    replicas.queue_born[slot] = born
    replicas.size[index] += 1
    replicas.waiting_tokens[index] += prompt + output
    replicas.waiting_prompts[index] += prompt
    replicas.waiting_born[index] += born
    return refused
