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
from rlvitals.rules.standing import EVALUATED, standing
from rlvitals.rules.width import max_entropy
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

MIN_LEVEL_POINTS = 20  # of an outcome: fewer may be the start of a run
MIN_BEST_SHARE = 0.2  # of the values: so many equal the best only where it bounds them
FIRST_ROWS = 3
MAX_SURE_ENTROPY = 0.5  # of the largest: an untrained policy is nearly uniform


def sign_of_good_level(trace: Trace, name: str) -> str:
    """Return why the level of an outcome that never moved may be a good one; empty if none."""
    values = trace[name].finite().values
    if len(values) < MIN_LEVEL_POINTS:
        return f"only {len(values)} values are logged"
    best, worst = float(values.max()), float(values.min())
    share = float((values == best).mean())
    if best > worst and share >= MIN_BEST_SHARE and values.mean() >= (best + worst) / 2:
        return f"{share:.0%} of its values are exactly the best"
    if _is_sure_at_first(trace):
        return "the policy is sure from the first rows on"
    trained = name == EVALUATED and RETURN.name in trace and not explores_less(trace)
    rises = trained and standing(trace, of=RETURN.name).improves
    return "the training's return rises" if rises else ""


def explores_less(trace: Trace) -> bool:
    """Return True if the share of random actions falls by a fifth of all actions or more."""
    epsilon = trace.numbers(EPSILON.name)
    levels = None if epsilon is None else first_last_change(epsilon.values)
    return levels is not None and levels[0] - levels[1] >= 0.2  # noqa: PLR2004 - as said


def _is_sure_at_first(trace: Trace) -> bool:
    entropy, most = trace.numbers(ENTROPY.name), max_entropy(trace)
    if entropy is None or most is None:
        return False
    return float(np.median(entropy.values[:FIRST_ROWS])) <= MAX_SURE_ENTROPY * most.value
