"""Replies become a template that is blind to the prompt.

## What it sees
`rollout/prompt_retrieval` (how surely a reply leads back to its own prompt among those of the step,
without numbers and capitalised words) below a quarter of its own start in at least half of 20
successive updates (10 where fewer than 40 are logged), to the end. A note: a run that learns to
answer briefly comes near to the bound. A run whose replies never led back to their prompts is not
judged.

## Why it matters
Each reply looks reasoned and differs from the next, so that entropy stays where it was. But what is
written does not depend on what was asked: the policy earns what a fixed text earns.

## What to do
Read replies to different prompts next to each other. Raise the contrast within groups (harder or
mixed prompts, more completions), lower the weight of parts that a fixed text earns, filter groups
of little spread.

## When it is wrong
A policy that learns to answer with the bare result no longer repeats the question's words: there
the outcome rises, and this is a note.

## References
- "RAGEN-2", 2026, arXiv 2604.06268: mutual information of prompt and reasoning.
"""

from rlvitals.metrics.catalogue.rollout_metrics import PROMPT_RETRIEVAL
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, below, start
from rlvitals.rules.weigh import by_learning
from rlvitals.signals.level import first_last_change
from rlvitals.types import Trace

# Runs without a fault of scripts/record_rollout_runs.py: 19 keep 0.46; a faster one, 0.33.
MIN_RETRIEVAL_LEFT = Threshold(
    "template-collapse.left", 0.25, "prompts found again from replies, of the start", high=1.0
)


def check(trace: Trace) -> Answer:
    """Compare how many prompts are found again with the run's own start."""
    found_again = trace[PROMPT_RETRIEVAL.name]
    first, levels = start(found_again), first_last_change(found_again.values)
    if first is None or levels is None or first < 0.2:  # less is near chance
        return Undecided("replies did not lead back to their prompts at the start")
    limit = first * MIN_RETRIEVAL_LEFT.on(trace)
    stretch = below(found_again, limit)
    if stretch is None or not stretch.goes_on or levels[1] >= limit:
        return Clear()
    return by_learning(
        trace,
        f"replies become blind to their prompts: {levels[1]:.2f} of prompts are found again from "
        f"them, {first:.2f} at the start",
        (PROMPT_RETRIEVAL.name, found_again),
        (stretch.start, levels[1]),
        Bound(limit, f"{MIN_RETRIEVAL_LEFT.on(trace):.2g} x this run's start"),
        (),
        (),
        max_severity=Severity.NOTE,
    )


RULE = Rule(
    name="template-collapse",
    needs=(PROMPT_RETRIEVAL,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the reward pays for what a fixed text earns",
        "groups with little spread: noise decides what is learned",
        "updates too large for the policy",
    ),
    remedies=(
        "read replies to different prompts next to each other",
        "lower the weight of parts that any text can earn",
        "drop groups of little spread, or take more completions per prompt",
    ),
    profiles=kinds.LANGUAGE,
    explained_by=(
        "component-dominates",
        "text-degenerates",
        "responses-truncated",
        "language-switches",
        "length-is-paid",
        "judge-outage",
        "learning-rate-jump",
        "gradient-explosion",
    ),
    thresholds=(MIN_RETRIEVAL_LEFT,),
)
