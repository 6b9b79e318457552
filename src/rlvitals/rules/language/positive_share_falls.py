"""The share of samples above the reward threshold falls: the model unlearns.

## What it sees
The positive share (logged, or from the counts, or one minus the negative share) lower by a
twentieth or more since its best tenth of the run, with a 99 % interval of the trend since then
below zero; or lower over the whole run. A rising share is what training is for, and is never
reported.

## Why it matters
PSR, NSR and W-REINFORCE learn from which side of the threshold a sample falls. Their own signed
rewards can hide a fall: NSR's is negative by design.

## What to do
Lower the learning rate; check that the threshold separates right answers from wrong ones; in NSR,
where pushing wrong answers down spreads probability over everything else, watch entropy and
truncation, or mix positives in (W-REINFORCE).

## When it is wrong
Prompts that get harder by a curriculum, or a threshold that is raised on purpose.

## References
- Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning".
"""

import numpy as np

from rlvitals.metrics.language import (
    NEGATIVE_SAMPLES,
    NEGATIVE_SHARE,
    POSITIVE_SAMPLES,
    POSITIVE_SHARE,
)
from rlvitals.metrics.metric import Bound
from rlvitals.records import Profile, Series, Trace
from rlvitals.rules.answers import learned
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Undecided
from rlvitals.rules.weigh import severity, sides
from rlvitals.signals.blocks import block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.trend import trend

FALLS = Bound(0.05, "of all samples, default")
LEAST = 20  # updates
PARTS = 10  # blocks that the best is taken over
CONFIDENCE = 0.99  # the best block is picked by looking, so ask more than 95 %


def check(trace: Trace) -> Answer:
    """Judge the course since the best block."""
    found = _share(trace)
    if found is None or len(found[1]) < LEAST:
        return Undecided("the positive share cannot be worked out", (POSITIVE_SHARE.name,))
    name, share = found
    width = max(1, len(share) // PARTS)
    blocks = block_means(share.values, width)
    best = int(blocks.argmax())
    since = share.where(slice(len(share) - width * (len(blocks) - best), None))
    fitted = trend(since.values, confidence=CONFIDENCE)
    levels = first_last_change(since.values)
    if fitted is None or levels is None or fitted.change_high >= 0:
        return Clear()
    last = levels[1]
    drop = float(blocks[best]) - last
    if drop < FALLS.value:
        return Clear()
    began = int(since.steps[0])
    now = learned(trace, since=began)
    evidence, counter = sides(now)
    return Finding(
        f"the positive share falls: {blocks[best]:.1%} at its best to {last:.1%}",
        severity=severity(now, unknown=Severity.NOTE),
        metric=name,
        began=began,
        ended=int(share.steps[-1]),
        observed=-drop,
        bound=FALLS,
        evidence=(
            f"99 % interval of the change since its best: {fitted.change_low:+.3g} to "
            f"{fitted.change_high:+.3g}",
            *evidence,
        ),
        counter=counter,
    )


def _share(trace: Trace) -> tuple[str, Series] | None:
    """Return the positive share as finite points, and the metric it was taken from."""
    if POSITIVE_SHARE.name in trace:
        return POSITIVE_SHARE.name, trace[POSITIVE_SHARE.name].finite()
    if NEGATIVE_SHARE.name in trace:
        rest = trace[NEGATIVE_SHARE.name].finite()
        return NEGATIVE_SHARE.name, Series(rest.steps, rest.times, 1.0 - rest.values)
    if POSITIVE_SAMPLES.name not in trace or NEGATIVE_SAMPLES.name not in trace:
        return None
    positive, negative = trace[POSITIVE_SAMPLES.name], trace[NEGATIVE_SAMPLES.name]
    _, at, within = np.intersect1d(positive.steps, negative.steps, return_indices=True)
    found = positive.where(at)
    total = found.values + negative.values[within]
    keep = total > 0
    kept = found.where(keep)
    return POSITIVE_SAMPLES.name, Series(kept.steps, kept.times, kept.values / total[keep]).finite()


RULE = Rule(
    name="positive-share-falls",
    needs=(),
    needs_any=(POSITIVE_SHARE, NEGATIVE_SHARE, POSITIVE_SAMPLES),
    at_least=LEAST,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high",
        "negatives pushed down without anything to push up",
        "prompts that got harder",
    ),
    remedies=(
        "lower the learning rate",
        "mix in positive samples: w-reinforce with lambda 0.1",
        "return to the checkpoint before this step",
    ),
    profiles=(Profile.PSR, Profile.NSR, Profile.W_REINFORCE),
    explained_by=("learning-rate-jump", "entropy-collapse", "responses-truncated"),
)
