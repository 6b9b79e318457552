"""The two sides of each identity, as a trace holds them; None where it does not hold both."""

from collections.abc import Callable

import numpy as np

from rlvitals.metrics.catalogue import outcome, policy, reward
from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE, LOSS, UPDATES
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.progress import BATCH_SIZE, ITERATION
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Metric
from rlvitals.rules.books import SINGLE, Books, Floats, books, joined, names_of
from rlvitals.types import Trace

Keep = Callable[[Trace], Books | None]

TINY = 1e-6  # nats: a KL too small to tell a coefficient from
FAR = 0.05  # nats per sequence: a KL beyond rounding
SPREAD = 1.0 / np.sqrt(2.0)  # of (max - min): the largest standard deviation, of two samples
HALF_OF = 0.5  # of the rows, the first, that weights are learned from
MORE_ROWS = 10  # than there are weights
MOST = 0.9  # of those rows must keep to the weights


def adds_up(total: Metric, *parts: tuple[Metric, float], exact: float | None = None) -> Keep:
    """A total is the weighted sum of other metrics."""

    def keep(trace: Trace) -> Books | None:
        found = joined(trace, names_of(total, *(metric for metric, _ in parts)))
        if found is None:
            return None
        steps, (left, *columns) = found
        weighed = [(c, w) for c, (_, w) in zip(columns, parts, strict=True)]
        return books(steps, left, weighed, exact=exact)

    return keep


def never_above(low: Metric, high: Metric) -> Keep:
    """One metric is never above another."""

    def keep(trace: Trace) -> Books | None:
        found = joined(trace, names_of(low, high))
        if found is None:
            return None
        steps, (left, right) = found
        return books(steps, left, [(right, 1.0)], at_most=True)

    return keep


def penalty(trace: Trace) -> Books | None:
    """The KL term of the reward is minus a coefficient times the KL: per sequence, both."""
    names = names_of(reward.NON_SCORE, policy.KL_TO_REFERENCE)
    own, told = policy.KL_COEF.name in trace, trace.number("kl_coef")
    found = joined(trace, (*names, policy.KL_COEF.name) if own else names)
    if found is None:
        return None
    steps, (term, kl, *rest) = found
    if rest:
        return books(steps, term, [(kl, -rest[0])])
    if told is not None:
        return books(steps, term, [(kl, -told)])
    clear = np.abs(kl) > TINY
    if not clear.any():
        return None
    # Not told: the coefficient that most rows agree on, whose sign is known all the same.
    size = float(np.abs(np.median(term[clear] / kl[clear])))
    return books(steps, term, [(kl, -size)])


def penalty_sign(trace: Trace) -> Books | None:
    """A penalty on a positive KL takes away, whatever is summed or averaged."""
    found = joined(trace, names_of(reward.NON_SCORE_PER_TOKEN, policy.KL_TO_REFERENCE))
    if found is None:
        return None
    steps, (term, kl) = found
    far = kl > FAR
    nothing = np.zeros(int(far.sum()))
    return books(steps[far], term[far], [(nothing, 1.0)], at_most=True) if far.any() else None


def score_kept(trace: Trace) -> Books | None:
    """Without a KL penalty in the reward, the reward is the score."""
    if policy.KL_TO_REFERENCE_PER_TOKEN.name in trace or policy.KL_TO_REFERENCE.name in trace:
        return None
    return adds_up(outcome.RLHF_REWARD, (outcome.SCORE, 1.0))(trace)


def components(trace: Trace) -> Books | None:
    """The reward is the weighted sum of its parts; the weights are learned from the first rows.

    None where no constant weights fit them: a part that leaves samples out is averaged over the
    others, and then the means need not add up.
    """
    names = [f"{reward.COMPONENT.name}/{part}" for part in trace.family(reward.COMPONENT.name)]
    found = joined(trace, [outcome.REWARD.name, *names]) if names else None
    if found is None:
        return None
    steps, (total, *columns) = found
    parts = np.stack(columns, axis=1)
    rows = int(HALF_OF * len(total))
    if rows < len(names) + MORE_ROWS:
        return None
    seen = np.any(parts[:rows] != 0, axis=0)
    # A part that was 0 throughout may have any weight: nothing can be said once it moves.
    if np.any(parts[:, ~seen] != 0):
        return None
    ones: Floats = np.ones(len(names))
    for weights in (ones, _weights(parts[:rows], total[:rows])):
        if weights is None:
            return None
        weighed = [(c, float(w)) for c, w in zip(columns, weights, strict=True)]
        made = books(steps, total, weighed, certain=False)
        if np.mean(~made.broken[:rows]) >= MOST:
            return made
    return None


