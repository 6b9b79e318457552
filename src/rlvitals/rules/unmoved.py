"""Whether the updates of a whole run can have changed its policy at all: by KL, or by entropy."""

from dataclasses import dataclass

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.optimiser import UPDATES
from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Threshold
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import LEAST, learned_before
from rlvitals.rules.width import max_entropy
from rlvitals.types import Profile, Trace

MAX_CHANGED = Threshold(
    "updates-hardly-move.changed", 0.02, "share of actions that a whole run changes", high=1.0
)
MAX_ENTROPY_SPAN = 2e-3  # of its level: the states of each batch differ
SAME_ENTROPY = Bound(5e-4, "default: of its level, over the whole run")
PROFILES = (*kinds.CONTROL, Profile.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Unmoved:
    """The metric that shows that a policy did not change, by how much it may have, and a limit."""

    metric: str
    change: float
    bound: Bound


def unmoved(trace: Trace) -> Unmoved | None:
    """Return what shows that the last policy of a run is its first one; None where nothing does.

    The square root of half of a KL bounds the share of actions that an update changes (Pinsker),
    and the sum of these shares bounds that of a run. Without KL and clip fraction, an entropy of
    discrete actions that never changes tells.
    """
    if trace.profile not in PROFILES or too_early(trace) or learned_before(trace):
        return None
    entropy = trace.numbers(ENTROPY.name, LEAST)
    level = 0.0 if entropy is None else float(np.abs(entropy.values).max())
    if entropy is None or not level:
        return None
    span = float(np.ptp(entropy.values)) / level
    if APPROX_KL.name not in trace and CLIP_FRACTION.name not in trace:
        still = span <= SAME_ENTROPY.value and len(entropy) >= 2 * LEAST
        discrete = max_entropy(trace) is not None
        return Unmoved(ENTROPY.name, span, SAME_ENTROPY) if still and discrete else None
    changed = None if span > MAX_ENTROPY_SPAN else _changed_actions(trace)
    limit = MAX_CHANGED.bound(trace, "default: share of the actions, over the whole run")
    if changed is None or changed > limit.value:
        return None
    return Unmoved(APPROX_KL.name, changed, limit)


def _changed_actions(trace: Trace) -> float | None:
    """Return the largest share of actions that all logged updates together can have changed.

    None where KL is not logged, is clamped, or is that of a batch before its only step: always 0.
    """
    kl, measured = trace.numbers(APPROX_KL.name, LEAST), trace.measured.get(APPROX_KL.name)
    clamped = measured is not None and "clamped" in measured.estimator
    if kl is None or clamped or not (kl.values.any() or _epochs(trace) > 1):
        return None
    return float(np.sqrt(np.abs(kl.values) / 2).sum())


def _epochs(trace: Trace) -> float:
    """Return how often a batch is trained on, as set or as the count of updates shows; else 1."""
    own, count = trace.number("n_epochs"), trace.numbers(UPDATES.name, LEAST)
    if own is not None or count is None:
        return own or 1.0
    # Stable-Baselines3 counts the epochs, and writes a row after each batch.
    return float(np.median(np.diff(count.values)))
