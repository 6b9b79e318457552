"""Run the replicas on with array operations: the oracle that the compiled loops must equal."""

import numpy as np

from rlvitals.trainers.ppo.cluster.replicas import (
    NEVER,
    Bools,
    Costs,
    Finished,
    Floats,
    Ints,
    Replicas,
)

Found = list[tuple[Ints, Floats, Floats]]  # replica (flat), when, latency


def advance(replicas: Replicas, costs: Costs, until: Floats, speeds: Floats) -> Finished:
    """Run every replica until its clock has reached `until`, [B] in s, or it has no work.

    `speeds` is [B, N]. The arrays of `replicas` change in place.
    """
    batch, count = speeds.shape
    flat = Replicas(*(array.reshape(batch * count, *array.shape[2:]) for array in replicas))
    limit, speed = np.repeat(until, count), speeds.reshape(-1)
    found: Found = []
    at = np.flatnonzero(_to_run(flat, limit))
    while at.size:
        _admit(flat, costs, at)
        _iterate(flat, costs, at, limit[at], speed[at])
        _finish(flat, at, found)
        _begin_decoding(flat, at)
        at = at[_to_run(flat, limit, at)]
    return ordered(found, count)


def ordered(found: Found, count: int) -> Finished:
    """Return what finished, by cluster, then time, then replica, then place in the batch."""
    if not found:
        return Finished(np.zeros(0, np.int64), np.zeros(0))
    replica, when, latency = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((replica, when, replica // count))  # stable: places stay in their order
    return Finished(replica[order] // count, latency[order])


def _to_run(flat: Replicas, limit: Floats, at: Ints | None = None) -> Bools:
    chosen = slice(None) if at is None else at
    work = flat.size[chosen] + flat.decoding[chosen] + flat.todo[chosen]
    return np.asarray((work > 0) & (flat.clock[chosen] < limit[chosen]))


def _admit(flat: Replicas, costs: Costs, at: Ints) -> None:
    """Begin to prefill the oldest that waits, where the batch and the KV cache have room."""
    open_ = (flat.todo[at] == 0) & (flat.size[at] > 0) & (flat.decoding[at] < costs.max_batch)
    at = at[open_]
    place = at, flat.head[at]
    total = flat.queue_prompt[place] + flat.queue_output[place]
    fits = flat.reserved[at] + total <= costs.kv_capacity
    at, total, place = at[fits], total[fits], (place[0][fits], place[1][fits])
    if not at.size:
        return
    prompt, born = flat.queue_prompt[place], flat.queue_born[place]
    flat.todo[at] = prompt
    flat.prefill_output[at] = flat.queue_output[place]
    flat.prefill_total[at] = total
    flat.prefill_born[at] = born
    flat.reserved[at] += total
    flat.head[at] = (flat.head[at] + 1) % flat.queue_prompt.shape[1]
    flat.size[at] -= 1
    flat.waiting_tokens[at] -= total
    flat.waiting_prompts[at] -= prompt
    # An empty queue waits for nothing: rounding does not gather.
    flat.waiting_born[at] = np.where(flat.size[at] == 0, 0.0, flat.waiting_born[at] - born)


def _iterate(flat: Replicas, costs: Costs, at: Ints, limit: Floats, speed: Floats) -> None:
    """Run one iteration, or all of those in which nothing but the cache's size changes."""
    todo, decoding, cached = flat.todo[at], flat.decoding[at], flat.cached[at]
    chunk = np.minimum(todo, costs.chunk)
    work = costs.iteration + costs.prefill * chunk + costs.decode * decoding + costs.cache * cached
    base = work / speed
    growth = costs.cache * decoding / speed  # of an iteration over the one before it
    gap = limit - flat.clock[at]
    # The least n with n * base + growth * n * (n - 1) / 2 >= gap.
    slope = base - growth / 2
    fill = np.ceil(2 * gap / (slope + np.sqrt(slope * slope + 2 * growth * gap)))
    left = flat.next_end[at] - flat.tick[at]
    many = np.maximum(np.minimum(fill.astype(np.int64), left), 1)
    n = np.where(todo > 0, 1, many)
    flat.clock[at] += n * base + growth * (n * (n - 1) / 2)
    flat.tick[at] += n
    flat.cached[at] += chunk + decoding * n
    flat.todo[at] -= chunk
    # -1: prefilled just now, to be put among those that decode.
    flat.todo[at[(todo > 0) & (chunk == todo)]] = -1


def _finish(flat: Replicas, at: Ints, found: Found) -> None:
    """Let those go that have all their tokens."""
    at = at[flat.tick[at] == flat.next_end[at]]
    if not at.size:
        return
    row, place = np.nonzero(flat.ends[at] == flat.tick[at][:, None])
    replica = at[row]
    when = flat.clock[replica]
    found.append((replica, when, when - flat.born[replica, place]))
    total = flat.totals[replica, place]
    np.subtract.at(flat.cached, replica, total)
    np.subtract.at(flat.reserved, replica, total)
    np.subtract.at(flat.decoding, replica, 1)
    flat.ends[replica, place] = NEVER
    flat.next_end[at] = flat.ends[at].min(axis=1)


def _begin_decoding(flat: Replicas, at: Ints) -> None:
    """Put those among the decoding whose prompt is prefilled."""
    at = at[flat.todo[at] < 0]
    if not at.size:
        return
    place = at, (flat.ends[at] == NEVER).argmax(axis=1)
    end = flat.tick[at] + flat.prefill_output[at]
    flat.ends[place] = end
    flat.totals[place] = flat.prefill_total[at]
    flat.born[place] = flat.prefill_born[at]
    flat.next_end[at] = np.minimum(flat.next_end[at], end)
    flat.decoding[at] += 1
    flat.todo[at] = 0
