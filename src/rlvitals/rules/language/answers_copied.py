"""Answers are read from the prompt: it states them, or replies copy its text.

## What it sees
`rollout/answer_stated_share` above 0.2 in at least half of 20 successive updates (10 where fewer
than 40 are logged): prompts in which the expected answer follows a word such as "answer" or
"solution". A note. Else `rollout/copied_share` more than 0.3 above its own start as often, to the
end: a note, and a warning where the outcome is proven to stall or fall.

## Why it matters
A policy that finds the answer in its prompt learns to look there. Training rewards rise, and
nothing is learned that another prompt would show.

## What to do
Read prompts as the policy gets them, after the chat template. Take the answer's column out of what
is formatted. Where replies copy the prompt, look for a judge or a metric of overlap that pays it.

## When it is wrong
A prompt with several labelled answers has examples, and is not counted; a single example may state
the expected one by chance. Hints may be meant. A task that edits or quotes its prompt copies it
from the start: only what is added to that is reported.

## References
- Zelikman et al. 2022, "STaR", on hints with the answer.
"""

from rlvitals.metrics.catalogue.rollout_metrics import ANSWER_STATED_SHARE, COPIED_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above, start
from rlvitals.rules.weigh import by_learning, sides
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.types import Trace

# A choice: the prompts of our own runs have no examples.
MAX_STATED_SHARE = Threshold(
    "answers-copied.stated", 0.2, "share of prompts that state the answer", high=1.0
)
# 19 runs without a fault of scripts/record_rollout_runs.py add nothing to one copy in ten.
MAX_COPIED_INCREASE = Threshold(
    "answers-copied.more", 0.3, "share of a reply that is copied, more than at the start", high=1.0
)


def check(trace: Trace) -> Answer:
    """Ask for answers in the prompts, then for replies that copy them."""
    return _find_stated_answers(trace) or _find_copying(trace) or Clear()


def _find_stated_answers(trace: Trace) -> Finding | None:
    shares = trace.get(ANSWER_STATED_SHARE.name)
    stretch = None if shares is None else above(shares, MAX_STATED_SHARE.on(trace))
    if shares is None or stretch is None:
        return None
    level = median(stretch.of(shares).finite().values) or 0.0
    evidence, _ = sides(
        learning_trend(trace)
    )  # an outcome that rises by reading answers is no counter
    return Finding(
        f"{level:.0%} of prompts state the answer that is expected",
        severity=Severity.NOTE,
        metric=ANSWER_STATED_SHARE.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=MAX_STATED_SHARE.bound(trace, "default"),
        evidence=evidence,
        causes=("the answer's column is formatted into the prompt", "a hint that was left in"),
    )


def _find_copying(trace: Trace) -> Finding | None:
    shares = trace.get(COPIED_SHARE.name)
    levels = None if shares is None else first_last_change(shares.values)
    if shares is None or levels is None:
        return None
    first = start(shares) or 0.0
    limit = first + MAX_COPIED_INCREASE.on(trace)
    stretch = above(shares, limit)
    if stretch is None or not stretch.goes_on or levels[1] <= limit:
        return None
    return by_learning(
        trace,
        f"{levels[1]:.0%} of a reply's text is copied from its prompt, {first:.0%} at the start",
        (COPIED_SHARE.name, shares),
        (stretch.start, levels[1]),
        Bound(limit, f"{MAX_COPIED_INCREASE.on(trace):g} above this run's start"),
        (),
        ("a judge or a measure of overlap that pays for the prompt's own words",),
    )


RULE = Rule(
    name="answers-copied",
    needs=(),
    needs_any=(ANSWER_STATED_SHARE, COPIED_SHARE),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the answer's column is formatted into the prompt",
        "a judge or a measure of overlap that pays for the prompt's own words",
    ),
    remedies=(
        "read prompts as the policy gets them",
        "take the answer out of what is formatted into the prompt",
        "take overlap with the prompt out of the reward",
    ),
    profiles=kinds.LANGUAGE,
    thresholds=(MAX_STATED_SHARE, MAX_COPIED_INCREASE),
)
