"""A critic or a policy that is at the end what it was at first, and updates that see one rollout.

Even a critic that cannot tell states apart learns the mean of the returns, and its loss falls. Of
124 healthy runs of PPO and A2C the value loss kept three tenths of its first level in 48, and all
of these came to explain 0.45 or more in the last third. In healthy runs of DQN and SAC the lowest
tenth of the losses was at most a quarter of the highest.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY
from rlvitals.metrics.catalogue.optimiser import LOSS as TOTAL_LOSS
from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, LOSS, Q_MEAN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import order_chance
from rlvitals.rules.rule import Answer, Clear, Finding, Severity, Threshold, Undecided
from rlvitals.rules.spent import ends_far, too_early
from rlvitals.rules.standing import Standing, standing, way_share
from rlvitals.signals.rolling import block_means, rolling_median
from rlvitals.signals.trend import trend
from rlvitals.types import Profile, Series, Trace

EXPLAINED_FACTOR = 3.0  # x the least explained variance: median of the last third
HIGH_EV = 0.5  # of five updates: reached by chance, too, so it clears no critic
EVEN_LOSS_RATIO = 0.5  # lowest over highest loss, and median over first
STEP_PAY_FACTOR = 2.5  # x the mean reward of a step
MIN_Q_ERROR = 2.0  # x the mean Q: a critic that errs by more predicts nothing
FIRST_LOSSES = 5  # points
MIN_CRITIC_UPDATES = 20  # losses
HIGH_PERCENT = 90.0  # of the updates
BLIND_CAUSE = "observations are constant, or do not show what the return depends on"
UNTRAINED_CAUSES = (
    "the critic's weights are left out of the training, or its loss out of the sum",
    "rewards carry noise that no state tells",
    "rewards are far larger than what the critic's steps can reach",
)
SAME_ROLLOUT = ("every update trains on the same rollout: it is collected once, or never replaced",)


def find_useless_critic(
    trace: Trace, metric: str, explained: Series, threshold: Threshold
) -> Finding | None:
    """Find an actor's critic that never explained anything and whose loss did not fall."""
    loss = trace.numbers(LOSS.name, MIN_CRITIC_UPDATES)
    judged = trace.profile in kinds.CONTROL and len(explained) >= MIN_CRITIC_UPDATES
    limit = threshold.bound(
        trace, f"{EXPLAINED_FACTOR:g} x what a critic explains at least", scale=EXPLAINED_FACTOR
    )
    if loss is None or not judged or _content(trace):
        return None
    usual, first = float(np.median(loss.values)), float(np.median(loss.values[:FIRST_LOSSES]))
    first_ev, last_ev = (float(np.median(third)) for third in _ends(explained.values))
    # Explained variance of the first third, and gain on it: below 0 it explains nothing.
    better = first_ev > 0.4 or last_ev >= limit.value or last_ev - max(first_ev, 0.0) > 0.1
    if better or usual < 0.3 * first:  # of the first losses
        return None
    # A policy that gets better, by a critic that does: a longer run may tell.
    learned = trend(np.maximum(explained.values, 0.0))
    if weigh.content(standing(trace)) and learned is not None and learned.low > 0:
        return None
    medians = rolling_median(explained.values, FIRST_LOSSES, min_count=FIRST_LOSSES)
    best = float(medians[FIRST_LOSSES - 1 :].max())
    text = "nothing that lasts" if best >= HIGH_EV else "nothing"
    once = f" after {best:.2g} at best" if best >= HIGH_EV else ""
    blind = float(np.percentile(np.abs(explained.values), HIGH_PERCENT)) < 1e-4  # same for all
    finding = _finding(
        trace,
        f"the critic has learned {text}: explained variance is {first_ev:.2g} in the first third "
        f"of {len(explained)} updates and {last_ev:.2g} in the last{once}, and the value loss "
        f"{usual:.3g} in the median, {first:.3g} at first",
        (metric, explained, last_ev),
        limit,
        (BLIND_CAUSE, *UNTRAINED_CAUSES) if blind else (*UNTRAINED_CAUSES, BLIND_CAUSE),
    )
    return replace(finding, severity=Severity.NOTE) if _learns(trace, explained.values) else finding


def _learns(trace: Trace, explained: NDArray[np.float64]) -> bool:
    """Return True if the policy has come far and still rises, by a critic that helps a little."""
    trend, positive = standing(trace), float((_ends(explained)[1] > 0).mean())
    # A third of the way from a random to a solved policy.
    has_come_far = trend.improves and (way_share(trace, trend) or 0.0) >= 1 / 3
    return has_come_far and positive >= 0.9  # 0.84 at most of 57 broken runs


