"""Recognise a curve that adds each row to all before: a reward that was never set back to zero."""

import numpy as np

from rlvitals.signals.finite import Array, finite


def row_of_sum(values: Array) -> float | None:
    """Return what each row of a running sum adds; None for any other curve.

    All of 50 values or more move the same way, the first is as large as a move, and the moves are
    as large at the end as at the start, within a factor of two. Equal moves are a counter's. Moves
    of a sum are independent; those of a line with noise or a wave on it depend on the one before.
    """
    x = finite(values)
    moves = np.diff(x)
    if len(x) < 50 or not ((moves > 0).all() or (moves < 0).all()):
        return None
    third = len(moves) // 3
    typical, first, last = (np.median(m) for m in (moves, moves[:third], moves[-third:]))
    is_even = 0.5 <= last / first <= 2 and 0.3 <= x[0] / typical <= 2.5
    is_counter = np.ptp(moves) <= 1e-6 * abs(typical)
    if not is_even or is_counter:
        return None
    noise = moves - moves.mean()
    # -0.5 for a line with noise, near 1 for a slow wave; of a sum of 50 beyond 0.3 in 1 of 25.
    correlation = float(noise[1:] @ noise[:-1]) / float(noise @ noise)
    return float(typical) if abs(correlation) < 0.3 else None
