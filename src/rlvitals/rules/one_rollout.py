"""Updates that train on one rollout again and again, by the noise that new samples would add."""

from collections.abc import Mapping

import numpy as np

from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.weigh import content
from rlvitals.signals.finite import Array
from rlvitals.types import Series, Trace

ONE_ROLLOUT = ("every update trains on the same rollout: it is collected once, or never replaced",)
MIN_CLIMB_UPDATES = 25
MIN_CLIMB_TAU = 0.5  # Kendall's, of a series that climbs
MIN_CLIMB = 1.5  # x, from the first third to the last
MIN_LAST_KL = 0.005  # nats
MIN_LAST_CLIPPED = 0.1  # share of the samples


def repeats_errors(trace: Trace, logged: Mapping[str, Series], length: int) -> Finding | None:
    """Find a value loss that scatters by less than fresh samples make it."""
    loss, kl = logged.get(VALUE_LOSS.name), logged.get(APPROX_KL.name)
    explained = logged.get(EXPLAINED_VARIANCE.name)
    if loss is None or kl is None or explained is None or trace.profile not in kinds.CONTROL:
        return None
    values = loss.values
    if len(values) < length or values.min() <= 0:
        return None
    # Sampling alone makes it 6 % for 512 normal errors; no run with new rollouts and a policy that
    # moves so much stays below 11 %.
    bound = Bound(0.01, "default: of the value loss, from row to row")
    # The first rows are those of a critic that begins to learn: the median leaves them out.
    scatter = float(np.median(np.abs(np.diff(np.log(values)))))
    moves = float(np.median(kl.values)) >= 1e-3  # nats an update  # noqa: PLR2004
    level = float(np.median(explained.values))
    # That of a critic which is one number is 0 for every rollout.
    repeats = float(np.median(np.abs(np.diff(explained.values)))) <= 0.05 * abs(level)
    is_constant = scatter <= bound.value and repeats and level <= 0.8  # else few errors  # noqa: PLR2004
    if not (is_constant and moves) or content(verdict_trend(trace)):
        return None
    return Finding(
        f"the value loss changes by {scatter:.1%} from row to row, at {np.median(values):.3g}, "
        f"while each update moves the policy by {np.median(kl.values):.2g} nats: errors of fresh "
        "samples scatter by more",
        severity=Severity.WARNING,
        metric=VALUE_LOSS.name,
        began=int(loss.steps[0]),
        ended=int(loss.steps[-1]),
        observed=scatter,
        bound=bound,
        limit_on_curve=False,
        causes=ONE_ROLLOUT,
    )


def leaves_one_policy(trace: Trace, logged: Mapping[str, Series]) -> Finding | None:
    """Find updates that leave the policy of one rollout further and further behind."""
    kl, gain = logged.get(APPROX_KL.name), logged.get(POLICY_LOSS.name)
    clipped = trace.numbers(CLIP_FRACTION.name, MIN_CLIMB_UPDATES)
    if kl is None or gain is None or clipped is None or trace.profile not in kinds.CONTROL:
        return None
    if len(kl) < MIN_CLIMB_UPDATES or len(gain) < MIN_CLIMB_UPDATES:
        return None
    last_kl, last_clipped = _ends(kl.values)[1], _ends(clipped.values)[1]
    small = last_kl < MIN_LAST_KL or last_clipped < MIN_LAST_CLIPPED
    if small or not all(_climbs(values) for values in (kl.values, clipped.values, -gain.values)):
        return None
    # Of 76 healthy runs and faults of other kinds, the median step is 20 % and more.
    bound = Bound(0.08, "default: of the KL, from one update to the next")
    scatter = float(np.median(np.abs(np.diff(kl.values)))) / float(np.median(kl.values))
    if scatter > bound.value:
        return None
    return Finding(
        f"KL climbs from {_ends(kl.values)[0]:.2g} to {last_kl:.2g} nats by steps of "
        f"{scatter:.1%}, the clip fraction from {_ends(clipped.values)[0]:.2g} to "
        f"{last_clipped:.2g}, and the gain of the policy's loss with them: with new rollouts they "
        "would start anew",
        severity=Severity.WARNING,
        metric=APPROX_KL.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=scatter,
        bound=bound,
        limit_on_curve=False,
        causes=ONE_ROLLOUT,
        remedies=("compare the observations of two successive rollouts",),
    )


def _ends(values: Array) -> tuple[float, float]:
    """Return the median of the first and of the last third."""
    third = len(values) // 3
    return float(np.median(values[:third])), float(np.median(values[-third:]))


def _climbs(values: Array) -> bool:
    first, last = _ends(values)
    if first <= 0 or last < MIN_CLIMB * first:
        return False
    differences = np.sign(values[None, :] - values[:, None])
    pairs = len(values) * (len(values) - 1) / 2
    return float(np.triu(differences, 1).sum()) >= MIN_CLIMB_TAU * pairs
