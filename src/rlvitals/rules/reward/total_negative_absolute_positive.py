"""The total reward is negative although the absolute score is positive: the delta part drowns it.

## What it sees
By windows of 50 decisions, the mean of `reward/step` below zero while the mean of
`reward/absolute` is above zero, in more than half of the windows over at least a fifth of the
run. A warning where the outcome does not improve.

## Why it matters
The policy is punished for states that are good by the absolute score, because they are a little
worse than the states before. Doing nothing new becomes the safest choice.

## What to do
Lower the weight of the delta part (`gamma` for what got worse, `beta` for what got better), or
smooth the averages it is taken against.

## When it is wrong
Other penalties (imbalance, a latency threshold) may be what makes the total negative: the delta
part's own mean is given as evidence.

## References
- Ng, Harada and Russell 1999, "Policy invariance under reward transformations".
"""

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.reward import ABSOLUTE, DELTA, STEP
from rlvitals.records import Profile, Series, Trace
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule
from rlvitals.rules.shapes import LASTING
from rlvitals.rules.standing import standing
from rlvitals.signals.blocks import block_means

WINDOW = 50  # decisions
LEAST = 4  # windows


def check(trace: Trace) -> Answer:
    """Compare the signs of the two, window by window."""
    total, absolute = trace[STEP.name].finite(), trace[ABSOLUTE.name].finite()
    steps = np.intersect1d(total.steps, absolute.steps)
    total, absolute = _at(total, steps), _at(absolute, steps)
    width = max(5, min(WINDOW, len(steps) // LEAST))
    if len(steps) < LEAST * width:
        return Clear()
    paid, meant = block_means(total.values, width), block_means(absolute.values, width)
    held = (paid < 0) & (meant > 0)
    if held.mean() < max(LASTING, 0.5 if held[-1] else 1.0):
        return Clear()
    where = np.flatnonzero(held)
    offset = len(steps) - width * len(held)
    began = int(steps[offset + where[0] * width])
    now = standing(trace, since=began)
    evidence, counter = weigh.sides(now)
    return Finding(
        f"total reward is negative ({paid[held].mean():.3g}) while the absolute score is positive "
        f"({meant[held].mean():.3g}) in {held.mean():.0%} of the run",
        severity=weigh.severity(now),
        metric=STEP.name,
        began=began,
        ended=int(steps[offset + (where[-1] + 1) * width - 1]),
        observed=float(paid[held].mean()),
        bound=Bound(0.0, "zero"),
        evidence=(*_delta(trace), *evidence),
        counter=counter,
    )


def _at(series: Series, steps: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Series:
    """Keep the last point at each of the steps."""
    last = np.searchsorted(series.steps, steps, side="right") - 1
    return series.where(last)


def _delta(trace: Trace) -> tuple[str, ...]:
    delta = trace.get(DELTA.name)
    values = None if delta is None else delta.finite().values
    return (f"the delta part is {values.mean():.3g} on average",) if values is not None and len(values) else ()


RULE = Rule(
    name="total-negative-absolute-positive",
    needs=(STEP, ABSOLUTE),
    at_least=LEAST * 5,
    check=check,
    doc=__doc__,
    causes=("the delta part's penalty for getting worse is too heavy", "another penalty dominates"),
    remedies=("lower gamma, the weight of what got worse", "raise beta, the weight of what got better"),
    profiles=(Profile.SCHEDULER_PPO,),
)
