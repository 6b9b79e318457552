"""Recognise a return that falls because episodes take longer, although each still earns its end.

Where every step costs the same and the end of every episode pays the same, the mean return is a
line in the mean episode length. A failure leaves that line. A policy that is certain, and stays on
the line, does what it did before: the way to the goal became longer, as in a curriculum.
"""

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.rules import kinds
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.types import Trace

MIN_ROWS = 20  # with a return and a length, since the best return
MAX_RESIDUAL = 0.05  # of the range of the return: the largest distance from the line
MAX_ENTROPY = 0.05  # of the first entropy, in the median of the last rows: a certain policy
ENTROPY_ROWS = 5


@cache_by_trace
def longer_way(trace: Trace, name: str) -> str:
    """Say that the return fell only because episodes became longer; empty if it did not.

    The mean return is positive and, since its best, a falling line in the mean length: what the
    end pays is more than all steps cost. The policy has become certain. Empty for another outcome.
    """
    returns, lengths = (trace.numbers(m.name, MIN_ROWS) for m in (RETURN, EPISODE_LENGTH))
    entropy = trace.numbers(ENTROPY.name, MIN_ROWS)
    if name != RETURN.name or trace.profile not in kinds.CONTROL:
        return ""
    if returns is None or lengths is None or entropy is None or entropy.values.min() < 0:
        return ""
    since_best = returns.since(int(returns.steps[returns.values.argmax()]))
    _, at, also = np.intersect1d(since_best.steps, lengths.steps, return_indices=True)
    paid, steps = since_best.values[at], lengths.values[also]
    if len(paid) < MIN_ROWS or not np.ptp(steps) or not np.ptp(paid):
        return ""
    slope, end_pay = np.polyfit(steps, paid, 1)
    residual = float(np.abs(paid - end_pay - slope * steps).max())
    last = float(np.median(entropy.tail(ENTROPY_ROWS).values))
    certain = last <= MAX_ENTROPY * float(entropy.values[0])
    on_line = residual <= MAX_RESIDUAL * float(np.ptp(paid))
    keeps = certain and on_line and slope < 0 < paid[-1]
    return "falls as episodes get longer, and each still earns its end" if keeps else ""
