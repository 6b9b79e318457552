"""Updates are too small to change the policy, while the outcome gets no better.

## What it sees
Over the second half of the run the median of `policy/approx_kl` below 1e-4 nats and the median of
`policy/clip_fraction` below 0.005, where both are logged (one alone is weaker: then at most a
note), with an outcome proven not to improve, and not at its ceiling. A control task's
`optimiser/learning_rate` that never reaches 1e-6 shows the same without them, and so does, where
neither is logged, an `exploration/entropy` that stays within 0.05 % of its level.

Three things show it without a proof about the outcome, unless that improves or the run has only
begun: a gradient norm of exactly 0 in every row beside returns that differ and an entropy that
stays within 0.2 %; an entropy of discrete actions that stays within 0.05 % of its level over the
whole run; and updates that cannot add up. The square root of half of a KL bounds the share of
actions that an update changes (Pinsker), and these shares add up at most: where their sum over the
run is below 2 %, and entropy stays within 0.2 %, the last policy is the first one. A KL of exactly
0 in every row counts only where each batch is trained on more than once: before its first step it
is 0.

SAC as Stable-Baselines3 logs it tells the policy's entropy without logging it: the loss of alpha is
log alpha times what entropy exceeds its target by. Where alpha has fallen to a seventh and entropy
stays where it was, within 0.15 nats, the policy does not answer to it: it is not trained, or
rewards are tiny. A warning unless the outcome improves or holds its best, or the critic learned
nothing.

The policy loss of PPO, where it is the mean over all epochs of an update (skrl), is what the update
gains, in standard deviations of the advantage: nine in ten within 1e-4 of 0 are a warning unless
the outcome improves or holds its best, or one loss has the size of a healthy run's.

A value loss above 1e6 beside an explained variance within 0.01 of 0 leaves a shared gradient clip
to the critic: with a KL as small as above and no sample clipped that is a warning even of an
outcome that rises, as it may creep up for long. Returns are too large for the critic to reach.

## Why it matters
A policy that does not move does not learn. A KL of zero looks like perfect stability.

## What to do
Raise the learning rate; weaken a KL penalty; loosen the clip range. If the gradient is clipped
in every update the value loss may be using up its budget: lower the value coefficient. If the
advantages are zero (a constant reward) nothing of that helps.

## When it is wrong
At the end of a schedule that anneals the learning rate to zero small updates are meant: while
the learning rate is below 30 % of its peak this rule is silent. Language models learn at a KL of
1e-5 to 1e-3: the rule is not asked there. A clamped estimator hides movement.

## References
- Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients".
"""

import math

import numpy as np

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.exploration import ENTROPY, ENTROPY_COEF, ENTROPY_COEF_LOSS
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LEARNING_RATE
from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.known_task import NO_PROGRESS_SHARE
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.shapes import last_stretch_below
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, standing, way_share
from rlvitals.rules.untaught import ENTROPY_SPAN_BOUND, MAX_CHANGED_ACTIONS, no_movement
from rlvitals.rules.untrained import (
    find_constant_error,
    find_gainless_updates,
    find_starved_policy,
)
from rlvitals.rules.width import entropy_excess
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

MIN_UPDATE_KL = Threshold("updates-hardly-move.kl", 1e-4, "KL per update, nats")
MIN_CLIP_FRACTION = Threshold(
    "updates-hardly-move.clipped", 0.005, "share of samples clipped", high=1.0
)
MIN_KL_ORIGIN = "default: a hundredth of the usual target"
MIN_CONTROL_LEARNING_RATE = Threshold(
    "updates-hardly-move.learning-rate", 1e-6, "learning rate of a control task, as it is logged"
)


def check(trace: Trace) -> Answer:
    """Judge the second half of the run: a slow start is none of this rule's business."""
    return (
        _by_rate(trace)
        or _by_sum(trace)
        or _by_temperature(trace)
        or find_gainless_updates(trace)
        or find_starved_policy(trace, MIN_UPDATE_KL.bound(trace, MIN_KL_ORIGIN))
        or _by_updates(trace)
    )


def _by_temperature(trace: Trace) -> Finding | None:
    """Find a policy of SAC whose entropy stands still while the bonus for it fades."""
    excess = entropy_excess(trace, 2 * MIN_OUTCOME_POINTS)
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


