"""The critic has learned its targets by heart, and the targets say nothing of returns.

## What it sees
`value/loss` of a Q-learner below a hundredth of its early level over the second half of the run,
or below the square of 2 % of mean |Q|, beside a mean |Q| (`value/q_mean`) below a tenth of what
the policy's own rewards add up to:
|return| / episode length x the steps that gamma looks ahead, 1 / (1 - gamma), at most an episode.
Only with an outcome proven not to improve.

## Why it matters
A critic that predicts its targets without error looks perfect. But targets are rewards plus the
target network's opinion of what follows; where that network never moves, all the critic learns is
the next reward, and the agent cannot look ahead.

## What to do
Let the target network follow: tau above 0 (0.005 is usual), or a target update interval shorter
than the run. Check that the update is called at all, and on the right pair of networks.

## When it is wrong
A gamma near 0 looks no further than a step by itself: where the run's gamma is logged it is used,
else 0.99 is assumed. Rewards scaled down for the learner alone make Q small for good reason.

## References
- Mnih et al. 2015, "Human-level control through deep reinforcement learning", on target networks.
- Lillicrap et al. 2016, "Continuous control with deep reinforcement learning", on soft updates.
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH
from rlvitals.metrics.catalogue.value import LOSS, Q_MEAN
from rlvitals.rules import weigh
from rlvitals.rules.known_task import DEFAULT_GAMMA, environment
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
from rlvitals.rules.shapes import start
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, outcome, standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Trace

MIN_Q_SHARE = Threshold("critic-target-frozen.share", 0.1, "mean |Q| over what rewards add up to")


def check(trace: Trace) -> Answer:
    """Compare the second half's Q with the second half's returns."""
    half = trace.first_step + (trace.last_step - trace.first_step) // 2
    expected, origin = _expect_value(trace, half)
    if expected is None:
        return Undecided(origin, (EPISODE_LENGTH.name, "gamma"))
    loss, q = trace[LOSS.name].finite(), trace[Q_MEAN.name].finite()
    first, last = start(loss), median(loss.since(half).values)
    size = median(np.abs(q.since(half).values))
    if first is None or last is None or size is None:
        return Undecided("too few updates in the second half", (LOSS.name, Q_MEAN.name))
    limit = MIN_Q_SHARE.bound(trace, f"{MIN_Q_SHARE.on(trace):.0%} of {origin}", expected)
    # A loss of 1 % of its start, or errors of 2 % of |Q|, is a fit.
    if last > max(0.01 * first, (0.02 * size) ** 2) or size > limit.value:
        return Clear()
    trend = standing(trace)
    if weigh.content(trend):
        return Clear()
    if not trend.stalls:
        return Undecided(f"the critic fits its targets, but {trend.sentence}", ("outcome/return",))
    return Finding(
        f"the critic fits its targets ({last:.2g} of loss, {first:.2g} at the start), but they say "
        f"nothing of returns: |Q| is {size:.3g} where rewards add up to {expected:.4g}",
        severity=Severity.WARNING,
        metric=Q_MEAN.name,
        began=int(q.steps[0]),
        ended=int(q.steps[-1]),
        observed=size,
        bound=limit,
        evidence=weigh.sides(trend)[0],
    )


def _expect_value(trace: Trace, half: int) -> tuple[float | None, str]:
    """Return the discounted sum of the policy's own rewards, and how it is known."""
    picked, lengths = outcome(trace), trace.get(EPISODE_LENGTH.name)
    env, set_gamma = environment(trace), trace.number("gamma")
    gamma = DEFAULT_GAMMA if set_gamma is None or not 0 <= set_gamma <= 1 else set_gamma
    typical_return = None if picked is None else median(np.abs(picked[1].since(half).values))
    length = None if lengths is None else median(lengths.since(half).finite().values)
    if length is None and env is not None and env.horizon:
        length = float(env.horizon)
    if not typical_return or not length:
        return None, "the length of an episode, or its return, is not known"
    ahead = length if gamma >= 1 else min(length, 1.0 / (1.0 - gamma))
    return typical_return / length * ahead, f"the rewards of {ahead:g} steps"


RULE = Rule(
    name="critic-target-frozen",
    needs=(LOSS, Q_MEAN),
    at_least=2 * MIN_OUTCOME_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "the target network never follows: tau of 0, or an update interval beyond the run",
        "gamma near 0",
    ),
    remedies=(
        "raise tau, or update the target network more often",
        "check which network the targets are taken from",
    ),
    profiles=(Profile.OFF_POLICY,),
    explained_by=(
        "setting-out-of-range",
        "impossible-value",
    ),
    verdict="stalled",
    thresholds=(MIN_Q_SHARE, persistence("critic-target-frozen", 0.25)),
    persists=persistence("critic-target-frozen", 0.25),  # a slow start is as flat
)
