"""The learning rate is beyond what networks are trained with, and the run has come to nothing.

## What it sees
`optimiser/learning_rate` above 0.02 in the median of the run, with an outcome proven not to
improve, or, where a trend cannot be told, less than 15 % of the way from a random to a solved
policy. Above 0.1, in a library that trains networks with Adam (Stable-Baselines3, CleanRL), it is
enough that the outcome is not proven to improve, or to hold its best. The published settings of
Adam for deep reinforcement learning end at 0.01; the learning rate as it is logged, not as it was
meant, is read.

## Why it matters
Adam moves every weight by about the learning rate in every step, whatever the gradient's size.
With steps as large as the weights themselves nothing that was learned stays: the policy
saturates, Q values run off, and everything else in the log follows from it.

## What to do
Divide it by 10 until the run learns, then by 3. Settings known to work for this algorithm and
environment (the "zoo" of your framework) are the best start.

## When it is wrong
Plain SGD, linear models and tables of values live at 0.1: with an outcome that improves nothing
is said. Where the outcome stalls for another reason this is still worth ruling out first.

## References
- Kingma and Ba 2015, "Adam", section 2.1: the size of a step is bounded by the learning rate.
- RL Baselines3 Zoo, `hyperparams/`: from 7e-5 to 4e-3 for networks trained by gradients.
- rsl_rl, `algorithms/ppo.py`: its adaptive learning rate ends at 0.01.
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE
from rlvitals.rules import kinds
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.known_task import NO_PROGRESS_SHARE
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import standing, way_share
from rlvitals.types import Profile, Trace

MAX_LEARNING_RATE = Threshold(
    "learning-rate-too-high.limit", 0.02, "learning rate, as it is logged"
)


def check(trace: Trace) -> Answer:
    """Compare the median with the limit, then ask where the outcome got to."""
    rate = trace[LEARNING_RATE.name].finite()
    middle = float(np.median(rate.values))
    limit = MAX_LEARNING_RATE.bound(trace, "default: twice the highest published for Adam")
    if middle <= limit.value:
        return Clear()
    if reason := too_early(trace):
        return Undecided(reason, ("total_steps",))
    trend, final_trend = standing(trace), verdict_trend(trace)
    trend = final_trend if trend.state == "unknown" else trend
    share = way_share(trace, trend)
    if trend.improves or trend.state == "holding its best":
        return Clear()
    is_absurd = middle >= 0.1 and trace.measured[LEARNING_RATE.name].framework in {"sb3", "cleanrl"}
    if not (is_absurd or trend.stalls or (share is not None and share < NO_PROGRESS_SHARE)):
        return Undecided(f"the learning rate is {middle:g}, but {trend.sentence}")
    return Finding(
        f"the learning rate is {middle:g}, beyond what networks are trained with, and nothing "
        f"{'was' if trend.stalls else 'is proven to have been'} learned",
        severity=Severity.WARNING,
        metric=LEARNING_RATE.name,
        began=int(rate.steps[0]),
        ended=int(rate.steps[-1]),
        observed=middle,
        bound=limit,
        evidence=(f"meanwhile {trend.sentence}" if trend.stalls else trend.sentence,),
    )


RULE = Rule(
    name="learning-rate-too-high",
    needs=(LEARNING_RATE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a learning rate set too high by one or two digits",
        "a schedule or a rate per sample that is taken for the rate per step",
    ),
    remedies=(
        "divide the learning rate by 10 until the run learns",
        "start from settings known to work for this algorithm and environment",
    ),
    profiles=(*kinds.CONTROL, Profile.SCHEDULER_PPO),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-jump",
    ),
    thresholds=(MAX_LEARNING_RATE,),
)
