"""Replies change to a script that their prompts do not use.

## What it sees
`rollout/other_script_share` (replies with a tenth of their letters or more in another script than
the prompt's) more than 0.2 above its own start in at least half of 20 successive updates (10 where
fewer than 40 are logged), to the end. A note; a warning where the outcome is proven to stall or
fall.

## Why it matters
A reward that checks the last number alone does not care what the rest is written in. What is
easiest for the base model wins, and the text can no longer be read by those it is for.

## What to do
Read some replies. Add a small reward for the prompt's language, or filter mixed replies; check that
the judge reads the language it is given.

## When it is wrong
Translation is asked for another script from the start: only what is added to that is reported.
Languages that share a script are not told apart.

## References
- DeepSeek-AI 2025, "DeepSeek-R1", section 2.3.2, on a reward for the language's consistency.
"""

from rlvitals.metrics.catalogue.rollout_metrics import OTHER_SCRIPT_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Rule, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above, start
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

# 19 runs without a fault of scripts/record_rollout_runs.py rise by 0.1 at most.
MAX_SCRIPT_INCREASE = Threshold(
    "language-switches.more", 0.2, "share of replies in another script, more than at the start",
    high=1.0,
)  # fmt: skip


def check(trace: Trace) -> Answer:
    """Compare the share of replies in another script with its own start."""
    shares = trace[OTHER_SCRIPT_SHARE.name]
    first, levels = start(shares) or 0.0, first_last_change(shares.values)
    limit = first + MAX_SCRIPT_INCREASE.on(trace)
    stretch = above(shares, limit)
    if levels is None or stretch is None or not stretch.goes_on or levels[1] <= limit:
        return Clear()
    return by_learning(
        trace,
        f"{levels[1]:.0%} of replies are in another script than their prompts, {first:.0%} at the "
        "start",
        (OTHER_SCRIPT_SHARE.name, shares),
        (stretch.start, levels[1]),
        Bound(limit, f"{MAX_SCRIPT_INCREASE.on(trace):g} above this run's start"),
        (),
        (),
    )


RULE = Rule(
    name="language-switches",
    needs=(OTHER_SCRIPT_SHARE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the reward checks the result alone, and another script is easier for the base model",
        "a judge that prefers another language, or does not read it",
    ),
    remedies=(
        "read some replies",
        "pay a little for the prompt's language, or filter mixed replies",
        "check what the judge reads",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("component-dominates",),
    thresholds=(MAX_SCRIPT_INCREASE,),
)
