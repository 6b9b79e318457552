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
from rlvitals.rules.books import FLOAT32_SUM_ERROR, Books, Floats, align_metrics, books, names_of
from rlvitals.types import Trace

Keep = Callable[[Trace], Books | None]

# Of (max - min): the largest standard deviation, of two samples.
MAX_SD_OF_RANGE = 1.0 / np.sqrt(2.0)


def adds_up(total: Metric, *parts: tuple[Metric, float], exact: float | None = None) -> Keep:
    """A total is the weighted sum of other metrics."""

    def keep(trace: Trace) -> Books | None:
        table = align_metrics(trace, names_of(total, *(metric for metric, _ in parts)))
        if table is None:
            return None
        steps, (left, *columns) = table
        weighed = [(c, w) for c, (_, w) in zip(columns, parts, strict=True)]
        return books(steps, left, weighed, exact=exact)

    return keep


def never_above(low: Metric, high: Metric) -> Keep:
    """One metric is never above another."""

    def keep(trace: Trace) -> Books | None:
        table = align_metrics(trace, names_of(low, high))
        if table is None:
            return None
        steps, (lower, upper) = table
        return books(steps, lower, [(upper, 1.0)], at_most=True)

    return keep


def penalty(trace: Trace) -> Books | None:
    """The KL term of the reward is minus a coefficient times the KL: per sequence, both."""
    names = names_of(reward.NON_SCORE, policy.KL_TO_REFERENCE)
    logs_coef, setting = policy.KL_COEF.name in trace, trace.number("kl_coef")
    table = align_metrics(trace, (*names, policy.KL_COEF.name) if logs_coef else names)
    if table is None:
        return None
    steps, (term, kl, *coefs) = table
    if coefs:
        return books(steps, term, [(kl, -coefs[0])])
    if setting is not None:
        return books(steps, term, [(kl, -setting)])
    is_clear = np.abs(kl) > 1e-6  # nats: a smaller KL tells no coefficient
    if not is_clear.any():
        return None
    # Not told: the coefficient that most rows agree on, whose sign is known all the same.
    size = float(np.abs(np.median(term[is_clear] / kl[is_clear])))
    return books(steps, term, [(kl, -size)])


def penalty_sign(trace: Trace) -> Books | None:
    """A penalty on a positive KL takes away, whatever is summed or averaged."""
    table = align_metrics(trace, names_of(reward.NON_SCORE_PER_TOKEN, policy.KL_TO_REFERENCE))
    if table is None:
        return None
    steps, (term, kl) = table
    clear = kl > 0.05  # nats per sequence: beyond rounding
    nothing = np.zeros(int(clear.sum()))
    return books(steps[clear], term[clear], [(nothing, 1.0)], at_most=True) if clear.any() else None


def reward_is_score(trace: Trace) -> Books | None:
    """Without a KL penalty in the reward, the reward is the score."""
    if policy.KL_TO_REFERENCE_PER_TOKEN.name in trace or policy.KL_TO_REFERENCE.name in trace:
        return None
    return adds_up(outcome.RLHF_REWARD, (outcome.SCORE, 1.0))(trace)


def components(trace: Trace) -> Books | None:
    """The reward is the weighted sum of its parts; the weights are learned from the first rows.

    None where no constant weights fit them: a part that leaves samples out is averaged over the
    others, and then the means need not add up.
    """
    names = [f"{reward.COMPONENT.name}/{suffix}" for suffix in trace.family(reward.COMPONENT.name)]
    table = align_metrics(trace, [outcome.REWARD.name, *names]) if names else None
    if table is None:
        return None
    steps, (total, *columns) = table
    part_values = np.stack(columns, axis=1)
    rows = int(0.5 * len(total))  # the first half of the rows gives the weights
    if rows < len(names) + 10:  # more rows than weights
        return None
    nonzero = np.any(part_values[:rows] != 0, axis=0)
    # A part that was 0 throughout may have any weight: nothing can be said once it moves.
    if np.any(part_values[:, ~nonzero] != 0):
        return None
    ones: Floats = np.ones(len(names))
    for weights in (ones, _weights(part_values[:rows], total[:rows])):
        if weights is None:
            return None
        weighted = [(c, float(w)) for c, w in zip(columns, weights, strict=True)]
        identity = books(steps, total, weighted, certain=False)
        if np.mean(~identity.violations[:rows]) >= 0.9:  # of those rows fit the weights
            return identity
    return None


def _weights(parts: Floats, total: Floats) -> Floats | None:
    """Return the weights [parts] that rows [rows, parts] fit best; None where many fit as well."""
    nonzero = np.any(parts != 0, axis=0)
    if np.linalg.matrix_rank(parts) < int(nonzero.sum()):
        return None
    return np.asarray(np.linalg.lstsq(parts, total, rcond=None)[0], np.float64)


