"""A number of the optimiser or the policy stands still to the last bit while others move.

## What it sees
A measure of the update (loss, gradient norm, KL, entropy, values) that is bit-identical over at
least 20 successive updates while another one moves in nine of ten of them. Only numbers that were
logged with five digits or more count, and neither 0 nor whole numbers nor a gradient at its clip
limit, nor the entropy of continuous actions, whose width many configurations hold fixed, nor
anything once the learning rate has decayed below a thousandth of its peak. A note; a warning
where the entropy of discrete actions stands still and the policy's KL is 0 or stands still too (a
frozen policy), where the KL per update, 20 times above 0, is exactly 0 from some update to the
end though the policy still chooses (it is no longer trained), or where the critic's values stand
still while the returns they are fitted to move (a frozen critic).

Three more are warnings whatever the outcome does. Explained variance is a function of a rollout's
values and returns alone: bit-identical from the first update to the last beside losses that move,
it is that of one rollout, which is trained on again and again. So is a return, a mean over several
episodes, that is the same number in every row, and no whole one, beside a loss that moves one way
in 95 % of updates. And the ratio of new to old probabilities is exactly 1 before the first step on
a batch and never after it: a KL and a clip fraction of exactly 0 in every row, while the entropy of
discrete actions loses 5 % or more, are those of a log-probability that is computed anew at each
step, where a batch is trained on more than once (by `n_epochs`, by the count of updates, or as
CleanRL's scripts do); else a note.

A value loss that changes by less than 1 % from row to row, beside a policy that moves by 0.001 nats
an update and an explained variance below 0.8 that repeats within 5 %, is of one rollout as well: a
mean over errors of fresh samples scatters by more. A warning unless the outcome improves or holds
its best. So is a KL above 0.001 nats that grows in order (Kendall's test at 1 %), it and the value
loss changing by less than 10 % from row to row, while the entropy of discrete actions keeps within
5 % of a uniform first one: the distance from the policy of that rollout, whatever the outcome does.

## Why it matters
Floating-point numbers that come out of an update that does something never repeat exactly. One
that does is computed once and logged again and again, or belongs to a network that is not
trained: left out of the optimiser, detached, or under `no_grad`.

## What to do
Print the number where it is computed. Compare the weights of the network before and after an
update; check that its parameters are in the optimiser and require gradients.

## When it is wrong
A quantity that is constant by choice under a known name. A log that repeats the last row where
nothing was computed: then all of its numbers stand still together, and nothing is said here.

## References
- Andrychowicz et al. 2021, "What Matters In On-Policy Reinforcement Learning?", on fixed standard
  deviations.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.exploration import ENTROPY, STD
from rlvitals.metrics.catalogue.optimiser import (
    CRITIC_GRAD_NORM,
    GRAD_NORM,
    LEARNING_RATE,
    LOSS,
    WEIGHT_NORM,
)
from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.metrics.catalogue.policy import (
    ADVANTAGE_MEAN,
    APPROX_KL,
    CLIP_FRACTION,
    KL_SIGNED,
    RATIO_VAR,
)
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, PREDICTION_MEAN, RETURN_MEAN
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.catalogue.value import MEAN as VALUE_MEAN
from rlvitals.rules import kinds
from rlvitals.rules.books import FLOAT32_DIGITS, digits
from rlvitals.rules.episode_window import episodes_per_point
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.untaught import epochs
from rlvitals.rules.untrained import SAME_ROLLOUT, keeps_its_distance, repeats_errors
from rlvitals.rules.width import max_entropy
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

MIN_FROZEN_UPDATES = Threshold(
    "frozen-metric.updates", 20.0, "successive updates over which a number is bit-identical"
)
MIN_EXACT_DIGITS = 5  # significant digits: fewer repeat by rounding

MIN_MEAN_EPISODES = 2.0  # of a mean over several
MIN_ONE_WAY_SHARE = 0.95  # of the updates: with fresh samples a loss also reverses
LEVEL_POINTS = 5  # their median is a level
NEW_LOGPROBS_CAUSES = (
    "the old log-probability is computed anew at each step, not kept from the rollout",
    "each batch is used for a single step: then clip range and KL say nothing",
)

# What an update computes; each of them may be told by the others that it stands still.
FREEZABLE_METRICS = (
    POLICY_LOSS,
    VALUE_LOSS,
    LOSS,
    APPROX_KL,
    KL_SIGNED,
    ENTROPY,
    GRAD_NORM,
    CRITIC_GRAD_NORM,
    WEIGHT_NORM,
    RATIO_VAR,
    ADVANTAGE_MEAN,
    EXPLAINED_VARIANCE,
    VALUE_MEAN,
    PREDICTION_MEAN,
    RETURN_MEAN,
)
FROZEN_CRITIC_CAUSES = ("the critic is not trained: not in the optimiser, or detached",)
FROZEN_POLICY_CAUSES = ("the policy is not trained: not in the optimiser, or under no_grad",)


def check(trace: Trace) -> Answer:
    """Find the longest stretch in which one number repeats and others do not."""
    length = int(max(MIN_FROZEN_UPDATES.on(trace), 2.0))
    logged = {m.name: trace[m.name].finite() for m in FREEZABLE_METRICS if m.name in trace}
    logged = {name: series for name, series in logged.items() if len(series) >= length}
    if len(logged) < 2:  # one alone has no other to move
        return Undecided("fewer than two measures of the update are logged", (POLICY_LOSS.name,))
    findings = [
        finding
        for name in logged
        if _counts(trace, name) and (finding := _judge(trace, name, logged, length))
    ]
    findings += [finding] if (finding := _find_stopped_policy(trace, logged, length)) else []
    findings += [finding] if (finding := _unit_ratio(trace, logged, length)) else []
    findings += [finding] if (finding := _same_episodes(trace, logged, length)) else []
    findings += [finding] if (finding := repeats_errors(trace, logged, length)) else []
    uniform = max_entropy(trace) if trace.profile in kinds.CONTROL else None
    if uniform is not None and (finding := keeps_its_distance(logged, length, uniform.value)):
        findings.append(finding)
    if findings:
        return max(findings, key=lambda f: (f.severity, f.ended - f.began))
    return Clear()


def _find_stopped_policy(trace: Trace, logged: Mapping[str, Series], length: int) -> Finding | None:
    """Find a policy that was updated and no longer is: its KL is exactly 0 to the end."""
    kl = logged.get(APPROX_KL.name)
    estimator = getattr(trace.measured.get(APPROX_KL.name), "estimator", "")
    if kl is None or "clamped" in estimator or kl.values[-1] != 0:
        return None
    moved = np.flatnonzero(kl.values != 0)
    if len(moved) < length or len(kl) - 1 - int(moved[-1]) < length:
        return None
    first_step, last_step = int(kl.steps[moved[-1] + 1]), int(kl.steps[-1])
    moving = [
        n
        for n, s in logged.items()
        if n != APPROX_KL.name and _moves(s, first_step, last_step, length)
    ]
    if not moving or _has_tiny_rate(trace, first_step, last_step) or _certain(trace, first_step):
        return None
    count = len(kl) - 1 - int(moved[-1])
    return Finding(
        f"KL per update is exactly 0 in the last {count} updates and was not before, while "
        f"{', '.join(moving[:3])} change: the policy is no longer trained",
        severity=Severity.WARNING,
        metric=APPROX_KL.name,
        began=first_step,
        ended=last_step,
        observed=float(count),
        bound=MIN_FROZEN_UPDATES.bound(trace, "updates, default"),
        limit_on_curve=False,
        causes=FROZEN_POLICY_CAUSES,
    )


def _unit_ratio(trace: Trace, logged: Mapping[str, Series], length: int) -> Finding | None:
    """Find a policy that changes beside a KL of exactly 0: its ratio is taken to itself."""
    kl, entropy = logged.get(APPROX_KL.name), logged.get(ENTROPY.name)
    measured, clipped = trace.measured.get(APPROX_KL.name), trace.numbers(CLIP_FRACTION.name)
    if kl is None or entropy is None or trace.profile not in kinds.CONTROL or measured is None:
        return None
    zero = not kl.values.any() and (clipped is None or not clipped.values.any())
    if not zero or "clamped" in measured.estimator or max_entropy(trace) is None:
        return None
    first = float(np.median(entropy.values[:LEVEL_POINTS]))
    last = float(np.median(entropy.values[-LEVEL_POINTS:]))
    # A log that rounds to few digits shows a small KL as 0.
    loss = logged.get(VALUE_LOSS.name, logged.get(POLICY_LOSS.name))
    precise = (
        loss is not None and max(map(digits, loss.tail(LEVEL_POINTS).values)) >= MIN_EXACT_DIGITS
    )
    # 5 % of the first level: a batch of states changes it by less.
    if len(kl) < length or not precise or first - last < 0.05 * first:
        return None
    # CleanRL's scripts train on each batch several times.
    several = epochs(trace) > 1 or measured.framework == "cleanrl"
    return Finding(
        f"KL per update is exactly 0 in all {len(kl):,} rows, while entropy goes {first:.3g} to "
        f"{last:.3g} nats: the ratio of new to old probabilities is 1 at every step",
        severity=Severity.WARNING if several else Severity.NOTE,
        metric=APPROX_KL.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=0.0,
        bound=MIN_FROZEN_UPDATES.bound(trace, "updates, default"),
        limit_on_curve=False,
        counter=() if several else ("a batch that is used for one step has a KL of 0",),
        causes=NEW_LOGPROBS_CAUSES,
        remedies=("keep the log-probabilities of the rollout, and use them in every epoch",),
    )


def _same_episodes(trace: Trace, logged: Mapping[str, Series], length: int) -> Finding | None:
    """Find means over several episodes that are one number, beside a loss that has no noise."""
    returns, loss = trace.numbers(RETURN.name, length), logged.get(LOSS.name)
    if returns is None or loss is None or np.ptp(returns.values) > 0:
        return None
    count, value = episodes_per_point(trace, RETURN.name, returns), float(returns.values[0])
    steps = np.diff(loss.values)
    share = float(max((steps > 0).mean(), (steps < 0).mean()))
    if count < MIN_MEAN_EPISODES or value == np.rint(value) or share < MIN_ONE_WAY_SHARE:
        return None
    return Finding(
        f"return is {value:.6g} in all {len(returns):,} rows, each a mean over about {count:.0f} "
        f"episodes, while the loss moves one way in {share:.0%} of updates",
        severity=Severity.WARNING,
        metric=RETURN.name,
        began=int(returns.steps[0]),
        ended=int(returns.steps[-1]),
        observed=float(len(returns)),
        bound=MIN_FROZEN_UPDATES.bound(trace, "updates, default"),
        limit_on_curve=False,
        causes=SAME_ROLLOUT,
    )


def _certain(trace: Trace, first_step: int) -> bool:
    """Tell a policy that has nothing left to decide: it may be trained and yet not move."""
    entropy = trace.get(ENTROPY.name)
    level = None if entropy is None else median(entropy.since(first_step).finite().values)
    # Below 1e-3 nats, the KL of a policy rounds to 0 in float32.
    return level is not None and _discrete(trace) and level <= 1e-3


def _counts(trace: Trace, name: str) -> bool:
    """Leave out what is constant by choice: the entropy of a Gaussian of fixed width."""
    if name != ENTROPY.name:
        return True
    return STD.name not in trace and _discrete(trace)


def _discrete(trace: Trace) -> bool:
    return trace.profile in kinds.LANGUAGE or max_entropy(trace) is not None


def _judge(trace: Trace, name: str, logged: Mapping[str, Series], length: int) -> Finding | None:
    series = logged[name]
    first, last = _longest(series.values)
    value = float(series.values[first])
    if last - first + 1 < length or not _precise(trace, name, value):
        return None
    first_step, last_step = int(series.steps[first]), int(series.steps[last])
    moving = [
        n for n, s in logged.items() if n != name and _moves(s, first_step, last_step, length)
    ]
    if not moving or _has_tiny_rate(trace, first_step, last_step):
        return None
    severity, causes = _network(trace, name, moving, first_step, last_step)
    if name == EXPLAINED_VARIANCE.name and last - first + 1 == len(series):
        severity, causes = Severity.WARNING, SAME_ROLLOUT
    return Finding(
        f"{name} is {value:.8g} to the last bit in {last - first + 1} successive updates, "
        f"while {', '.join(moving[:3])} change",
        severity=severity,
        metric=name,
        began=first_step,
        ended=last_step,
        observed=float(last - first + 1),
        bound=MIN_FROZEN_UPDATES.bound(trace, "updates, default"),
        limit_on_curve=False,
        causes=causes,
    )


def _longest(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and last index of the longest run of equal values."""
    edges = np.flatnonzero(np.diff(values, prepend=np.nan, append=np.nan) != 0)
    widths = np.diff(edges)
    index = int(widths.argmax())
    return int(edges[index]), int(edges[index + 1]) - 1


