"""Episodes take ever more turns, and nothing better comes of it.

## What it sees
`language/turns_mean` at more than twice its start, and a turn more, in at least half of 20
successive updates (10 where fewer than 40 are logged), to the end. A warning where the outcome is
proven to stall or fall, a note where that cannot be told. Where the outcome rises or holds its
best, the turns are what it takes, and nothing is said.

## Why it matters
An agent that repeats a call, or asks again what it knows, pays with its context and its time. Its
turns fill up with echoes, which are then trained on.

## What to do
Read the longest episodes: which call is repeated, and what does it return? Do not pay for calls or
turns; charge a little for each, or end an episode that repeats itself.

## When it is wrong
A curriculum whose tasks need more turns keeps the outcome flat while the policy gets better.

## References
- "RAGEN", 2025, arXiv 2504.20073, the echo trap.
"""

from rlvitals.metrics.catalogue.rollouts import TURNS_MEAN
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Rule, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, above, start
from rlvitals.rules.weigh import by_learning, clear_by_answers, content
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

# 19 runs without a fault of scripts/record_rollout_runs.py, 3 with calls that pay, reach 1.64.
TURNS_FACTOR = Threshold("turns-inflate.factor", 2.0, "x its own start, in turns", low=1.0)


def check(trace: Trace) -> Answer:
    """Ask for growth, then whether anything comes of it."""
    turns = trace[TURNS_MEAN.name]
    first, levels = start(turns), first_last_change(turns.values)
    if not first or levels is None:
        return Undecided("episodes had no turn at the start: there is no scale")
    limit = TURNS_FACTOR.bound(trace, f"{TURNS_FACTOR.on(trace):g} x this run's start", first)
    stretch = above(turns, limit.value)
    grown = levels[1] > max(limit.value, first + 1.0)  # one follow-up is no inflation
    if stretch is None or not stretch.goes_on or not grown:
        return Clear()
    if content(learning_trend(trace)):
        return clear_by_answers(trace)
    return by_learning(
        trace,
        f"episodes take {levels[1]:.3g} turns, {first:.3g} at the start",
        (TURNS_MEAN.name, turns),
        (stretch.start, levels[1]),
        limit,
        (),
        (),
    )


RULE = Rule(
    name="turns-inflate",
    needs=(TURNS_MEAN,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "calls or turns are paid for",
        "the policy repeats a call that fails or returns nothing new",
    ),
    remedies=(
        "read the longest episodes",
        "take the pay for calls out of the reward, or charge a little for each",
        "end an episode that repeats itself",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=("component-dominates",),
    thresholds=(TURNS_FACTOR,),
)