def _weights(parts: Floats, total: Floats) -> Floats | None:
    """Return the weights [parts] that rows [rows, parts] fit best; None where many fit as well."""
    seen = np.any(parts != 0, axis=0)
    if np.linalg.matrix_rank(parts) < int(seen.sum()):
        return None
    return np.asarray(np.linalg.lstsq(parts, total, rcond=None)[0], np.float64)


def spread(trace: Trace) -> Books | None:
    """No standard deviation exceeds that of two samples at both ends."""
    found = joined(trace, names_of(reward.STD, reward.MIN, reward.MAX))
    if found is None:
        return None
    steps, (left, low, high) = found
    return books(steps, left, [(high, SPREAD), (low, -SPREAD)], at_most=True)


def no_contrast(trace: Trace) -> Books | None:
    """Where all rewards of the batch are equal, all groups are without contrast."""
    found = joined(trace, names_of(reward.GROUP_ZERO_STD, reward.STD))
    if found is None:
        return None
    steps, (share, spread) = found
    equal = spread == 0
    return books(steps, np.where(equal, 1.0, 0.0), [(share, 1.0)], at_most=True)


def actions(trace: Trace) -> Books | None:
    """Every decision of the batch chose one action: counts add up to it, shares to one."""
    names = [f"{policy.ACTION_COUNT.name}/{i}" for i in trace.family(policy.ACTION_COUNT.name)]
    if len(names) < 2:  # noqa: PLR2004
        return None
    if BATCH_SIZE.name in trace and (found := joined(trace, [BATCH_SIZE.name, *names])):
        steps, (size, *counts) = found
        if np.sum(counts, axis=0).max() > 1.0 + SINGLE:
            return books(steps, np.sum(counts, axis=0), [(size, 1.0)], counts=True)
    found = joined(trace, names)
    if found is None:
        return None
    steps, columns = found
    total = np.sum(columns, axis=0)
    shares = max(float(c.max()) for c in columns) <= 1.0 + SINGLE
    return books(steps, total, [(np.ones(len(total)), 1.0)]) if shares else None


def epochs(trace: Trace) -> Books | None:
    """No iteration runs more epochs than it may."""
    most = trace.number("n_epochs")
    found = joined(trace, names_of(UPDATES, ITERATION))
    if most is None or found is None or str(trace.settings.get("algorithm", "")) == "A2C":
        return None
    steps, (updates, iterations) = found
    made, rounds = np.diff(updates), np.diff(iterations)
    on = (rounds > 0) & (made >= 0)  # `learn` called again counts from 0
    if not on.any():
        return None
    return books(steps[1:][on], made[on], [(rounds[on], most)], at_most=True, counts=True)


def rate(trace: Trace) -> Books | None:
    """Schedules start from the learning rate that was set, and go down."""
    told = trace.number("learning_rate")
    found = joined(trace, names_of(LEARNING_RATE))
    if told is None or told <= 0 or found is None:
        return None
    steps, (in_force,) = found
    return books(steps, in_force, [(np.full(len(in_force), told), 1.0)], at_most=True)


def rllib_loss(trace: Trace) -> Books | None:
    """PPO's total, of the same minibatches as its parts."""
    parts = (POLICY_LOSS, VALUE_LOSS, ENTROPY, policy.APPROX_KL, policy.KL_COEF, ENTROPY_COEF)
    found = joined(trace, names_of(LOSS, *parts))
    if found is None:
        return None
    steps, (total, loss, critic, entropy, kl, price, bonus) = found
    weight = trace.number("value_coef")
    terms: list[tuple[Floats, Floats | float]] = [(loss, 1.0), (critic, weight or 1.0)]
    terms += [(entropy, -bonus), (kl, price)]
    return books(steps, total, terms, certain=weight is not None)


def two_losses(trace: Trace) -> Books | None:
    """Old TRL's total: policy and value loss, both means over the same minibatches."""
    found = joined(trace, names_of(LOSS, POLICY_LOSS, VALUE_LOSS))
    weight = trace.number("value_coef")
    if found is None or weight is None:
        return None
    steps, (total, loss, critic) = found
    return books(steps, total, [(loss, 1.0), (critic, weight)])


def cleanrl_loss(trace: Trace) -> Books | None:
    """ppo_trxl's total, which it logs of the last minibatch like its parts."""
    found = joined(trace, names_of(LOSS, POLICY_LOSS, VALUE_LOSS, ENTROPY, ENTROPY_COEF))
    weight = trace.number("value_coef")
    others = trace.family("optimiser/loss_part").values()
    if found is None or weight is None or any(np.any(s.values != 0) for s in others):
        return None
    steps, (total, loss, critic, entropy, bonus) = found
    return books(steps, total, [(loss, 1.0), (critic, weight), (entropy, -bonus)])