def spread(trace: Trace) -> Books | None:
    """No standard deviation exceeds that of two samples at both ends."""
    table = align_metrics(trace, names_of(reward.STD, reward.MIN, reward.MAX))
    if table is None:
        return None
    steps, (deviation, low, high) = table
    return books(steps, deviation, [(high, MAX_SD_OF_RANGE), (low, -MAX_SD_OF_RANGE)], at_most=True)


def no_contrast(trace: Trace) -> Books | None:
    """Where all rewards of the batch are equal, all groups are without contrast."""
    table = align_metrics(trace, names_of(reward.GROUP_ZERO_STD, reward.STD))
    if table is None:
        return None
    steps, (share, spread) = table
    equal = spread == 0
    return books(steps, np.where(equal, 1.0, 0.0), [(share, 1.0)], at_most=True)


def actions(trace: Trace) -> Books | None:
    """Every decision of the batch chose one action: counts add up to it, shares to one."""
    names = [f"{policy.ACTION_COUNT.name}/{i}" for i in trace.family(policy.ACTION_COUNT.name)]
    if len(names) < 2:
        return None
    if BATCH_SIZE.name in trace and (table := align_metrics(trace, [BATCH_SIZE.name, *names])):
        steps, (size, *counts) = table
        if np.sum(counts, axis=0).max() > 1.0 + FLOAT32_SUM_ERROR:
            return books(steps, np.sum(counts, axis=0), [(size, 1.0)], counts=True)
    table = align_metrics(trace, names)
    if table is None:
        return None
    steps, columns = table
    total = np.sum(columns, axis=0)
    shares = max(float(c.max()) for c in columns) <= 1.0 + FLOAT32_SUM_ERROR
    return books(steps, total, [(np.ones(len(total)), 1.0)]) if shares else None


def epochs(trace: Trace) -> Books | None:
    """No iteration runs more epochs than it may."""
    max_epochs = trace.number("n_epochs")
    table = align_metrics(trace, names_of(UPDATES, ITERATION))
    if max_epochs is None or table is None or str(trace.settings.get("algorithm", "")) == "A2C":
        return None
    steps, (updates, iterations) = table
    new_updates, rounds = np.diff(updates), np.diff(iterations)
    valid = (rounds > 0) & (new_updates >= 0)  # `learn` called again counts from 0
    if not valid.any():
        return None
    return books(
        steps[1:][valid],
        new_updates[valid],
        [(rounds[valid], max_epochs)],
        at_most=True,
        counts=True,
    )


def rate(trace: Trace) -> Books | None:
    """Schedules start from the learning rate that was set, and go down."""
    base_rate = trace.number("learning_rate")
    table = align_metrics(trace, names_of(LEARNING_RATE))
    if base_rate is None or base_rate <= 0 or table is None:
        return None
    steps, (in_force,) = table
    return books(steps, in_force, [(np.full(len(in_force), base_rate), 1.0)], at_most=True)


def rllib_loss(trace: Trace) -> Books | None:
    """PPO's total, of the same minibatches as its parts."""
    parts = (POLICY_LOSS, VALUE_LOSS, ENTROPY, policy.APPROX_KL, policy.KL_COEF, ENTROPY_COEF)
    table = align_metrics(trace, names_of(LOSS, *parts))
    if table is None:
        return None
    steps, (total, loss, critic, entropy, kl, price, bonus) = table
    weight = trace.number("value_coef")
    terms: list[tuple[Floats, Floats | float]] = [(loss, 1.0), (critic, weight or 1.0)]
    terms += [(entropy, -bonus), (kl, price)]
    return books(steps, total, terms, certain=weight is not None)


def two_losses(trace: Trace) -> Books | None:
    """Old TRL's total: policy and value loss, both means over the same minibatches."""
    table = align_metrics(trace, names_of(LOSS, POLICY_LOSS, VALUE_LOSS))
    weight = trace.number("value_coef")
    if table is None or weight is None:
        return None
    steps, (total, loss, critic) = table
    return books(steps, total, [(loss, 1.0), (critic, weight)])


def cleanrl_loss(trace: Trace) -> Books | None:
    """ppo_trxl's total, which it logs of the last minibatch like its parts."""
    table = align_metrics(trace, names_of(LOSS, POLICY_LOSS, VALUE_LOSS, ENTROPY, ENTROPY_COEF))
    weight = trace.number("value_coef")
    other_losses = trace.family("optimiser/loss_part").values()
    if table is None or weight is None or any(np.any(s.values != 0) for s in other_losses):
        return None
    steps, (total, loss, critic, entropy, bonus) = table
    return books(steps, total, [(loss, 1.0), (critic, weight), (entropy, -bonus)])
