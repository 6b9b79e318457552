"""The policy gets no signal: its loss, or its gradient, is zero update after update.

## What it sees
`policy/loss` within 1e-6 of zero in 20 successive updates, and a second sign in the same updates:
KL per update below 1e-6, or a gradient norm of zero. Where language models are trained in groups
(GRPO, PSR, NSR, W-REINFORCE) the loss is zero by construction as long as the policy is the one
that sampled; there it is the gradient norm: zero in 18 of 20 successive updates. A warning only
where the outcome is proven to stall or repeats one value exactly, or where nine tenths of all
updates have no gradient and it does not improve.

## Why it matters
No signal, no learning: advantages are zero or cancel, or the policy is so certain that its
gradient vanishes. The run goes on paying for samples.

## What to do
Find which factor is zero. Rewards all equal: change the task's difficulty or the reward. Entropy
near zero: the policy has collapsed; restart from before. Otherwise the learning rate, a
frozen parameter, a mask that covers everything.

## When it is wrong
A run at its maximum has nothing left to learn from; that is said in its favour, and is a note.
SAC's and DQN's losses are no policy losses and are not looked at.

## References
- Yu et al. 2025, "DAPO", section 3.2, on groups without a gradient.
"""

import numpy as np

from rlvitals.metrics.absence import siblings
from rlvitals.metrics.catalogue.optimiser import GRAD_NORM
from rlvitals.metrics.catalogue.policy import APPROX_KL, LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import Stretch, below
from rlvitals.rules.standing import outcome, standing
from rlvitals.rules.untaught import MAX_ZERO_GRADIENT as NO_GRADIENT
from rlvitals.rules.untaught import untaught
from rlvitals.types import Series, Trace

MIN_POLICY_LOSS = Threshold(
    "policy-loss-flat.loss", 1e-6, "size of the policy loss that is no signal"
)
FLAT_GRADIENT = Threshold(
    "policy-loss-flat.gradient", NO_GRADIENT, "gradient norm that is float32's rounding of nothing"
)
FLAT_LOSS_WINDOW = 20  # updates


def check(trace: Trace) -> Answer:
    """Look at the gradient where groups are compared, else at the loss and a second sign."""
    if trace.profile in kinds.GROUPED:
        return _by_gradient(trace)
    loss = trace.get(LOSS.name)
    if loss is None or len(loss.finite()) < FLAT_LOSS_WINDOW:
        return Undecided(f"fewer than {FLAT_LOSS_WINDOW} policy losses are logged", (LOSS.name,))
    nothing = MIN_POLICY_LOSS.bound(trace, "default: with advantages of size 1, no signal")
    stretch = below(_size(loss), nothing.value, FLAT_LOSS_WINDOW, 1.0)
    if stretch is None:
        return Clear()
    second = _second_sign(trace, stretch)
    if second is None:
        return Undecided(
            "the policy loss is zero, and no KL is logged there that says whether the policy moves",
            (APPROX_KL.name, GRAD_NORM.name),
        )
    if not second:
        return Clear()
    description = f"the policy loss is within {nothing.value:g} of zero"
    return _finding(trace, LOSS.name, loss, stretch, (description, second), nothing)


def _by_gradient(trace: Trace) -> Answer:
    norms = trace.get(GRAD_NORM.name)
    if norms is None or len(norms.finite()) < FLAT_LOSS_WINDOW:
        return Undecided(
            f"fewer than {FLAT_LOSS_WINDOW} gradient norms are logged", (GRAD_NORM.name,)
        )
    limit = FLAT_GRADIENT.bound(trace, "default")
    # Share of a window: at times one group of many differs.
    stretch = below(_size(norms), limit.value, FLAT_LOSS_WINDOW, 0.9)
    if stretch is None:
        return Clear()
    during = stretch.of(norms).values
    share = float((np.abs(during) < limit.value).mean())
    zero = f"{share:.0%} of these updates have no gradient at all"
    descriptions = ("the gradient is zero", zero)
    return _finding(trace, GRAD_NORM.name, norms, stretch, descriptions, limit)


def _size(series: Series) -> Series:
    return Series(series.steps, series.times, np.abs(series.values))


def _second_sign(trace: Trace, stretch: Stretch) -> str | None:
    """Say what else shows that nothing moves; empty if it moves, None if nothing can tell."""
    has_kl, estimates = False, (APPROX_KL, *siblings(APPROX_KL))
    for metric, limit in (
        *((kl, 1e-6) for kl in estimates),  # nats: one update at a learning rate of zero
        (GRAD_NORM, FLAT_GRADIENT.on(trace)),
    ):
        series = trace.get(metric.name)
        during = stretch.of(series).finite() if series else None
        if during is not None and len(during):
            # A gradient norm that is not zero may be the critic's: it confirms, it does not clear.
            has_kl = has_kl or metric in estimates
            middle = float(np.median(np.abs(during.values)))
            if middle < limit:
                return f"{metric.title} is {middle:.2g} in the median of these updates"
    return "" if has_kl else None


def _finding(  # noqa: PLR0913, PLR0917 - the parts of one noun, from the two callers above
    trace: Trace,
    metric: str,
    series: Series,
    stretch: Stretch,
    descriptions: tuple[str, str],
    bound: Bound,
) -> Finding:
    trend = standing(trace, since=stretch.start, until=stretch.end)
    evidence, counter = weigh.sides(trend)
    during = stretch.of(series)
    sure = _is_constant(trace, stretch) or untaught(trace, FLAT_GRADIENT.on(trace))
    unknown = Severity.WARNING if sure else Severity.NOTE
    severity = stretch.severity(weigh.severity(trend, unknown=unknown))
    return Finding(
        f"no signal reaches the policy: {descriptions[0]} over {len(during)} updates",
        severity=severity,
        metric=metric,
        began=stretch.start,
        ended=stretch.end,
        observed=float(np.nanmedian(during.values)),
        bound=bound,
        evidence=(descriptions[1], *evidence),
        counter=counter,
    )


def _is_constant(trace: Trace, stretch: Stretch) -> bool:
    """Tell whether the outcome repeats one value: too little for a trend, enough for us."""
    picked = outcome(trace)
    if picked is None:
        return False
    values = stretch.of(picked[1]).values
    return values.size >= FLAT_LOSS_WINDOW and bool((values == values[0]).all())


RULE = Rule(
    name="policy-loss-flat",
    needs=(),
    needs_any=(LOSS, GRAD_NORM),
    at_least=FLAT_LOSS_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "rewards are all equal: every advantage is zero",
        "the policy is certain of every action: its gradient vanishes",
        "a learning rate of nearly zero, a frozen parameter, a mask over everything",
    ),
    remedies=(
        "check that rewards differ within a batch, and within a group",
        "look at entropy: restart from before it collapsed",
        "check which parameters the optimiser holds",
    ),
    explained_by=(
        "setting-out-of-range",
        "environment-changed",
        "not-a-number",
        "learning-rate-too-high",
        "learning-rate-jump",
        "entropy-collapse",
        "action-collapse",
        "samples-all-filtered",
        "constant-reward",
        "zero-variance-groups",
        "judge-outage",
    ),
    profiles=(*kinds.ACTOR_CRITIC, *kinds.GROUPED),
    thresholds=(MIN_POLICY_LOSS, FLAT_GRADIENT),
)