def _ends(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the first and the last third."""
    third = len(values) // 3
    return values[:third], values[-third:]


def find_constant_error(trace: Trace) -> Answer:
    """Find a Q-learner whose error stays what it was at first, far beyond what a step pays."""
    name = LOSS.name if LOSS.name in trace else TOTAL_LOSS.name
    loss, returns, lengths = (
        trace.numbers(metric, min_points)
        for metric, min_points in (
            (name, MIN_CRITIC_UPDATES),
            (RETURN.name, 1),
            (EPISODE_LENGTH.name, 1),
        )
    )
    if loss is None:
        return Undecided(f"fewer than {MIN_CRITIC_UPDATES} losses are logged", (LOSS.name,))
    if returns is None or lengths is None:
        return Undecided("what a step pays is not known", (RETURN.name, EPISODE_LENGTH.name))
    if _content(trace):
        return Clear()
    if (finding := _no_prediction(trace, name, loss)) is not None:
        return finding
    low, usual, high = (float(q) for q in np.percentile(loss.values, (10.0, 50.0, HIGH_PERCENT)))
    first, error = float(np.median(loss.values[:FIRST_LOSSES])), float(np.sqrt(max(usual, 0.0)))
    paid = float(np.abs(returns.values).mean() / max(lengths.values.mean(), 1.0))
    even = (
        low >= EVEN_LOSS_RATIO * high
        and EVEN_LOSS_RATIO * first <= usual <= first / EVEN_LOSS_RATIO
    )
    if not even or paid == 0 or error < STEP_PAY_FACTOR * paid:
        return Clear()
    return _finding(
        trace,
        f"the critic has learned nothing: its error is {error:.3g} from the first update to the "
        f"last, {error / paid:.0f} times what a step pays on average",
        (name, loss, error),
        Bound(
            STEP_PAY_FACTOR * paid, f"{STEP_PAY_FACTOR:g} x what a step pays on average in this run"
        ),
        ("rewards carry noise that no state tells", "rewards are paid at random"),
    )


def _no_prediction(trace: Trace, name: str, loss: Series) -> Finding | None:
    """Find a critic whose error is no less than at first and outweighs all that it predicts."""
    q = trace.numbers(Q_MEAN.name, MIN_CRITIC_UPDATES)
    if q is None:
        return None
    first = float(np.median(loss.values[:FIRST_LOSSES]))
    usual = float(np.median(_ends(loss.values)[1]))
    predicted = float(np.median(np.abs(_ends(q.values)[1])))
    error = float(np.sqrt(max(usual, 0.0)))
    if usual < first or error <= MIN_Q_ERROR * predicted:
        return None
    return _finding(
        trace,
        f"the critic has learned nothing: its loss is {usual:.3g} in the last third of the updates "
        f"and was {first:.3g} at first, an error of {error:.3g} beside a mean value of "
        f"{predicted:.3g}",
        (name, loss, error),
        Bound(MIN_Q_ERROR * predicted, f"{MIN_Q_ERROR:g} x the mean value that it predicts"),
        UNTRAINED_CAUSES,
    )


def _content(trace: Trace) -> bool:
    """Tell a run that it is too early to judge, or that gets along without a critic."""
    return bool(too_early(trace)) or (weigh.content(standing(trace)) and not ends_far(trace))


def _finding(
    trace: Trace,
    summary: str,
    curve: tuple[str, Series, float],
    bound: Bound,
    causes: tuple[str, ...],
) -> Finding:
    trend = standing(trace)
    if trend.state == "unknown":
        trend = verdict_trend(trace)  # what is said is of the whole run, as the verdict is
    evidence, counter = weigh.sides(trend)
    metric, series, level = curve
    # A policy that does what the critic says: as grave as the fall of the outcome that it explains.
    follows = trace.profile is Profile.OFF_POLICY and verdict_trend(trace).state == "falling"
    stalled = Severity.ERROR if follows else Severity.WARNING
    severity = weigh.severity(trend, stalled=stalled)
    return Finding(
        summary,
        severity=max(severity, Severity.WARNING) if ends_far(trace) else severity,
        metric=metric,
        began=int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=level,
        bound=bound,
        evidence=evidence,
        counter=counter,
        causes=causes,
    )


def repeats_errors(trace: Trace, logged: Mapping[str, Series], length: int) -> Finding | None:
    """Find a value loss that scatters by less than fresh samples make it."""
    loss, kl = logged.get(LOSS.name), logged.get(APPROX_KL.name)
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
    moves = float(np.median(kl.values)) >= 1e-3  # nats an update
    level = float(np.median(explained.values))
    # That of a critic which is one number is 0 for every rollout.
    repeats = float(np.median(np.abs(np.diff(explained.values)))) <= 0.05 * abs(level)
    is_constant = scatter <= bound.value and repeats and level <= 0.8  # else few errors
    if not (is_constant and moves) or weigh.content(verdict_trend(trace)):
        return None
    return Finding(
        f"the value loss changes by {scatter:.1%} from row to row, at {np.median(values):.3g}, "
        f"while each update moves the policy by {np.median(kl.values):.2g} nats: errors of fresh "
        "samples scatter by more",
        severity=Severity.WARNING,
        metric=LOSS.name,
        began=int(loss.steps[0]),
        ended=int(loss.steps[-1]),
        observed=scatter,
        bound=bound,
        limit_on_curve=False,
        causes=SAME_ROLLOUT,
    )


def keeps_its_distance(
    logged: Mapping[str, Series], length: int, uniform_entropy: float
) -> Finding | None:
    """Find a KL that grows in order beside a policy that stays uniform: of one rollout's policy.

    `uniform_entropy` is the largest, in nats. Updates by fresh rollouts scatter, and updates that
    keep one way change the entropy. In healthy runs whose entropy stays, the KL changes by 30 %
    from row to row.
    """
    kl, loss, entropy = (logged.get(m.name) for m in (APPROX_KL, LOSS, ENTROPY))
    if kl is None or loss is None or entropy is None or len(kl) < length:
        return None
    if kl.values.min() <= 0 or loss.values.min() <= 0 or float(np.median(kl.values)) < 1e-3:
        return None
    bound = Bound(0.1, "default: from row to row")
    kl_scatter, loss_scatter = (
        float(np.median(np.abs(np.diff(np.log(series.values))))) for series in (kl, loss)
    )
    first, last = (
        float(np.median(v)) for v in (entropy.values[:3], entropy.values[-FIRST_LOSSES:])
    )
    is_open = first >= 0.9 * uniform_entropy and abs(last - first) <= 0.05 * first
    levels = block_means(kl.values, 10)
    if max(kl_scatter, loss_scatter) > bound.value or not is_open or order_chance(levels) > 0.01:
        return None
    return Finding(
        f"KL grows from {levels[0]:.2g} to {levels[-1]:.2g} nats, by {kl_scatter:.1%} from row to "
        f"row, while entropy stays {first:.3g} to {last:.3g}: it is the distance from one policy",
        severity=Severity.WARNING,
        metric=APPROX_KL.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=kl_scatter,
        bound=bound,
        limit_on_curve=False,
        evidence=(f"the value loss changes by {loss_scatter:.1%} from row to row",),
        causes=SAME_ROLLOUT,
    )


def find_starved_policy(trace: Trace, limit: Bound) -> Finding | None:
    """Find updates of less than `limit` nats beside a large value loss that explains nothing."""
    # Normalised advantages keep the policy's gradient near 1, the value loss's is its root: where
    # both share a clipped norm the policy is left a thousandth.
    min_loss = 1e6
    names = (APPROX_KL.name, LOSS.name, EXPLAINED_VARIANCE.name)
    kl, loss, explained = (trace.numbers(name, MIN_CRITIC_UPDATES) for name in names)
    if kl is None or loss is None or explained is None or too_early(trace):
        return None
    if "clamped" in getattr(trace.measured.get(APPROX_KL.name), "estimator", ""):
        return None
    half = trace.first_step + (trace.last_step - trace.first_step) // 2
    late = [series.since(half).values for series in (kl, loss)]
    if not all(map(len, late)):
        return None
    late_kl, late_loss = (float(np.median(values)) for values in late)
    clipped = trace.numbers(CLIP_FRACTION.name)
    moves = late_kl > limit.value or (clipped is not None and np.median(clipped.values) > 0)
    explains = float(np.percentile(np.abs(explained.values), 90.0)) > 0.01
    if moves or explains or late_loss <= min_loss:
        return None
    outcome_trend = standing(trace)
    if outcome_trend.state == "at its ceiling":
        return None
    return _report_starving(outcome_trend, kl, (late_kl, late_loss), limit)


def _report_starving(
    trend: Standing, kl: Series, late: tuple[float, float], limit: Bound
) -> Finding:
    """Report a KL beside a value loss, both medians of the second half."""
    late_kl, late_loss = late
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
    so that the trainer has to be one that logs the mean. So is that of a policy that a large update
    made deterministic.
    """
    loss = trace.numbers(POLICY_LOSS.name, MIN_CRITIC_UPDATES)
    source = trace.measured.get(POLICY_LOSS.name)
    if loss is None or source is None or source.framework != "skrl" or too_early(trace):
        return None
    bound = Bound(1e-4, "default: sd of the advantage")
    largest = float(np.percentile(np.abs(loss.values), HIGH_PERCENT))
    # In healthy runs of four trainers nine in ten losses reach 0.004 at least, in size: a single
    # loss of that size has moved the policy.
    has_moved = float(np.abs(loss.values).max()) >= 0.004
    if largest >= bound.value or has_moved or weigh.content(verdict_trend(trace)):
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
