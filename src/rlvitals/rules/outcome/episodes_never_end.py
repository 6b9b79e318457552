"""Every episode lasts to the time limit, where a poor policy's should end early.

## What it sees
`outcome/episode_length` at its limit (within 1 %) in nine of ten points over the first fifth of
the run, in an environment known to end a poor policy's episodes early (a pole that falls, a
walker that stumbles), with returns there below a third of the way from a random to a solved
policy. Or episodes that all take the same number of steps below that limit, in nine of ten points
of the run, with such returns to the end. A note; a warning where the outcome is proven not to
improve, or where returns prove it: where the environment pays the same for each step (CartPole 1,
Acrobot -1), episodes that pay for fewer steps than they took went on after their end. That is also
looked for later in the run, in episodes that come to last longer and pay less for each step.

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

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.known_task import environment, task
from rlvitals.rules.paid import step_reward
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median
from rlvitals.types import Series, Trace

MIN_FULL_EPISODE_SHARE = 0.9  # of the episodes
MIN_LENGTH_POINTS = 5  # few suffice, as lengths are equal to the digit
TIME_LIMIT_TOLERANCE = 0.01  # of the limit


def check(trace: Trace) -> Answer:
    """Look at the first episodes, when the policy cannot be good yet."""
    env, proof = environment(trace), _proof(trace)
    if env is None:
        return Undecided("whether a poor policy's episodes end early is not known", ("env_id",))
    if proof is not None or not env.fails_early or env.horizon is None:
        return proof or Clear()
    lengths = trace[EPISODE_LENGTH.name].finite()
    # The same mean to the last digit: single episodes differ where failing ends them.
    lasted, counts = np.unique(lengths.values, return_counts=True)
    usual = float(lasted[int(counts.argmax())])
    # The first 20 % of the points are those of an untrained policy.
    first = lengths.where(slice(max(MIN_LENGTH_POINTS, round(0.2 * len(lengths)))))
    bound = Bound(float(max(env.horizon, lasted[-1])), f"{env.name}'s time limit")
    judged, share = first, float((first.values >= (1 - TIME_LIMIT_TOLERANCE) * bound.value).mean())
    if (
        counts.max() >= MIN_FULL_EPISODE_SHARE * len(lengths)
        and usual < (1 - TIME_LIMIT_TOLERANCE) * env.horizon
    ):
        judged, share, bound = lengths, 1.0, Bound(usual, "the length of nearly all")
    if share < MIN_FULL_EPISODE_SHARE:
        return Clear()
    poor = _poor(trace, judged)
    if poor is None:
        return Undecided("whether the policy is good enough to last is not known", (RETURN.name,))
    if not poor:
        return Clear()
    return _finding(trace, lengths, bound, env.name)


def _proof(trace: Trace) -> Finding | None:
    """Find episodes that took more steps than they were paid for, at the limit or longer since."""
    pay = step_reward(trace)
    if pay is None or not pay.endless:
        return None
    index, share = pay.broke or 0, pay.share
    worst = float(share.values[index:].min())
    return Finding(
        f"episodes pay for {worst:.0%} of the steps that they take: they go on after their end "
        f"({pay.env.name} pays {pay.env.pays:g} a step until then)",
        severity=Severity.WARNING,
        metric=EPISODE_LENGTH.name,
        began=int(share.steps[index]),
        ended=int(share.steps[-1]),
        observed=worst,
        bound=Bound(1.0, f"{pay.env.name} pays for every step"),
        evidence=(f"they take {pay.lengths[-1]:g} steps at the end of the log",),
        curve=Curve("return / (length x reward of a step)", share),
    )


def _poor(trace: Trace, first: Series) -> bool | None:
    """Tell a policy that cannot last from one that does; None where its returns do not say."""
    returns = trace.get(RETURN.name)
    if returns is None:
        return None
    env = task(trace, RETURN.name, returns.finite().values)
    level = median(returns.until(int(first.steps[-1])).values)
    if env is None or env.random_return is None or not env.way or level is None:
        return None
    # Below a third of the way to solved, a policy does not last.
    return level < env.random_return + (1 / 3) * env.way


def _finding(trace: Trace, lengths: Series, bound: Bound, name: str) -> Finding:
    trend = standing(trace)
    evidence, counter = weigh.sides(trend)
    full = np.abs(lengths.values - bound.value) <= TIME_LIMIT_TOLERANCE * bound.value
    return Finding(
        f"episodes take {bound.value:g} steps in {full.mean():.0%} of the log, whatever the policy "
        f"does: in {name} a poor one's end early, and at different times",
        severity=weigh.severity(trend),
        metric=EPISODE_LENGTH.name,
        began=int(lengths.steps[0]),
        ended=int(lengths.steps[np.flatnonzero(full)[-1] if full.any() else -1]),
        observed=float(np.median(lengths.values)),
        bound=bound,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="episodes-never-end",
    needs=(EPISODE_LENGTH,),
    at_least=MIN_LENGTH_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "a wrapper drops the end of an episode (terminated), or ends every one",
        "the environment's early end is switched off",
    ),
    remedies=(
        "print terminated and truncated over one random episode",
        "check wrappers and the environment's options",
    ),
    profiles=kinds.CONTROL,
    explained_by=("impossible-value",),
)
