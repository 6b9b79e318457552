"""The KL coefficient climbs and climbs, and KL does not come down.

## What it sees
The coefficient (logged, or worked out as -non_score / KL) at four times its start or more while
KL to the reference is above the run's `kl_target`; without a target, while KL has not fallen by a
fifth since the climb began. A note where what is learned still improves.

## Why it matters
A controller that has lost its grip turns the reward into a KL penalty: soon that is all the
policy is trained on. It often comes shortly before numbers blow up.

## What to do
Find what drives KL: a learning rate too high, a reward that pays for odd text, a target below
what the task needs. Then set a target that can be met, or a constant coefficient.

## When it is wrong
A controller that starts from a very small coefficient climbs by design until KL meets its target:
then KL falls, and the rule is silent.

## References
- Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences", section 2.2.
"""

import numpy as np

from rlvitals.metrics.catalogue.policy import KL_COEF, KL_TO_REFERENCE
from rlvitals.metrics.catalogue.reward import NON_SCORE
from rlvitals.metrics.metric import Bound
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import start
from rlvitals.rules.weigh import severity, sides
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

KL_COEF_FACTOR = Threshold(
    "kl-coefficient-runaway.factor",
    4.0,
    "x its own start, that the coefficient has grown to",
    low=1.0,
)
MIN_KL_COEF_POINTS = 20


def check(trace: Trace) -> Answer:
    """Compare the coefficient with its start, and KL with its target or its own past."""
    coefficient = _coefficient(trace)
    if coefficient is None or len(coefficient) < MIN_KL_COEF_POINTS:
        reason = f"fewer than {MIN_KL_COEF_POINTS} KL coefficients are logged or implied"
        return Undecided(reason, (KL_COEF.name,))
    first = start(coefficient)
    tail = max(MIN_KL_COEF_POINTS // 4, len(coefficient) // 10)
    last = median(coefficient.tail(tail).values)
    if not first or first < 0 or last is None:
        return Undecided("the KL coefficient starts at 0 or below: there is no scale")
    if last < KL_COEF_FACTOR.on(trace) * first:
        return Clear()
    kl = trace[KL_TO_REFERENCE.name].finite()
    climbs = int(coefficient.steps[_climb(coefficient.values, first)])
    now_kl = median(kl.tail(tail).values) or 0.0
    target = trace.number("kl_target")
    at_climb = kl.until(climbs).tail(tail).values
    limit = Bound(target, "the run's kl_target") if target else None
    if limit is None:  # a coefficient four times as large must show
        kl_at_climb = median(at_climb) or now_kl
        limit = Bound(0.8 * kl_at_climb, "four fifths of KL where the climb began")
    if now_kl < limit.value:
        return Clear()
    trend = learning_trend(trace, since=climbs)
    evidence, counter = sides(trend)
    return Finding(
        f"the KL coefficient grew {last / first:.1f} x, {first:.3g} to {last:.3g}, and KL is still "
        f"{now_kl:.3g} nats per sequence",
        severity=severity(trend, unknown=Severity.WARNING if target else Severity.NOTE),
        metric=KL_COEF.name if KL_COEF.name in trace else NON_SCORE.name,
        began=climbs,
        ended=int(coefficient.steps[-1]),
        observed=now_kl,
        bound=limit,
        evidence=evidence,
        counter=counter,
        curve=Curve("KL coefficient", coefficient),
    )


def _coefficient(trace: Trace) -> Series | None:
    """Return what is logged; else the penalty over the KL it was paid for, step by step."""
    if KL_COEF.name in trace:
        return trace[KL_COEF.name].finite()
    paid, kl = trace.get(NON_SCORE.name), trace[KL_TO_REFERENCE.name]
    if paid is None:
        return None
    _, rows, within = np.intersect1d(kl.steps, paid.steps, return_indices=True)
    kl_points = kl.where(rows)
    # Below 1e-3 nats per sequence, the quotient of penalty and KL is rounding.
    keep = np.isfinite(kl_points.values) & (np.abs(kl_points.values) > 1e-3)
    penalty = paid.values[within][keep]
    kl_points = kl_points.where(keep)
    return Series(kl_points.steps, kl_points.times, -penalty / kl_points.values).finite()


def _climb(values: np.ndarray, first: float) -> int:
    """Return the last index before the coefficient left twice its start for good."""
    low = np.flatnonzero(values <= 2 * first)
    return int(low[-1]) if len(low) else 0


RULE = Rule(
    name="kl-coefficient-runaway",
    needs=(KL_TO_REFERENCE,),
    needs_any=(KL_COEF, NON_SCORE),
    at_least=MIN_KL_COEF_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high for the controller to hold",
        "a kl_target below what any learning needs",
        "a reward that pays for leaving the reference",
    ),
    remedies=(
        "lower {learning_rate}",
        "set {kl_target:a target} that a healthy run of this task meets, or a constant coefficient",
        "read responses: what does the reward pay for?",
    ),
    profiles=(Profile.RLHF_PPO,),
    explained_by=(
        "setting-out-of-range",
        "ratio-off-one",
        "learning-rate-jump",
        "kl-above-target",
        "reference-kl-out-of-range",
    ),
    thresholds=(KL_COEF_FACTOR,),
)
