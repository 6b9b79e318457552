"""Returns that this environment cannot give.

## What it sees
At least a tenth of the returns, and three of them, above the environment's highest or below its
lowest possible return. Asked only where the environment is logged and its range is known.

## Why it matters
CartPole pays +1 a step: a return below zero means the reward's sign is flipped. A return above
the maximum means it is scaled, counted twice, or taken over several episodes. Whatever the curve
does then says little about the task.

## What to do
Compare the reward of one random episode with the environment's documentation; look at wrappers.

## When it is wrong
A wrapper that reshapes or rescales rewards on purpose: then drop the environment's name, or read
the raw return from a monitor placed below the wrapper.

## References
- Gymnasium's environment registry: reward thresholds and episode limits.
"""

import numpy as np

from rlvitals.metrics.metric import Bound
from rlvitals.metrics.outcome import EVAL_RETURN, RETURN
from rlvitals.records import Series, Trace
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.standing import environment

SHARE, LEAST = 0.1, 3
SLACK = 0.01  # of the range: rounding in logs


def check(trace: Trace) -> Answer:
    """Compare returns with both ends of what is possible."""
    env = environment(trace)
    if env is None or (env.max_return is None and env.min_return is None):
        return Undecided("the environment, or its range of returns, is not known", ("env_id",))
    name = RETURN.name if RETURN.name in trace else EVAL_RETURN.name
    series = trace[name].finite()
    slack = SLACK * abs(env.way or 1.0)
    for end, sign, word in ((env.max_return, 1.0, "above"), (env.min_return, -1.0, "below")):
        if end is None:
            continue
        beyond = series.where(sign * series.values > sign * end + slack)
        if len(beyond) >= max(LEAST, SHARE * len(series)):
            return _finding(name, series, beyond, Bound(end, f"{env.name}'s own range"), word)
    return Clear()


def _finding(name: str, series: Series, beyond: Series, bound: Bound, word: str) -> Finding:
    worst = beyond.values[int(np.abs(beyond.values - bound.value).argmax())]
    share = len(beyond) / len(series)
    flipped = word == "below" and bound.value >= 0
    return Finding(
        f"{share:.0%} of the returns are {word} what the environment can give ({bound.value:g}): "
        f"{worst:.4g} at the extreme",
        severity=Severity.WARNING,
        metric=name,
        began=int(beyond.steps[0]),
        ended=int(beyond.steps[-1]),
        observed=float(worst),
        bound=bound,
        causes=("the reward's sign is flipped", "a penalty is added to it") if flipped else (),
    )


RULE = Rule(
    name="impossible-return",
    needs=(),
    needs_any=(RETURN, EVAL_RETURN),
    at_least=LEAST,
    check=check,
    doc=__doc__,
    causes=(
        "a wrapper rescales or reshapes the reward",
        "rewards are counted over several episodes or environments",
    ),
    remedies=(
        "compare one random episode's reward with the environment's documentation",
        "place the monitor below the wrappers that change the reward",
    ),
    profiles=kinds.CONTROL,
)
