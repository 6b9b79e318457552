"""The logged KL is an estimate clamped at zero: its zeros are artefacts.

## What it sees
`policy/approx_kl` is exactly 0.0 in at least two updates and at most nine of ten, never negative,
and positive in the others. Frameworks known to log k2 or k3, which are 0 only where nothing
moved, are left out. A note, never more.

## Why it matters
`max(0, mean(log p_old - log p_new))` averages the signed k1 estimator, then cuts off its
negative half. It reads 0 after updates that moved the policy, so a mean over the run is too low
and a KL penalty built on it has no gradient there.

## What to do
Log k3, `mean((r - 1) - log r)`: never negative, nearly unbiased for small updates, same cost.

## When it is wrong
A run whose updates were skipped (a statistics phase, early stopping before the first
minibatch) has true zeros.

## References
- Schulman 2020, "Approximating KL Divergence" (k1, k2, k3).
"""

import numpy as np

from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.types import Trace

# One may be a coincidence of rounding.
MIN_ZERO_KLS = Threshold("kl-clamped.zeros", 2.0, "KL values that are exactly 0", low=1.0)


def check(trace: Trace) -> Answer:
    """Count exact zeros among positive values."""
    kl = trace[APPROX_KL.name].finite()
    zeros = kl.values == 0.0
    count = int(zeros.sum())
    # With more zeros the policy does not move: another rule's subject.
    if count < MIN_ZERO_KLS.on(trace) or zeros.mean() > 0.9 or (kl.values < 0).any():
        return Clear()
    source = trace.measured[APPROX_KL.name]
    is_documented = "clamped" in source.estimator
    # A sum of positive terms (k2, k3) is exactly 0 only where nothing moved at all.
    if not is_documented and source.estimator in ("k2", "k3"):
        return Clear()
    zero_rows = np.flatnonzero(zeros)
    how = (
        f"{source.framework} averages k1 and clamps it"
        if is_documented
        else "as a clamped k1 would be"
    )
    return Finding(
        f"{count} of {len(kl)} KL values are exactly 0: a clamped estimator's artefact, not "
        "updates that moved nothing",
        severity=Severity.NOTE,
        metric=APPROX_KL.name,
        began=int(kl.steps[zero_rows[0]]),
        ended=int(kl.steps[zero_rows[-1]]),
        observed=float(count),
        bound=Bound(0.0, "KL is 0 only where nothing moved"),
        limit_on_curve=False,
        evidence=(how, f"the other values reach {kl.values.max():.2g} nats"),
    )


RULE = Rule(
    name="kl-clamped",
    needs=(APPROX_KL,),
    at_least=10,
    check=check,
    doc=__doc__,
    causes=("the trainer logs max(0, mean(log p_old - log p_new))",),
    remedies=("log k3 = mean((r - 1) - log r) beside it",),
    profiles=kinds.PPO,
    thresholds=(MIN_ZERO_KLS,),
)