def _precise(trace: Trace, name: str, value: float) -> bool:
    """Tell a number that cannot repeat by rounding, by a limit or by being nothing."""
    if value == np.rint(value) or digits(value) < min(MIN_EXACT_DIGITS, FLOAT32_DIGITS):
        return False
    limit = trace.number("max_grad_norm")
    norms = (GRAD_NORM.name, CRITIC_GRAD_NORM.name)
    # A norm within 0.1 % of its limit is clipped.
    return not (name in norms and limit is not None and abs(value - limit) <= 1e-3 * limit)


def _has_tiny_rate(trace: Trace, first_step: int, last_step: int) -> bool:
    """Tell whether the learning rate is by then too small to move a float32."""
    rate = trace.get(LEARNING_RATE.name)
    if rate is None or not len(rates := rate.finite()):
        return False
    inside = rates.since(first_step).until(last_step).values
    # At 0.1 % of the highest learning rate, float rounding hides the updates.
    return len(inside) > 0 and float(inside.min()) <= 1e-3 * float(rates.values.max())


def _moves(series: Series, first_step: int, last_step: int, length: int) -> bool:
    """Tell whether a number changes in most updates of the stretch."""
    inside = series.since(first_step).until(last_step).values
    return len(inside) >= length and float(np.mean(np.diff(inside) != 0)) >= 0.9  # of the updates


