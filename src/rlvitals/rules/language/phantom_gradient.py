"""Groups that are all wrong are pushed apart by shaping alone.

## What it sees
`rollout/equal_groups` of the reward's part whose name says that it checks the answer: of the groups
whose rewards differ, more than 0.8 have no right answer at all, in at least half of 20 successive
updates (10 where fewer than 40 are logged), to the end. A note; a warning where right answers are
proven to stall or fall.

## Why it matters
Such a group has a gradient, and a filter of groups without contrast lets it through: but all that
it teaches is the format, the length or the style of a wrong answer.

## What to do
Filter groups by the part for right answers and not by the total. Pay shaping only where the answer
is right, or add so little that it cannot be normalised to a whole advantage. Take easier prompts.

## When it is wrong
At the start of training a format is learned first, and few answers are right: where right answers
rise, this is a note.

## References
- NVIDIA-NeMo/RL issue #2431, volcengine/verl-recipe issue #125, on filters of shaped rewards.
"""

from rlvitals.metrics.catalogue.rollout_metrics import EQUAL_GROUPS
from rlvitals.metrics.reward_names import pays_right_answers
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

# 17 runs without a fault of scripts/record_rollout_runs.py with two reward parts reach 0.5.
MAX_SHAPED_SHARE = Threshold(
    "phantom-gradient.share", 0.8, "share of groups with contrast that have no right answer",
    high=1.0,
)  # fmt: skip


def check(trace: Trace) -> Answer:
    """Find groups with contrast that have none in the part for right answers."""
    shares = {
        name: series
        for name, series in sorted(trace.family(EQUAL_GROUPS.name).items())
        if pays_right_answers(name) and len(series.finite()) >= SHORT_WINDOW
    }
    if not shares:
        return Undecided("no reward part is named for right answers", (EQUAL_GROUPS.name,))
    name, series = next(iter(shares.items()))
    stretch, levels = above(series, MAX_SHAPED_SHARE.on(trace)), first_last_change(series.values)
    if (
        stretch is None
        or levels is None
        or not stretch.goes_on
        or levels[1] <= MAX_SHAPED_SHARE.on(trace)
    ):
        return Clear()
    return by_learning(
        trace,
        f"{levels[1]:.0%} of the groups with contrast have no right answer: what they learn is "
        "shaping alone",
        (f"{EQUAL_GROUPS.name}/{name}", series),
        (stretch.start, levels[1]),
        MAX_SHAPED_SHARE.bound(trace, "default"),
        (),
        (),
    )


RULE = Rule(
    name="phantom-gradient",
    needs=(),
    needs_any=(EQUAL_GROUPS,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "groups are filtered by the total reward, which shaping tells apart",
        "prompts far too hard, or a verifier that accepts nothing",
    ),
    remedies=(
        "filter groups by the part for right answers",
        "pay shaping only where the answer is right",
        "take easier prompts first; check the verifier on a known right answer",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "component-dominates",
        "judge-outage",
        "responses-truncated",
        "language-switches",
        "length-is-paid",
    ),
    thresholds=(MAX_SHAPED_SHARE,),
)
