"""Signs in a log that a flat outcome may stand at a good level.

Of 207 published curves 40 are flat by the block test of their outcome. Of these 32 never learned,
seven lost, swung or crashed, and one began at a good level. A policy that had learned before its
log begins leaves signs: it is sure from its first rows on, its outcome is the best possible one
again and again, or the training's return rises beside a flat evaluation. A few values may be the
start of a run.
"""

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, EPSILON
from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.rules.curves import AT_ONCE, HALF
from rlvitals.rules.gains import MIN_POINTS
from rlvitals.rules.standing import EVALUATED, STUCK_TOP, standing
from rlvitals.rules.width import max_entropy
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace


def may_be_good(trace: Trace, name: str) -> bool:
    """Return True if the log has a sign that an outcome which never moved is a good one."""
    values = trace[name].finite().values
    best, worst = float(values.max()), float(values.min())
    is_bound = best > worst and float((values == best).mean()) >= STUCK_TOP
    is_bound = is_bound and float(values.mean()) >= (best + worst) / 2
    if len(values) < MIN_POINTS or is_bound or _is_sure_at_first(trace):
        return True
    is_evaluation = name == EVALUATED and RETURN.name in trace and not explores_less(trace)
    return is_evaluation and standing(trace, of=RETURN.name).improves


def explores_less(trace: Trace) -> bool:
    """Return True if the share of random actions falls by a fifth of all actions or more."""
    epsilon = trace.numbers(EPSILON.name)
    levels = None if epsilon is None else first_last_change(epsilon.values)
    return levels is not None and levels[0] - levels[1] >= 0.2  # noqa: PLR2004 - as said


def _is_sure_at_first(trace: Trace) -> bool:
    entropy, most = trace.numbers(ENTROPY.name), max_entropy(trace)
    if entropy is None or most is None:
        return False
    # An untrained policy is nearly uniform.
    return float(np.median(entropy.values[:AT_ONCE])) <= HALF * most.value
