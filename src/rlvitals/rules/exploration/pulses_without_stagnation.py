"""Temperature pulses disturb a run that is improving by itself.

## What it sees
`exploration/is_pulsing` is set in at least 5 % of decisions while the outcome is proven to rise
over the same steps. A note, never more.

## Why it matters
Pulses are meant to shake a stagnating policy loose. In a run that improves they only add noise
to the data, and decisions taken in a pulse cost throughput.

## What to do
Trigger pulses by stagnation instead of by interval, or make the interval longer.

## When it is wrong
Pulses may be why the outcome rises: compare a run without them before removing them.

## References
- Loshchilov and Hutter 2017, "SGDR": periodic restarts pay when progress has stopped.
"""

import numpy as np

from rlvitals.metrics.catalogue.exploration import IS_PULSING
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.standing import standing
from rlvitals.types import Profile, Trace

MAX_PULSE_SHARE = Threshold(
    "pulses-without-stagnation.share", 0.05, "share of the decisions that are pulses", high=1.0
)


def check(trace: Trace) -> Answer:
    """Compare how often pulses come with what the outcome does."""
    pulsing = trace[IS_PULSING.name].finite()
    is_pulse = pulsing.values > 0
    share = float(is_pulse.mean())
    limit = MAX_PULSE_SHARE.bound(trace, "default: one decision in twenty")
    if share < limit.value or not share:
        return Clear()
    trend = standing(trace)
    if trend.state == "unknown":
        return Undecided(trend.sentence, ("outcome/reward",))
    if trend.state != "rising":
        return Clear()
    starts = int((np.diff(is_pulse.astype(np.int8), prepend=0) == 1).sum())
    pulse_rows = np.flatnonzero(is_pulse)
    return Finding(
        f"{starts} temperature pulses take {share:.0%} of the decisions although {trend.sentence}",
        severity=Severity.NOTE,
        metric=IS_PULSING.name,
        began=int(pulsing.steps[pulse_rows[0]]),
        ended=int(pulsing.steps[pulse_rows[-1]]),
        observed=share,
        bound=limit,
        limit_on_curve=False,
    )


RULE = Rule(
    name="pulses-without-stagnation",
    needs=(IS_PULSING,),
    at_least=50,
    check=check,
    doc=__doc__,
    causes=("pulses are triggered by an interval, not by stagnation",),
    remedies=("trigger pulses by stagnation", "make the pulse interval longer"),
    profiles=(Profile.SCHEDULER_PPO,),
    thresholds=(MAX_PULSE_SHARE,),
)
