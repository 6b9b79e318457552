"""Every episode lasts to the time limit, where a poor policy's should end early.

## What it sees
`outcome/episode_length` at its limit (within 1 %) in nine of ten points over the first fifth of
the run, in an environment known to end a poor policy's episodes early (a pole that falls, a
walker that stumbles), with returns there below a third of the way from a random to a solved
policy. Or episodes that take exactly one step, all of them, in an environment known to take more.
A note; a warning where the outcome is proven not to improve.

## Why it matters
Where failing does not end an episode, failing costs nothing: the state after the fall is visited
for hundreds of steps, its value is bootstrapped, and most of the data say nothing of the task.

## What to do
Print `terminated` and `truncated` of one random episode. Look at wrappers: one that drops
`terminated`, an old interface with one `done`, an option such as `terminate_when_unhealthy`.

## When it is wrong
That option may be off on purpose, and then falling has a price of its own. Environments that
always run to their limit (Pendulum, HalfCheetah) are not asked, nor those that are not known.

## References
- Pardo et al. 2018, "Time Limits in Reinforcement Learning".
- Gymnasium, "Handling Time Limits": terminated against truncated.
"""

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.outcome import EPISODE_LENGTH
from rlvitals.records import Series, Trace
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Undecided
from rlvitals.rules.standing import LEAST, environment, outcome, standing, task
from rlvitals.signals.spread import median

EARLY = 0.2  # of the points: an untrained policy's
MOST = 0.9  # of them
NEAR = 0.01  # of the limit
POOR = 1 / 3  # of the way from random to solved: such a policy does not last


def check(trace: Trace) -> Answer:
    """Look at the first episodes, when the policy cannot be good yet."""
    env = environment(trace)
    if env is None:
        return Undecided("whether a poor policy's episodes end early is not known", ("env_id",))
    if not env.fails_early or env.horizon is None:
        return Clear()
    lengths = trace[EPISODE_LENGTH.name].finite()
    first = lengths.where(slice(max(LEAST // 2, round(EARLY * len(lengths)))))
    limit = float(max(env.horizon, lengths.values.max()))
    if (lengths.values == 1).all():
        return _finding(trace, lengths, Bound(1.0, "every episode of this run"), "one step")
    # A wrapper may have set a shorter limit: then it is the length that all of them have.
    if np.ptp(first.values) == 0 and first.values[0] > 1:
        limit = float(first.values[0])
    at = first.values >= (1 - NEAR) * limit
    if at.mean() < MOST or not _poor(trace, first):
        return Clear()
    return _finding(trace, lengths, Bound(limit, f"{env.name}'s time limit"), f"{limit:g} steps")


def _poor(trace: Trace, first: Series) -> bool:
    picked = outcome(trace)
    env = None if picked is None else task(trace, picked[0], picked[1].values)
    if picked is None or env is None or env.random_return is None or not env.way:
        return False
    level = median(picked[1].until(int(first.steps[-1])).values)
    return level is not None and level < env.random_return + POOR * env.way


def _finding(trace: Trace, lengths: Series, bound: Bound, words: str) -> Finding:
    now = standing(trace)
    evidence, counter = weigh.sides(now)
    same = lengths.values >= (1 - NEAR) * bound.value
    return Finding(
        f"{same.mean():.0%} of the episodes take {words}, from the start on, where a poor policy's "
        "should end early"
        if bound.value > 1
        else "every episode takes one step",
        severity=weigh.severity(now),
        metric=EPISODE_LENGTH.name,
        began=int(lengths.steps[0]),
        ended=int(lengths.steps[np.flatnonzero(same)[-1]]),
        observed=float(np.median(lengths.values)),
        bound=bound,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="episodes-never-end",
    needs=(EPISODE_LENGTH,),
    at_least=LEAST,
    check=check,
    doc=__doc__,
    causes=(
        "a wrapper drops the end of an episode (terminated)",
        "the environment's early end is switched off",
    ),
    remedies=(
        "print terminated and truncated over one random episode",
        "check wrappers and the environment's options",
    ),
    profiles=kinds.CONTROL,
    explained_by=("impossible-return",),
)