def _network(
    trace: Trace, name: str, moving: list[str], first_step: int, last_step: int
) -> tuple[Severity, tuple[str, ...]]:
    """Say which network is frozen, where two numbers agree on one."""
    if name == ENTROPY.name:
        constant = [
            np.unique(trace[m.name].since(first_step).until(last_step).finite().values).size == 1
            for m in (APPROX_KL, KL_SIGNED)
            if m.name in trace
        ]
        return (
            (Severity.WARNING, FROZEN_POLICY_CAUSES)
            if constant and all(constant)
            else (Severity.NOTE, FROZEN_POLICY_CAUSES)
        )
    if name in {m.name for m in (VALUE_MEAN, PREDICTION_MEAN)}:
        fitted = RETURN_MEAN.name in moving or VALUE_LOSS.name in moving
        return (Severity.WARNING if fitted else Severity.NOTE), FROZEN_CRITIC_CAUSES
    return Severity.NOTE, ()


RULE = Rule(
    name="frozen-metric",
    needs=(),
    check=check,
    doc=__doc__,
    causes=(
        "it is computed once and logged again and again",
        "the network it comes from is not trained",
    ),
    remedies=(
        "print the number where it is computed",
        "compare the network's weights before and after an update",
        "check that its parameters are in the optimiser and require gradients",
    ),
    profiles=kinds.WITH_REWARD,
    explained_by=(
        "setting-out-of-range",
        "updates-hardly-move",
    ),
    thresholds=(MIN_FROZEN_UPDATES,),
)
