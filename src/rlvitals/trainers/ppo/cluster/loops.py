"""Advance the replicas with compiled loops: the same operations in the order of `arrays.py`.

No fast mathematics: the results are bit for bit those of the oracle.
"""

from math import ceil, sqrt

import numpy as np
from numba import njit

from rlvitals.trainers.ppo.cluster.arrays import sort_finished
from rlvitals.trainers.ppo.cluster.replicas import (
    NEVER_TICK,
    Costs,
    Finished,
    Floats,
    Ints,
    Replicas,
)


def advance(replicas: Replicas, costs: Costs, until: Floats, speeds: Floats) -> Finished:
    """Run every replica until its clock has reached `until`, [B] in s, or it has no work.

    `speeds` is [B, N]. The arrays of `replicas` change in place.
    """
    capacity = int(replicas.outstanding.sum())
    replica, time_s, latency = np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
    n = _advance(replicas, costs, until, speeds, replica, time_s, latency)
    return sort_finished([(replica[:n], time_s[:n], latency[:n])], speeds.shape[1])


@njit(cache=True)
def _advance(
    s: Replicas,
    costs: Costs,
    until: Floats,
    speeds: Floats,
    replica: Ints,
    time_s: Floats,
    latency: Floats,
) -> int:
    batch, count = speeds.shape
    n = 0
    for b in range(batch):
        for r in range(count):
            while s.clock[b, r] < until[b] and s.size[b, r] + s.decoding[b, r] + s.todo[b, r] > 0:
                _admit(s, costs, b, r)
                prefilled = _iterate(s, costs, b, r, until[b], speeds[b, r])
                if s.tick[b, r] == s.next_end[b, r]:
                    n = _finish(s, b, r, replica, time_s, latency, n)
                if prefilled:
                    _begin_decoding(s, b, r)
    return n


@njit(cache=True)
def _admit(s: Replicas, costs: Costs, b: int, r: int) -> None:
    if s.todo[b, r] > 0 or s.size[b, r] == 0 or s.decoding[b, r] >= costs.max_batch:
        return
    h = s.head[b, r]
    prompt, output, born = s.queue_prompt[b, r, h], s.queue_output[b, r, h], s.queue_born[b, r, h]
    total = prompt + output
    if s.reserved[b, r] + total > costs.kv_capacity:
        return
    s.todo[b, r] = prompt
    s.prefill_output[b, r] = output
    s.prefill_total[b, r] = total
    s.prefill_born[b, r] = born
    s.reserved[b, r] += total
    s.head[b, r] = (h + 1) % s.queue_prompt.shape[2]
    s.size[b, r] -= 1
    s.waiting_tokens[b, r] -= total
    s.waiting_prompts[b, r] -= prompt
    s.waiting_born[b, r] = 0.0 if s.size[b, r] == 0 else s.waiting_born[b, r] - born


@njit(cache=True)
def _iterate(s: Replicas, costs: Costs, b: int, r: int, limit: float, speed: float) -> bool:
    """Run one iteration or many alike; returns whether a prompt is now prefilled."""
    todo, decoding, cached = s.todo[b, r], s.decoding[b, r], s.cached[b, r]
    chunk = min(todo, costs.chunk)
    work = costs.iteration + costs.prefill * chunk + costs.decode * decoding + costs.cache * cached
    base = work / speed
    growth = costs.cache * decoding / speed
    n = 1
    if todo == 0:
        gap = limit - s.clock[b, r]
        slope = base - growth / 2
        fill = ceil(2 * gap / (slope + sqrt(slope * slope + 2 * growth * gap)))
        n = max(min(fill, s.next_end[b, r] - s.tick[b, r]), 1)
    s.clock[b, r] += n * base + growth * (n * (n - 1) / 2)
    s.tick[b, r] += n
    s.cached[b, r] += chunk + decoding * n
    s.todo[b, r] -= chunk
    return bool(todo > 0 and chunk == todo)


@njit(cache=True)
def _finish(
    s: Replicas, b: int, r: int, replica: Ints, time_s: Floats, latency: Floats, n: int
) -> int:
    tick, clock, after = s.tick[b, r], s.clock[b, r], NEVER_TICK
    for k in range(s.ends.shape[2]):
        end = s.ends[b, r, k]
        if end == tick:
            replica[n] = b * s.clock.shape[1] + r
            time_s[n] = clock
            latency[n] = clock - s.born[b, r, k]
            n += 1
            s.cached[b, r] -= s.totals[b, r, k]
            s.reserved[b, r] -= s.totals[b, r, k]
            s.decoding[b, r] -= 1
            s.ends[b, r, k] = NEVER_TICK
        elif end < after:
            after = end
    s.next_end[b, r] = after
    return n


@njit(cache=True)
def _begin_decoding(s: Replicas, b: int, r: int) -> None:
    for k in range(s.ends.shape[2]):
        if s.ends[b, r, k] == NEVER_TICK:
            s.ends[b, r, k] = s.tick[b, r] + s.prefill_output[b, r]
            s.totals[b, r, k] = s.prefill_total[b, r]
            s.born[b, r, k] = s.prefill_born[b, r]
            s.next_end[b, r] = min(s.next_end[b, r], s.ends[b, r, k])
            s.decoding[b, r] += 1
            return
