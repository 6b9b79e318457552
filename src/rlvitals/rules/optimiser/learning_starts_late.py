"""Most of the run is over before the first update.

## What it sees
The first number of `optimiser/updates`, `value/loss` or `optimiser/loss` of a Q-learner stands
more than half of the run after its first row. A warning where the outcome is proven not to
improve, or holds, far from solved, what it had before anything was learned; else a note. A loss
of 0 in every row, or a log of Stable-Baselines3 that holds returns and throughput and no number of
an update at all, is a warning, unless the outcome improves or holds its best. Its PPO and A2C write
`train/` from the second row on, so such a log is one of DQN, SAC, TD3 or DDPG.

## Why it matters
Until then actions are random, or the untrained policy's, and nothing of the time is used.

## What to do
Lower `learning_starts` (a replay buffer's first fill): a few thousand steps, or a hundredth of
the run. Check that it is counted in the unit meant: steps, not episodes; of all environments.

## When it is wrong
A log of a run's first minutes: a buffer that is filled for an hour is normal in a run of a week.
With a budget known this rule counts by the budget; without one a run that goes on is not judged.

## References
- Mnih et al. 2015, "Human-level control through deep reinforcement learning": 50,000 of 50 million.
- Stable-Baselines3, `common/off_policy_algorithm.py`, `learning_starts`.
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.absence import describe_absence
from rlvitals.metrics.catalogue.exploration import EPSILON
from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE, LOSS, UPDATES
from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.throughput import STEPS_PER_SECOND
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.going_on import goes_on
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import (
    MIN_OUTCOME_POINTS,
    NEARLY_SOLVED_SHARE,
    OUTCOME_METRICS,
    Standing,
    outcome,
    standing,
    up,
    way_share,
)
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Trace

MAX_START_SHARE = Threshold(
    "learning-starts-late.share", 0.5, "share of the run before the first update"
)
LEARNING_METRICS = (UPDATES.name, VALUE_LOSS.name, LOSS.name)


def check(trace: Trace) -> Answer:
    """Compare when outcomes begin and when updates do."""
    picked = outcome(trace)
    if picked is None:
        reason = f"fewer than {MIN_OUTCOME_POINTS} values of the outcome"
        return Undecided(reason, ("outcome/return",))
    # Some programs write a loss of 0 until the replay buffer holds a batch.
    numbers = (trace.numbers(name) for name in LEARNING_METRICS)
    is_known = trace.profile is Profile.OFF_POLICY
    logged = [s for s in numbers if is_known and s is not None and s.values.any()]
    if not logged:
        return _no_update(trace)
    first = min(int(s.where(s.values != 0).steps[0]) for s in logged)
    if trace.budget is None and goes_on(trace):
        return Undecided("the run goes on, and how long it will be is not known", ("total_steps",))
    first_step, step_count = trace.first_number, trace.last_step - trace.first_number
    if trace.budget is not None:
        step_count = max(step_count, trace.budget.steps - first_step)
    share = (first - first_step) / max(step_count, 1)
    limit = MAX_START_SHARE.bound(trace, "default: half of the run")
    if share <= limit.value:
        return Clear()
    trend = standing(trace)
    evidence, counter = weigh.sides(trend)
    severity = weigh.severity(trend)
    if _never_rises(trace, trend, picked[1].until(first).values):
        severity, counter = Severity.WARNING, ()
    return Finding(
        f"{share:.0%} of the run is over before the first update, at step {first:,}",
        severity=severity,
        metric=next(n for n in LEARNING_METRICS if n in trace),
        began=first_step,
        ended=first,
        observed=share,
        bound=Bound(limit.value, limit.origin),
        limit_on_curve=False,
        evidence=evidence,
        counter=counter,
    )


def _no_update(trace: Trace) -> Answer:
    """Find a Q-learner's log without an update: a loss of 0 throughout, or none where one is due.

    Stable-Baselines3 writes `train/` from the first update on, at each row of the episodes.
    """
    is_known = trace.profile is Profile.OFF_POLICY
    lacks = "what is trained is not known"
    if is_known:
        lacks = describe_absence(trace, "no update is logged", VALUE_LOSS, POLICY_LOSS)
    name = EPSILON.name if EPSILON.name in trace else RETURN.name
    rows = trace.numbers(name, MIN_OUTCOME_POINTS)
    losses = (trace.numbers(m, 2 * MIN_OUTCOME_POINTS) for m in LEARNING_METRICS)
    zero = is_known and any(loss is not None for loss in losses)
    # A table of chosen columns has no throughput beside the returns.
    metrics = (name,) if name == EPSILON.name else (name, STEPS_PER_SECOND.name)
    sources = [trace.measured.get(metric) for metric in metrics]
    is_sb3 = all(source is not None and source.framework == "sb3" for source in sources)
    is_untrained = zero or (is_sb3 and LEARNING_RATE.name not in trace)
    if rows is None or not is_untrained or too_early(trace) or weigh.content(verdict_trend(trace)):
        return Undecided(lacks, (UPDATES.name,))
    shows = "the loss is 0 in every row" if zero else "no row holds a number of an update"
    return Finding(
        f"nothing was ever learned: {shows}, of {len(rows):,}",
        severity=Severity.WARNING,
        metric=name,
        began=trace.first_number,
        ended=trace.last_step,
        observed=1.0,
        bound=MAX_START_SHARE.bound(trace, "default: half of the run"),
        limit_on_curve=False,
    )


def _never_rises(trace: Trace, trend: Standing, values_before: NDArray[np.float64]) -> bool:
    """Tell an outcome that holds what it had before anything was learned, far from solved."""
    level, share = median(values_before), way_share(trace, trend)
    if trend.state != "holding its best" or level is None or (share or 0.0) >= NEARLY_SOLVED_SHARE:
        return False
    return up(trend.metric) * trend.last - level < trend.material


RULE = Rule(
    name="learning-starts-late",
    needs=(),
    needs_any=OUTCOME_METRICS,
    at_least=MIN_OUTCOME_POINTS,
    check=check,
    explained_by=("setting-out-of-range",),
    doc=__doc__,
    causes=("learning_starts is set for a longer run", "it counts another unit than was meant"),
    remedies=("lower learning_starts to a hundredth of the run",),
    profiles=(Profile.OFF_POLICY, Profile.UNKNOWN),
    thresholds=(MAX_START_SHARE,),
    verdict="stalled",
)
