"""Gradients keep growing while the outcome does not.

## What it sees
`optimiser/grad_norm` rises (the 95 % interval of its trend lies above 0) and is at the end more
than 1.5 x what it was at the start, while the outcome is not proven to improve. A note.

## Why it matters
A run that settles has gradients that settle: they shrink or keep their level. Growing ones, with
nothing gained, mean that updates pull in changing directions or that the loss grows.

## What to do
Lower the learning rate, or let it decay. Larger batches make the gradient less noisy.

## When it is wrong
A policy that becomes more certain has sparser, larger gradients: in runs that learn this is
normal, and not reported. Supervised losses near their floor do the same.

## References
- McCandlish et al. 2018, "An Empirical Model of Large-Batch Training", on gradient noise.
"""

from rlvitals.metrics.catalogue.optimiser import GRAD_NORM
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import standing
from rlvitals.signals.level import first_last_change
from rlvitals.signals.trend import trend
from rlvitals.types import Trace

GRADIENT_GROWTH_RATIO = Threshold(
    "gradient-not-settling.ratio",
    1.5,
    "gradient norm of the last fifth over that of the first",
    low=1.0,
)


def check(trace: Trace) -> Answer:
    """Compare the last fifth with the first, and ask the trend."""
    norms = trace[GRAD_NORM.name].finite()
    fit, levels = trend(norms.values), first_last_change(norms.values)
    if fit is None or levels is None:
        return Undecided("too few gradient norms for a trend", (GRAD_NORM.name,))
    first, last = levels
    limit = GRADIENT_GROWTH_RATIO.bound(
        trace, f"{GRADIENT_GROWTH_RATIO.on(trace):g} x this run's first fifth", scale=first
    )
    if not (fit.rises and last > limit.value):
        return Clear()
    outcome_trend = standing(trace)
    if weigh.content(outcome_trend):
        return Clear()
    evidence, _ = weigh.sides(outcome_trend)
    is_above = norms.values > limit.value
    return Finding(
        f"the gradient norm grows: {first:.3g} in the first fifth, {last:.3g} in the last",
        severity=Severity.NOTE,
        metric=GRAD_NORM.name,
        began=int(norms.steps[int(is_above.argmax())]),
        ended=int(norms.steps[-1]),
        observed=last,
        bound=limit,
        evidence=evidence,
    )


RULE = Rule(
    name="gradient-not-settling",
    needs=(GRAD_NORM,),
    at_least=30,  # updates: fewer show no trend through this noise
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high for this stage",
        "batches too small: the gradient is mostly noise",
        "the loss grows with the returns' or the KL penalty's scale",
    ),
    remedies=("lower {learning_rate} or let it decay", "use {batch_size|n_steps:larger batches}"),
    explained_by=(
        "learning-rate-jump",
        "gradient-explosion",
        "kl-above-target",
    ),
    thresholds=(GRADIENT_GROWTH_RATIO,),
)