def _by_sum(trace: Trace) -> Finding | None:
    """Return the finding of updates that in all cannot have changed the policy."""
    movement = no_movement(trace)
    if movement is None or movement.metric == ENTROPY.name or weigh.content(verdict_trend(trace)):
        return None
    if movement.metric == GRAD_NORM.name:
        return _report_no_gradient(trace, movement.bound)
    kl = trace[APPROX_KL.name].finite()
    return Finding(
        f"updates hardly move the policy: the KL of all {len(kl):,} logged ones together changes "
        f"at most {movement.change:.1%} of its actions",
        severity=Severity.WARNING,
        metric=APPROX_KL.name,
        began=int(kl.steps[0]),
        ended=int(kl.steps[-1]),
        observed=movement.change,
        bound=movement.bound,
        limit_on_curve=False,
        evidence=(f"the median KL per update is {float(np.median(kl.values)):.1e} nats",),
        causes=_causes(trace, trace.first_step + (trace.last_step - trace.first_step) // 2),
    )


def _report_no_gradient(trace: Trace, bound: Bound) -> Finding | None:
    norms, returns = trace[GRAD_NORM.name].finite(), trace.numbers(RETURN.name)
    if returns is not None and not np.ptp(returns.values):
        return None  # advantages of 0: where all returns are alike there is nothing to learn
    return Finding(
        f"updates do not move the policy: the gradient norm is exactly 0 in all {len(norms):,} "
        "rows",
        severity=Severity.WARNING,
        metric=GRAD_NORM.name,
        began=int(norms.steps[0]),
        ended=int(norms.steps[-1]),
        observed=0.0,
        bound=bound,
        causes=(
            "the loss carries no gradient: a log-probability that is detached, or under no_grad",
            "advantages that are all 0",
        ),
        remedies=(
            "print whether the loss requires a gradient",
            "compare the policy's weights before and after an update",
        ),
    )


def _by_updates(trace: Trace) -> Answer:
    half = trace.first_step + (trace.last_step - trace.first_step) // 2
    kl, clip = (
        _late_median(trace, APPROX_KL.name, half),
        _late_median(trace, CLIP_FRACTION.name, half),
    )
    is_small = [kl is not None and kl <= MIN_UPDATE_KL.on(trace)]
    is_small.append(clip is not None and clip < MIN_CLIP_FRACTION.on(trace))
    logged = [kl is not None, clip is not None]
    if not any(logged):
        return _by_entropy(trace)
    is_clamped = "clamped" in getattr(trace.measured.get(APPROX_KL.name), "estimator", "")
    if not (is_small[1] if is_clamped and logged[1] else is_small == logged):
        return Clear()
    trend = standing(trace, since=half)
    if trend.state == "at its ceiling":
        return Clear()
    if _rate_is_low(trace):
        return Undecided("the learning rate has been annealed: small updates are meant")
    if not trend.stalls:
        return Undecided(f"updates are small, but {trend.sentence}", ("outcome/return",))
    return _finding(trace, kl, clip, trend.sentence, lone=not all(logged))


def _by_rate(trace: Trace) -> Finding | None:
    """Judge by a learning rate that is too low to move anything, whatever else is logged."""
    rates = trace.get(LEARNING_RATE.name)
    if (
        rates is None
        or len(rates := rates.finite()) < MIN_OUTCOME_POINTS
        or trace.profile not in kinds.CONTROL
    ):
        return None
    highest = float(rates.values.max())
    limit = MIN_CONTROL_LEARNING_RATE.bound(trace, "default for control tasks")
    if not 0 < highest < limit.value or not _gets_nowhere(trace):
        return None
    return Finding(
        f"updates hardly move the policy: the learning rate is {highest:.1e} at most",
        severity=Severity.WARNING,
        metric=LEARNING_RATE.name,
        began=int(rates.steps[0]),
        ended=int(rates.steps[-1]),
        observed=highest,
        bound=limit,
        evidence=(f"meanwhile {standing(trace).sentence}",),
        causes=("learning rate too low",),
        remedies=("raise the learning rate",),
    )


def _gets_nowhere(trace: Trace) -> bool:
    """See an outcome that got nowhere: proven so, or still where random actions would be."""
    trend = standing(trace)
    if weigh.content(trend):
        return False
    share = way_share(trace, trend)
    return trend.stalls or (share is not None and share < NO_PROGRESS_SHARE)


def _by_entropy(trace: Trace) -> Answer:
    """Judge by entropy, where KL and clipping are not logged: a policy that moves changes it."""
    entropy = trace.get(ENTROPY.name)
    if entropy is None or len(entropy := entropy.finite()) < 2 * MIN_OUTCOME_POINTS:
        lacks = "nothing tells how far updates went"
        lacks = describe_absence(
            trace, lacks, APPROX_KL, CLIP_FRACTION, min_count=MIN_OUTCOME_POINTS
        )
        return Undecided(lacks, (APPROX_KL.name, CLIP_FRACTION.name))
    level = float(np.abs(entropy.values).max())
    span = float(np.ptp(entropy.values)) / level if level > 0 else 0.0
    if span > ENTROPY_SPAN_BOUND.value or not level:
        return Clear()
    sure = no_movement(trace) is not None and not weigh.content(verdict_trend(trace))
    if not (sure or _gets_nowhere(trace)):
        return Undecided("entropy stands still, but the outcome may not", ("outcome/return",))
    return Finding(
        f"updates hardly move the policy: its entropy stays {entropy.values[-1]:.4g} within "
        f"{span:.1e} of it",
        severity=Severity.WARNING,
        metric=ENTROPY.name,
        began=int(entropy.steps[0]),
        ended=int(entropy.steps[-1]),
        observed=span,
        bound=ENTROPY_SPAN_BOUND,
        limit_on_curve=False,
        evidence=(f"meanwhile {trend.sentence}",) if (trend := standing(trace)).stalls else (),
        causes=("the policy's weights are not trained", "learning rate too low"),
        remedies=("check that the optimiser holds the policy's weights", "raise the learning rate"),
    )


def _causes(trace: Trace, half: int) -> tuple[str, ...]:
    """Rank what makes updates small by the learning rate and by the value loss."""
    rate, loss = (
        _late_median(trace, LEARNING_RATE.name, half),
        _late_median(trace, VALUE_LOSS.name, half),
    )
    causes = list(RULE.causes)
    if rate is not None and rate < 1e-5:  # at a higher rate small updates have another cause
        return (f"the learning rate, {rate:.1e}, is too low", *causes[1:])
    if loss is not None and loss > 1e6:  # beside a policy loss of about 1
        causes.insert(0, causes.pop())
        causes[0] = f"{causes[0]}: it is {loss:.2g}, the policy's about 1"
    if rate is not None:
        causes.remove(RULE.causes[0])
    return tuple(causes)


def _rate_is_low(trace: Trace) -> bool:
    rate = trace.get(LEARNING_RATE.name)
    if rate is None or not len(rate := rate.finite()):
        return False
    return bool(rate.values[-1] < 0.3 * rate.values.max())


def _late_median(trace: Trace, name: str, half: int) -> float | None:
    series = trace.get(name)
    late_points = None if series is None else series.since(half).finite()
    return median(late_points.values) if late_points is not None and len(late_points) >= 5 else None


def _finding(
    trace: Trace, kl: float | None, clip: float | None, outcome: str, *, lone: bool
) -> Finding:
    by_clip = clip is not None
    name = CLIP_FRACTION.name if by_clip else APPROX_KL.name
    bound = (
        MIN_CLIP_FRACTION.bound(trace, "default: a twentieth of the lower end of 0.1-0.3")
        if by_clip
        else MIN_UPDATE_KL.bound(trace, MIN_KL_ORIGIN)
    )
    series: Series = trace[name].finite()
    stretch = last_stretch_below(series, max(bound.value, float(series.values[-5:].max()) * 1.01))
    phrases = []
    if clip is not None:
        phrases.append(f"{clip:.2%} of samples are clipped (never above {series.values.max():.3g})")
    if kl is not None:
        phrases.append(f"KL per update is {kl:.1e} nats")
    return Finding(
        f"updates hardly move the policy: {'; '.join(phrases)} (medians of the second half)",
        severity=Severity.NOTE if lone else Severity.WARNING,
        metric=name,
        began=stretch.start if stretch else int(series.steps[0]),
        ended=int(series.steps[-1]),
        observed=clip if clip is not None else kl or 0.0,
        bound=bound,
        evidence=(f"meanwhile {outcome}",),
        causes=_causes(trace, trace.first_step + (trace.last_step - trace.first_step) // 2),
    )


RULE = Rule(
    name="updates-hardly-move",
    needs=(),
    needs_any=(
        APPROX_KL,
        CLIP_FRACTION,
        LEARNING_RATE,
        ENTROPY,
        GRAD_NORM,
        ENTROPY_COEF,
        POLICY_LOSS,
    ),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too low",
        "KL penalty too strong",
        "advantages near zero: a constant reward or a dead signal",
        "value loss uses up the gradient's clipped norm",
    ),
    remedies=(
        "raise {learning_rate}",
        "lower {kl_coef} to allow larger updates",
        "check that the reward varies within a batch",
        "lower {value_coef} or split the optimisers",
    ),
    profiles=(*kinds.CONTROL, Profile.SCHEDULER_PPO),
    thresholds=(
        MIN_UPDATE_KL,
        MIN_CLIP_FRACTION,
        MIN_CONTROL_LEARNING_RATE,
        MAX_CHANGED_ACTIONS,
        persistence("updates-hardly-move", 0.25),
    ),
    persists=persistence("updates-hardly-move", 0.25),  # a slow start is as flat
    explained_by=(
        "setting-out-of-range",
        "environment-changed",
        "updates-cut-short",
        "impossible-value",
        "kl-spike",
        "action-collapse",
        "entropy-collapse",
    ),
)
