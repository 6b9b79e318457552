"""Nearly every update's gradient is cut to the clip limit.

## What it sees
The share of updates whose `optimiser/grad_norm` exceeds the run's own `max_grad_norm`: above 90 %
is a note, where the outcome is not proven to improve. Undecided where that setting is not known.
Where a framework logs the norm only after clipping, the share of updates that sit at its largest
value stands in.

## Why it matters
When every gradient is cut to the same length, clipping sets the step size and the gradient's own
size no longer counts: the learning rate means something else than it seems to.

## What to do
Nothing, if the run learns: Adam divides by the gradient's size anyway. Otherwise raise the limit,
or lower the loss's scale (value_coef, reward scale), which often fills the norm.

## When it is wrong
It is the normal state of many healthy runs: PPO's default limit of 0.5 clips nearly every update
of a critic that is fitted to returns of 100. That is why this is never more than a note, and
nothing at all in a run that learns.

## References
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import CLIPPED_GRAD_NORM, GRAD_NORM
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import standing
from rlvitals.types import Series, Trace

MAX_CLIPPED_UPDATE_SHARE = Threshold(
    "gradient-always-clipped.share", 0.9, "share of the updates that are clipped", high=1.0
)
MIN_NORM_UPDATES = 20  # a share of .9 of fewer happens by chance


def check(trace: Trace) -> Answer:
    """Count the updates beyond the limit."""
    max_norm = trace.number("max_grad_norm")
    norms, clipped = trace.get(GRAD_NORM.name), trace.get(CLIPPED_GRAD_NORM.name)
    if norms is not None and len(norms := norms.finite()) >= MIN_NORM_UPDATES:
        if max_norm is None:
            return Undecided("the run's max_grad_norm is not known", ("max_grad_norm",))
        bound = Bound(max_norm, "the run's max_grad_norm")
        return _answer(trace, GRAD_NORM.name, norms, norms.values > max_norm, bound)
    if clipped is None or len(clipped := clipped.finite()) < MIN_NORM_UPDATES:
        return Undecided(f"fewer than {MIN_NORM_UPDATES} gradient norms", (GRAD_NORM.name,))
    limit = float(clipped.values.max()) if max_norm is None else max_norm
    origin = "the largest norm after clipping" if max_norm is None else "the run's max_grad_norm"
    # Relative: float32's rounding of a clipped norm.
    at_limit = (clipped.values >= limit * (1 - 1e-3)) & (limit > 0)
    return _answer(trace, CLIPPED_GRAD_NORM.name, clipped, at_limit, Bound(limit, origin))


def _answer(
    trace: Trace, metric: str, norms: Series, beyond: np.typing.NDArray[np.bool_], bound: Bound
) -> Answer:
    share = float(beyond.mean())
    if share <= MAX_CLIPPED_UPDATE_SHARE.on(trace):
        return Clear()
    trend = standing(trace)
    if weigh.content(trend):
        return Clear()
    evidence, _ = weigh.sides(trend)
    rows = np.flatnonzero(beyond)
    return Finding(
        f"{share:.0%} of updates are clipped: the median gradient norm is "
        f"{np.median(norms.values):.3g}, the limit {bound.value:.3g}",
        severity=Severity.NOTE,
        metric=metric,
        began=int(norms.steps[rows[0]]),
        ended=int(norms.steps[rows[-1]]),
        observed=float(np.median(norms.values)),
        bound=bound,
        evidence=evidence,
    )


RULE = Rule(
    name="gradient-always-clipped",
    needs=(),
    needs_any=(GRAD_NORM, CLIPPED_GRAD_NORM),
    at_least=MIN_NORM_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "max_grad_norm is small beside this loss's gradients",
        "the value loss is large: rewards are not normalised, or value_coef is high",
    ),
    remedies=(
        "leave it, if the run learns",
        "raise {max_grad_norm}",
        "normalise rewards or lower {value_coef}",
    ),
    explained_by=(
        "impossible-value",
        "gradient-explosion",
        "value-loss-explosion",
    ),
    thresholds=(MAX_CLIPPED_UPDATE_SHARE,),
)
