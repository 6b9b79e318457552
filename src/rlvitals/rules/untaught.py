"""Detection of a missing learning signal: no gradient, equal rewards, or no updates."""

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.language import TRUNCATED_SHARE
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LOSS, UPDATE_SUCCESS, UPDATES
from rlvitals.metrics.catalogue.outcome import ACCURACY, REWARD
from rlvitals.metrics.catalogue.policy import (
    APPROX_KL,
    CLIP_FRACTION,
    KL_TO_REFERENCE_PER_TOKEN,
)
from rlvitals.metrics.catalogue.reward import GROUP_STD, GROUP_ZERO_STD, SCORE_STD, STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.curves import describe_earlier_learning
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.rule import Threshold
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS
from rlvitals.rules.width import max_entropy
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Trace

MIN_SIGNAL_UPDATES = 20  # updates
MIN_UNTAUGHT_SHARE = 0.9  # of these updates: a single sample may differ
MAX_ZERO_GRADIENT = 1e-10  # norm: float32 rounding of zero
MAX_CHANGED_ACTIONS = Threshold(
    "updates-hardly-move.changed", 0.02, "share of actions that a whole run changes", high=1.0
)
ENTROPY_SPAN_BOUND = Bound(5e-4, "default: of its level, over the whole run")
MOVED_PROFILES = (*kinds.CONTROL, Profile.UNKNOWN)


def untaught(trace: Trace, zero: float = MAX_ZERO_GRADIENT) -> bool:
    """Tell whether hardly any update of the whole run has a gradient, or is applied, as logged."""
    for metric, limit in ((GRAD_NORM, zero), (UPDATE_SUCCESS, MAX_ZERO_GRADIENT)):
        logged = trace.numbers(metric.name, MIN_SIGNAL_UPDATES)
        if (
            logged is not None
            and float((np.abs(logged.values) < limit).mean()) >= MIN_UNTAUGHT_SHARE
        ):
            return True
    return False


def alike(trace: Trace, start_step: int) -> bool:
    """Tell whether the rewards of hardly any batch differ from a step on, where that is logged."""
    logged = (trace.numbers(metric.name) for metric in (GROUP_STD, SCORE_STD, STD))
    spreads = next((series for series in logged if series is not None), None)
    during = np.empty(0) if spreads is None else spreads.since(start_step).values
    return during.size >= MIN_SIGNAL_UPDATES and float((during == 0).mean()) >= MIN_UNTAUGHT_SHARE


def lifeless(trace: Trace) -> bool:
    """Tell whether the last half of a run has no gradient, no contrast, and rewards still to gain.

    A policy that answers each prompt in one way only cannot learn from groups, however its reward
    scatters with the prompts. Where every batch earns the most that any did, it is done instead.
    """
    half = (trace.first_step + trace.last_step) // 2
    norms = trace.numbers(GRAD_NORM.name)
    during = np.empty(0) if norms is None else np.abs(norms.since(half).values)
    if (
        during.size < MIN_SIGNAL_UPDATES
        or float((during < MAX_ZERO_GRADIENT).mean()) < MIN_UNTAUGHT_SHARE
        or not alike(trace, half)
    ):
        return False
    return REWARD.name in trace and not at_top(trace, half)


def at_top(trace: Trace, start_step: int) -> bool:
    """Tell whether most batches from a step on earn the most that any batch of the run did."""
    rewards = trace.numbers(REWARD.name)
    level = np.empty(0) if rewards is None else rewards.since(start_step).values
    if rewards is None or not level.size or not (top := float(rewards.values.max())):
        return False
    # Within 3 % of the range of the rewards.
    return top - float(np.median(level)) <= 0.03 * float(np.ptp(rewards.values))


def floor_share(trace: Trace) -> float:
    """Return the share of batches that earn the least of all, if most do and no fewer by the end.

    All of their completions earned that least, so these batches hold no contrast. The mean of the
    others scatters so much that no interval tells a level, but how many there are does. Else 0.
    """
    rewards = trace.numbers(REWARD.name, 2 * MIN_SIGNAL_UPDATES)
    if rewards is None or trace.profile not in kinds.GROUPED or too_early(trace):
        return 0.0
    is_least = rewards.values == rewards.values.min()
    half = len(is_least) // 2
    first, last = float(is_least[:half].mean()), float(is_least[half:].mean())
    # Three quarters of the batches; a twentieth is one in twenty updates.
    return float(is_least.mean()) if last >= 0.75 and last >= first - 0.05 else 0.0


