"""Rollouts that failed, or that give the right answer, are scored as wrong ones.

## What it sees
`rollout/failed_as_zero_share` above 0.05 in at least half of 10 successive updates: rollouts with a
recorded error whose reward is exactly 0. A note, as an error may be the policy's own; where many
fail, judge-outage warns. A failed rollout without a reward is what it should be, and not counted.
Else `rollout/answer_unpaid` above 0.5 as often: of the replies that end by giving the expected
answer, the share that the part for right answers (the reward, where it has no parts) pays nothing.

## Why it matters
A sandbox that is down is no fault of the policy. Its 0 lowers the advantage of what was written,
and raises that of the rest of its group.

## What to do
Give a failed rollout no reward and leave it out of the loss and of its group's mean. Retry it with
a pause. Stop where too many fail.

Score by hand one reply that gives the answer: a parser that asks for a box or a tag finds nothing
in an answer that is only written down.

## When it is wrong
A form may be meant to be asked for: then an answer without it is to earn nothing. An error that
the policy causes (a call that the tool refuses, a test that crashes) may be meant to earn nothing.

## References
- rllm issue #710, on a sandbox that fails in part and is scored 0.
"""

from dataclasses import replace

from rlvitals.metrics.catalogue.rollout_metrics import ANSWER_UNPAID, FAILED_AS_ZERO_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.metrics.reward_names import pays_right_answers
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
    """Find a lasting share of failed rollouts, else of right answers, that are scored as wrong."""
    limit = MIN_FAILED_SHARE.bound(trace, "default")
    text = "{:.0%} of rollouts failed and have a reward of 0"
    if finding := _find(trace, FAILED_AS_ZERO_SHARE.name, limit, text):
        return finding
    # A choice: a few answers may be given in passing, or in a form that is not to be paid.
    limit = Bound(0.5, "half of them")
    text = "{:.0%} of the replies that give the expected answer are paid nothing for it"
    for part in trace.family(ANSWER_UNPAID.name):
        name = f"{ANSWER_UNPAID.name}/{part}"
        judged = pays_right_answers(part) or part == "reward"
        if judged and (finding := _find(trace, name, limit, text)):
            return replace(
                finding,
                causes=(
                    "a parser that asks for another form than that in which answers are written",
                    "a comparison that takes equal answers for different: units, spaces, types",
                ),
                remedies=(
                    "score by hand one reply that gives the answer",
                    "ask for the parser's form in the prompt, or accept what the policy writes",
                ),
            )
    return Clear()


def _find(trace: Trace, name: str, limit: Bound, text: str) -> Finding | None:
    shares = trace.get(name)
    stretch = None if shares is None else above(shares, limit.value, SHORT_WINDOW)
    if shares is None or stretch is None:
        return None
    level = median(stretch.of(shares).finite().values) or 0.0
    evidence, counter = sides(learning_trend(trace, since=stretch.start))
    return Finding(
        text.format(level),
        severity=Severity.NOTE,
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=limit,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="failures-scored",
    needs=(),
    needs_any=(FAILED_AS_ZERO_SHARE, ANSWER_UNPAID),
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
