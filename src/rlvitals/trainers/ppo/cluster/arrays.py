"""Advance the replicas with array operations: the oracle of the compiled loops."""

import numpy as np

from rlvitals.trainers.ppo.cluster.replicas import (
    NEVER_TICK,
    Bools,
    Costs,
    Finished,
    Floats,
    Ints,
    Replicas,
)

FinishedColumns = list[tuple[Ints, Floats, Floats]]  # replica (flat), when, latency


def advance(replicas: Replicas, costs: Costs, until: Floats, speeds: Floats) -> Finished:
    """Run every replica until its clock has reached `until`, [B] in s, or it has no work.

    `speeds` is [B, N]. The arrays of `replicas` change in place.
    """
    batch, count = speeds.shape
    flat = Replicas(*(array.reshape(batch * count, *array.shape[2:]) for array in replicas))
    limit, speed = np.repeat(until, count), speeds.reshape(-1)
    finished: FinishedColumns = []
    rows = np.flatnonzero(_to_run(flat, limit))
    while rows.size:
        _admit(flat, costs, rows)
        _iterate(flat, costs, rows, limit[rows], speed[rows])
        _finish(flat, rows, finished)
        _begin_decoding(flat, rows)
        rows = rows[_to_run(flat, limit, rows)]
    return sort_finished(finished, count)


def sort_finished(finished: FinishedColumns, count: int) -> Finished:
    """Return what finished, by cluster, then time, then replica, then place in the batch."""
    if not finished:
        return Finished(np.zeros(0, np.int64), np.zeros(0))
    replica, time_s, latency = (np.concatenate(column) for column in zip(*finished, strict=True))
    order = np.lexsort((replica, time_s, replica // count))  # stable: places stay in their order
    return Finished(replica[order] // count, latency[order])


def _to_run(flat: Replicas, limit: Floats, rows: Ints | None = None) -> Bools:
    selection = slice(None) if rows is None else rows
    work = flat.size[selection] + flat.decoding[selection] + flat.todo[selection]
    return np.asarray((work > 0) & (flat.clock[selection] < limit[selection]))


def _admit(flat: Replicas, costs: Costs, rows: Ints) -> None:
    """Begin to prefill the oldest that waits, where the batch and the KV cache have room."""
    has_room = (
        (flat.todo[rows] == 0) & (flat.size[rows] > 0) & (flat.decoding[rows] < costs.max_batch)
    )
    rows = rows[has_room]
    slot = rows, flat.head[rows]
    total = flat.queue_prompt[slot] + flat.queue_output[slot]
    fits = flat.reserved[rows] + total <= costs.kv_capacity
    rows, total, slot = rows[fits], total[fits], (slot[0][fits], slot[1][fits])
    if not rows.size:
        return
    prompt, born = flat.queue_prompt[slot], flat.queue_born[slot]
    flat.todo[rows] = prompt
    flat.prefill_output[rows] = flat.queue_output[slot]
    flat.prefill_total[rows] = total
    flat.prefill_born[rows] = born
    flat.reserved[rows] += total
    flat.head[rows] = (flat.head[rows] + 1) % flat.queue_prompt.shape[1]
    flat.size[rows] -= 1
    flat.waiting_tokens[rows] -= total
    flat.waiting_prompts[rows] -= prompt
    # An empty queue waits for nothing: rounding does not gather.
    flat.waiting_born[rows] = np.where(flat.size[rows] == 0, 0.0, flat.waiting_born[rows] - born)


def _iterate(flat: Replicas, costs: Costs, rows: Ints, limit: Floats, speed: Floats) -> None:
    """Run one iteration, or all of those in which nothing but the cache's size changes."""
    todo, decoding, cached = flat.todo[rows], flat.decoding[rows], flat.cached[rows]
    chunk = np.minimum(todo, costs.chunk)
    work = costs.iteration + costs.prefill * chunk + costs.decode * decoding + costs.cache * cached
    base = work / speed
    growth = costs.cache * decoding / speed  # of an iteration over the one before it
    gap = limit - flat.clock[rows]
    # The least n with n * base + growth * n * (n - 1) / 2 >= gap.
    slope = base - growth / 2
    fill = np.ceil(2 * gap / (slope + np.sqrt(slope * slope + 2 * growth * gap)))
    ticks_left = flat.next_end[rows] - flat.tick[rows]
    iterations = np.maximum(np.minimum(fill.astype(np.int64), ticks_left), 1)
    n = np.where(todo > 0, 1, iterations)
    flat.clock[rows] += n * base + growth * (n * (n - 1) / 2)
    flat.tick[rows] += n
    flat.cached[rows] += chunk + decoding * n
    flat.todo[rows] -= chunk
    # -1: prefilled just now, to be put among those that decode.
    flat.todo[rows[(todo > 0) & (chunk == todo)]] = -1


def _finish(flat: Replicas, rows: Ints, finished: FinishedColumns) -> None:
    """Let those go that have all their tokens."""
    rows = rows[flat.tick[rows] == flat.next_end[rows]]
    if not rows.size:
        return
    row, slot = np.nonzero(flat.ends[rows] == flat.tick[rows][:, None])
    replica = rows[row]
    time_s = flat.clock[replica]
    finished.append((replica, time_s, time_s - flat.born[replica, slot]))
    total = flat.totals[replica, slot]
    np.subtract.at(flat.cached, replica, total)
    np.subtract.at(flat.reserved, replica, total)
    np.subtract.at(flat.decoding, replica, 1)
    flat.ends[replica, slot] = NEVER_TICK
    flat.next_end[rows] = flat.ends[rows].min(axis=1)


def _begin_decoding(flat: Replicas, rows: Ints) -> None:
    """Put those among the decoding whose prompt is prefilled."""
    rows = rows[flat.todo[rows] < 0]
    if not rows.size:
        return
    slot = rows, (flat.ends[rows] == NEVER_TICK).argmax(axis=1)
    end = flat.tick[rows] + flat.prefill_output[rows]
    flat.ends[slot] = end
    flat.totals[slot] = flat.prefill_total[rows]
    flat.born[slot] = flat.prefill_born[rows]
    flat.next_end[rows] = np.minimum(flat.next_end[rows], end)
    flat.decoding[rows] += 1
    flat.todo[rows] = 0
