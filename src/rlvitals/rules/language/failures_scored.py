"""Rollouts that failed have a reward of 0, and are learned from as wrong answers.

## What it sees
`rollout/failed_as_zero_share` above 0.05 in at least half of 10 successive updates: rollouts with a
recorded error whose reward is exactly 0. A note, as an error may be the policy's own; where many
fail, judge-outage warns. A failed rollout without a reward is what it should be, and not counted.

## Why it matters
A sandbox that is down is no fault of the policy. Its 0 lowers the advantage of what was written,
and raises that of the rest of its group.

## What to do
Give a failed rollout no reward and leave it out of the loss and of its group's mean. Retry it with
a pause. Stop where too many fail.

## When it is wrong
An error that the policy causes (a call that the tool refuses, a test that crashes) may be meant to
earn nothing.

## References
- rllm issue #710, on a sandbox that fails in part and is scored 0.
"""

from rlvitals.metrics.catalogue.rollout_metrics import FAILED_AS_ZERO_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.weigh import sides
from rlvitals.signals.spread import median
from rlvitals.types import Trace

# A choice: more than the timeout now and then that frameworks retry without a word.
MIN_FAILED_SHARE = Threshold(
    "failures-scored.share", 0.05, "share of rollouts that failed and earn 0"
)


def check(trace: Trace) -> Answer:
    """Find a lasting share of failed rollouts that are scored."""
    shares = trace[FAILED_AS_ZERO_SHARE.name]
    stretch = above(shares, MIN_FAILED_SHARE.on(trace), SHORT_WINDOW)
    if stretch is None:
        return Clear()
    level = median(stretch.of(shares).finite().values) or 0.0
    evidence, counter = sides(learning_trend(trace, since=stretch.start))
    return Finding(
        f"{level:.0%} of rollouts failed and have a reward of 0",
        severity=Severity.NOTE,
        metric=FAILED_AS_ZERO_SHARE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=MIN_FAILED_SHARE.bound(trace, "default"),
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="failures-scored",
    needs=(FAILED_AS_ZERO_SHARE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "a judge, sandbox or tool server that is down, slow, or at its rate limit",
        "an exception in the environment that is scored as a wrong answer",
    ),
    remedies=(
        "leave failed rollouts out of the loss and of their group's mean",
        "read the errors by kind, and the sandbox's own log at that time",
        "retry with a pause, and stop the run where too much fails",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("judge-outage",),
    thresholds=(MIN_FAILED_SHARE,),
)