@cache_by_trace
def dead(trace: Trace) -> bool:
    """Return True if a mean reward that moved cannot have been learned.

    Groups without contrast from the first update to the last teach nothing. A policy that writes
    the same tokens up to the limit, far from the reference and below half of what its best batch
    earned, has nothing left to vary. Nor has one whose loss became exactly 0 and whose share of
    right answers has been one number ever since.
    """
    if _stands_still(trace):
        return True
    zero = trace.numbers(GROUP_ZERO_STD.name, MIN_SIGNAL_UPDATES)
    # At least 95 % of the groups have no contrast.
    if zero is not None and float((zero.values >= 0.95).mean()) >= MIN_UNTAUGHT_SHARE:
        return not at_top(trace, 0)
    half = (trace.first_step + trace.last_step) // 2
    names = (TRUNCATED_SHARE.name, ENTROPY.name, KL_TO_REFERENCE_PER_TOKEN.name, REWARD.name)
    cut, entropy, kl, rewards = (trace.numbers(name, MIN_SIGNAL_UPDATES) for name in names)
    if cut is None or entropy is None or kl is None or rewards is None:
        return False
    late = [series.since(half).values for series in (cut, entropy, kl, rewards)]
    if min(map(len, late)) < MIN_SIGNAL_UPDATES:
        return False
    # At least 99 % of the responses end at the length limit.
    fixed = float((late[0] >= 0.99).mean()) >= MIN_UNTAUGHT_SHARE
    fixed = fixed and float((late[1] < 0.01).mean()) >= MIN_UNTAUGHT_SHARE  # nats per token
    level = float(np.median(late[3])) - float(rewards.values.min())
    # Half of the way from the worst to the best batch.
    poor = level < 0.5 * float(np.ptp(rewards.values))
    return fixed and poor and float(np.median(late[2])) > 0.5  # nats per token


def _stands_still(trace: Trace) -> bool:
    half = (trace.first_step + trace.last_step) // 2
    losses, shares = trace.numbers(LOSS.name), trace.numbers(ACCURACY.name)
    if losses is None or shares is None:
        return False
    loss, share = losses.since(half).values, shares.since(half).values
    enough = min(loss.size, share.size) >= 8
    return (
        enough
        and not loss.any()
        and bool(losses.values.any())
        and np.ptp(share) == 0
        and bool(share[-1] < 0.9)  # of right answers
    )


@dataclass(frozen=True, slots=True)
class NoMovement:
    """The metric that shows that a policy did not change, by how much it may have, and a limit."""

    metric: str
    change: float
    bound: Bound


def no_movement(trace: Trace) -> NoMovement | None:
    """Return what shows that the last policy of a run is its first one; None where nothing does.

    The square root of half of a KL bounds the share of actions that an update changes (Pinsker),
    and the sum of these shares bounds that of a run. Without KL and clip fraction, an entropy of
    discrete actions that never changes tells. So does a gradient norm of exactly 0 in every row,
    with an entropy that changes no more than the states of its batches do.
    """
    if trace.profile not in MOVED_PROFILES or too_early(trace) or describe_earlier_learning(trace):
        return None
    entropy = trace.numbers(ENTROPY.name, MIN_OUTCOME_POINTS)
    level = 0.0 if entropy is None else float(np.abs(entropy.values).max())
    if entropy is None or not level:
        return None
    span = float(np.ptp(entropy.values)) / level
    norms = trace.numbers(GRAD_NORM.name, MIN_OUTCOME_POINTS)
    if norms is not None and not norms.values.any() and span <= 0.02:
        return NoMovement(
            GRAD_NORM.name, 0.0, Bound(0.0, "a gradient of exactly zero in every row")
        )
    if APPROX_KL.name not in trace and CLIP_FRACTION.name not in trace:
        constant = span <= ENTROPY_SPAN_BOUND.value and len(entropy) >= 2 * MIN_OUTCOME_POINTS
        discrete = max_entropy(trace) is not None
        return NoMovement(ENTROPY.name, span, ENTROPY_SPAN_BOUND) if constant and discrete else None
    # The states of each batch differ: entropy moves by up to 0.2 % of its level.
    changed = None if span > 2e-3 else _changed_actions(trace)
    limit = MAX_CHANGED_ACTIONS.bound(trace, "default: share of the actions, over the whole run")
    if changed is None or changed > limit.value:
        return None
    return NoMovement(APPROX_KL.name, changed, limit)


def stays_uniform(trace: Trace) -> bool:
    """Return True if a policy of discrete actions is nearly uniform in the last half of a run."""
    entropy, uniform = trace.numbers(ENTROPY.name, MIN_OUTCOME_POINTS), max_entropy(trace)
    if (
        entropy is None
        or uniform is None
        or too_early(trace)
        or trace.profile not in MOVED_PROFILES
    ):
        return False
    late_values = entropy.values[len(entropy) // 2 :]
    # Of two actions the likelier one has p < .59 then.
    return float(np.median(late_values)) >= 0.98 * uniform.value


def _changed_actions(trace: Trace) -> float | None:
    """Return the largest share of actions that all logged updates together can have changed.

    None where KL is not logged, is clamped, or is that of a batch before its only step: always 0.
    """
    kl = trace.numbers(APPROX_KL.name, MIN_OUTCOME_POINTS)
    measured = trace.measured.get(APPROX_KL.name)
    clamped = measured is not None and "clamped" in measured.estimator
    if kl is None or clamped or not (kl.values.any() or epochs(trace) > 1):
        return None
    return float(np.sqrt(np.abs(kl.values) / 2).sum())


def epochs(trace: Trace) -> float:
    """Return how often a batch is trained on, as set or as the count of updates shows; else 1."""
    n_epochs, count = trace.number("n_epochs"), trace.numbers(UPDATES.name, MIN_OUTCOME_POINTS)
    if n_epochs is not None or count is None:
        return n_epochs or 1.0
    # Stable-Baselines3 counts the epochs, and writes a row after each batch.
    return float(np.median(np.diff(count.values)))
