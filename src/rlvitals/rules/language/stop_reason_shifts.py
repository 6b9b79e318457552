"""Rollouts end for another reason than they used to.

## What it sees
The reason for which most rollouts ended at the start (`language/stop_reason`) loses more than 0.3
of all rollouts, and another reason gains as much, in at least half of 20 successive updates (10
where fewer than 40 are logged), to the end. Only shares are compared, not counts. A note; a warning
where the outcome is proven to stall or fall.

## Why it matters
From answered to cut, to out of turns, or to an error is the first sign of a text that does not end,
a tool that fails, or a limit that was set too low.

## What to do
Read rollouts that ended for the new reason. Cut ones: is the limit too low, or is the text empty of
sense? Out of turns: which call is repeated?

## When it is wrong
A policy that learns to answer moves from the limit to an answer: there the outcome rises, and this
is a note.

## References
- rllm issue #710, on sandboxes that end rollouts early.
"""

from rlvitals.metrics.catalogue.rollouts import STOP_REASON
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above, start
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.types import Series, Trace

# Framework tables hold counts under the same family.


# 19 runs without a fault of scripts/record_rollout_runs.py shift by 0.03 at most.
MIN_REASON_SHIFT = Threshold(
    "stop-reason-shifts.share", 0.3, "share of rollouts that changed", high=1.0
)


def check(trace: Trace) -> Answer:
    """Compare each reason's share with its own start."""
    shares = {
        name: series.finite()
        for name, series in trace.family(STOP_REASON.name).items()
        if len(series.finite()) >= SHORT_WINDOW
    }
    if any(series.values.max() > 1.0 for series in shares.values()):  # counts, not shares
        return Undecided("reasons to stop are logged as counts: shares are compared")
    changes = {name: _change(series) for name, series in shares.items()}
    # The logged reasons must cover 90 % of the rollouts at the start.
    if sum(first for first, _ in changes.values()) < 0.9:
        return Undecided("some reasons to stop are not logged", (STOP_REASON.name,))
    usual = max(changes, key=lambda name: changes[name][0])
    newest = max(changes, key=lambda name: changes[name][1] - changes[name][0])
    first, last = changes[newest]
    shift = MIN_REASON_SHIFT.on(trace)
    stretch = above(shares[newest], first + shift)
    loss = changes[usual][0] - changes[usual][1]
    if stretch is None or not stretch.goes_on or min(loss, last - first) <= shift:
        return Clear()
    usual_first, usual_last = changes[usual]
    shift_text = f"those that end by '{usual}' go from {usual_first:.0%} to {usual_last:.0%}"
    return by_learning(
        trace,
        f"{last:.0%} of rollouts end by '{newest}', {first:.0%} at the start",
        (f"{STOP_REASON.name}/{newest}", shares[newest]),
        (stretch.start, last),
        Bound(first + shift, f"{shift:g} above this run's start"),
        (shift_text,),
        (),
    )


def _change(series: Series) -> tuple[float, float]:
    """Return the share at the start and over the last fifth."""
    levels = first_last_change(series.values)
    return start(series) or 0.0, levels[1] if levels else 0.0


RULE = Rule(
    name="stop-reason-shifts",
    needs=(),
    needs_any=(STOP_REASON,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "replies no longer end by themselves",
        "a tool or an environment fails, or its limit of turns is too low",
        "a limit was changed",
    ),
    remedies=(
        "read rollouts that ended for the new reason",
        "raise the limit if they would have ended well",
        "mend the tool, or leave failed rollouts out of the loss",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "text-degenerates",
        "turns-inflate",
        "length-is-paid",
        "responses-truncated",
        "judge-outage",
    ),
    thresholds=(MIN_REASON_SHIFT,),
)
