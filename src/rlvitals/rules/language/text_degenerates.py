"""Replies end in one phrase over and over.

## What it sees
`language/repetition_share` more than 0.1 above its own start in at least half of 20 successive
updates (10 where fewer than 40 are logged), to the end. A note: how often healthy models loop was
not measured.

## Why it matters
A text that loops runs to the length limit and earns by accident. It is how text falls apart after
updates that are too large, and what a reward for length pays for first.

## What to do
Read the looping replies, and those from just before. Look for the step at which the gradient or the
KL jumped; go back to the checkpoint before it, with a lower learning rate. Take length out of the
reward.

## When it is wrong
A base model may loop at the start as well: only what is added to that is reported. A list that
counts on does not loop. Text that is garbled without a repetition is not seen.

## References
- Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
- THUDM/slime, the metric `repetition_frac`.
"""

from rlvitals.metrics.catalogue.rollouts import REPETITION_SHARE
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above, start
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

# A choice: no healthy run of ours writes the 200 characters that a loop takes, so this is a note.
MAX_LOOP_INCREASE = Threshold(
    "text-degenerates.more", 0.1, "share of replies that loop, more than at the start", high=1.0
)


def check(trace: Trace) -> Answer:
    """Compare the share of looping replies with its own start."""
    shares = trace[REPETITION_SHARE.name]
    first, levels = start(shares) or 0.0, first_last_change(shares.values)
    limit = first + MAX_LOOP_INCREASE.on(trace)
    stretch = above(shares, limit)
    if levels is None or stretch is None or not stretch.goes_on or levels[1] <= limit:
        return Clear()
    return by_learning(
        trace,
        f"{levels[1]:.0%} of replies end in one phrase over and over, {first:.0%} at the start",
        (REPETITION_SHARE.name, shares),
        (stretch.start, levels[1]),
        Bound(limit, f"{MAX_LOOP_INCREASE.on(trace):g} above this run's start"),
        (),
        (),
        max_severity=Severity.NOTE,
    )


RULE = Rule(
    name="text-degenerates",
    needs=(REPETITION_SHARE,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "updates too large for the policy: text falls apart",
        "a reward that grows with length",
        "a temperature too low for the sampler",
    ),
    remedies=(
        "read the looping replies",
        "take up again before the step at which it began, with a lower {learning_rate}",
        "take length out of the reward",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "learning-rate-jump",
        "gradient-explosion",
        "length-is-paid",
        "kl-spike",
        "exploration-explodes",
        "component-dominates",
    ),
    thresholds=(MAX_LOOP_INCREASE,),
)
