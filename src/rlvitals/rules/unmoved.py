"""Policies that hardly move: by SAC's temperature, and beside a value loss that takes all."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY_COEF, ENTROPY_COEF_LOSS
from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, standing
from rlvitals.rules.untrained import find_constant_error
from rlvitals.signals.finite import Array
from rlvitals.types import Trace

# Normalised advantages keep the policy's gradient near 1, the value loss's is its root: where both
# share a clipped norm the policy is left a thousandth.
MIN_STARVING_LOSS = 1e6


@dataclass(frozen=True, slots=True)
class _EntropyExcess:
    """Entropy of a SAC policy above its target, where the loss of alpha tells it."""

    steps: NDArray[np.int64]  # [n]
    alpha: Array  # [n]
    values: Array  # [n], nats


def _entropy_excess(trace: Trace) -> _EntropyExcess | None:
    alpha = trace.numbers(ENTROPY_COEF.name, 2 * MIN_OUTCOME_POINTS)
    loss = trace.numbers(ENTROPY_COEF_LOSS.name, 2 * MIN_OUTCOME_POINTS)
    source = trace.measured.get(ENTROPY_COEF_LOSS.name)
    if alpha is None or loss is None or source is None or source.framework != "sb3":
        return None
    steps, alpha_rows, loss_rows = np.intersect1d(alpha.steps, loss.steps, return_indices=True)
    alphas = alpha.values[alpha_rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_alpha = np.log(alphas)
        # Nearer to 0, the loss over log alpha is noise.
        usable = np.isfinite(log_alpha) & (np.abs(log_alpha) >= 0.05)
    if np.count_nonzero(usable) < 2 * MIN_OUTCOME_POINTS:
        return None
    excess = loss.values[loss_rows][usable] / log_alpha[usable]
    return _EntropyExcess(steps[usable], alphas[usable], excess)


def find_unanswered_temperature(trace: Trace) -> Finding | None:
    """Find a policy of SAC whose entropy stands still while the bonus for it fades."""
    excess = _entropy_excess(trace)
    if excess is None or too_early(trace):
        return None
    levels = [float(np.median(values)) for values in np.array_split(excess.values, 6)]
    first_alpha, last_alpha = (float(alpha) for alpha in excess.alpha[[0, -1]])
    # In healthy runs whose alpha falls so far, entropy changes by 0.8 nats at least.
    bound = Bound(0.15, "default: nats, between the medians of six parts of the run")
    is_constant = max(levels) - min(levels) <= bound.value
    has_faded = math.log(first_alpha / last_alpha) >= 2.0
    if not (has_faded and is_constant) or weigh.content(verdict_trend(trace)):
        return None
    if isinstance(find_constant_error(trace), Finding):
        return None  # a policy has nothing to follow where the critic learned nothing
    return Finding(
        f"updates do not move the policy: alpha falls from {first_alpha:.3g} to "
        f"{last_alpha:.3g}, and the policy's entropy stays {levels[0]:.3g} to "
        f"{levels[-1]:.3g} nats above its target",
        severity=Severity.WARNING,
        metric=ENTROPY_COEF_LOSS.name,
        began=int(excess.steps[0]),
        ended=int(excess.steps[-1]),
        observed=max(levels) - min(levels),
        bound=bound,
        limit_on_curve=False,
        causes=(
            "the policy's weights are not trained: not in the optimiser, or detached",
            "rewards are so small that the entropy bonus is all that counts",
        ),
        remedies=(
            "compare the policy's weights before and after an update",
            "scale rewards up, or start alpha lower",
        ),
    )


def find_starved_policy(trace: Trace, limit: Bound) -> Finding | None:
    """Find updates of less than `limit` nats beside a large value loss that explains nothing."""
    names = (APPROX_KL.name, VALUE_LOSS.name, EXPLAINED_VARIANCE.name)
    kl, loss, explained = (trace.numbers(name, 2 * MIN_OUTCOME_POINTS) for name in names)
    if kl is None or loss is None or explained is None or too_early(trace):
        return None
    if "clamped" in getattr(trace.measured.get(APPROX_KL.name), "estimator", ""):
        return None
    late_kl, late_loss = (float(np.median(s.values[len(s) // 2 :])) for s in (kl, loss))
    clipped = trace.numbers(CLIP_FRACTION.name)
    moves = late_kl > limit.value or (clipped is not None and np.median(clipped.values) > 0)
    explains = float(np.percentile(np.abs(explained.values), 90.0)) > 0.01
    if moves or explains or late_loss <= MIN_STARVING_LOSS:
        return None
    trend = standing(trace)
    if trend.state == "at its ceiling":
        return None
    rises = (f"{trend.sentence}, if slowly",) if weigh.content(trend) else ()
    return Finding(
        f"updates hardly move the policy: KL per update is {late_kl:.1e} nats beside a value loss "
        f"of {late_loss:.2g} (medians of the second half), and the critic explains nothing",
        severity=Severity.WARNING,
        metric=APPROX_KL.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=late_kl,
        bound=limit,
        counter=rises,
        causes=(
            "rewards are far too large: the value loss uses up the gradient's clipped norm",
            "returns are not normalised, and lie beyond what the critic's steps can reach",
        ),
        remedies=(
            "scale or normalise rewards, so that returns lie between about -100 and 100",
            "lower {value_coef} or split the optimisers",
        ),
    )


def find_gainless_updates(trace: Trace) -> Finding | None:
    """Find a mean of PPO's policy loss over all epochs that is as good as 0.

    With normalised advantages it is minus what an update gains, in standard deviations of the
    advantage, and 0 for a policy that stays. A loss that is logged before the first step is 0 too,
    so that the trainer has to be one that logs the mean.
    """
    loss = trace.numbers(POLICY_LOSS.name, 2 * MIN_OUTCOME_POINTS)
    source = trace.measured.get(POLICY_LOSS.name)
    if loss is None or source is None or source.framework != "skrl" or too_early(trace):
        return None
    # In healthy runs of four trainers nine in ten losses reach 0.004 at least, in size.
    bound = Bound(1e-4, "default: sd of the advantage")
    largest = float(np.percentile(np.abs(loss.values), 90.0))
    if largest >= bound.value or weigh.content(verdict_trend(trace)):
        return None
    return Finding(
        f"updates hardly move the policy: nine in ten policy losses lie within {largest:.1e} of 0, "
        "each the mean over all epochs of an update",
        severity=Severity.WARNING,
        metric=POLICY_LOSS.name,
        began=int(loss.steps[0]),
        ended=int(loss.steps[-1]),
        observed=largest,
        bound=bound,
        causes=(
            "the policy's weights are not trained, or hardly: learning rate, gradient clipping",
            "advantages near zero: a constant reward or a dead signal",
        ),
        remedies=(
            "check max_grad_norm and {learning_rate}",
            "check that the optimiser holds the policy's weights",
        ),
    )
