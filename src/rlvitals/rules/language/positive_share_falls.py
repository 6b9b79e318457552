"""The share of samples above the reward threshold falls: the model unlearns.

## What it sees
The positive share (logged, or from the counts, or one minus the negative share) lower by five
points and by a fifth over the whole run, with a 99 % interval of its trend below zero; or halved
since its best tenth of the run, with such a trend since then; or over the last half of the run
lower than in its first tenth by four standard errors. A rising share is what training is for, and
is never reported.

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

from rlvitals.metrics.catalogue.language import NEGATIVE_SHARE, POSITIVE_SAMPLES, POSITIVE_SHARE
from rlvitals.rules import kinds
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.derived_series import positive_share
from rlvitals.rules.rule import Answer, Clear, Curve, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.weigh import severity, sides
from rlvitals.signals.blocks import block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.trend import trend
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MIN_POSITIVE_FALL = Threshold(
    "positive-share-falls.by", 0.05, "share of all samples that are positive no more", high=1.0
)
# Slow noise alone moves a share by five points.
MIN_POSITIVE_FALL_RATIO = Threshold(
    "positive-share-falls.part", 0.2, "part of the positive share that is lost", high=1.0
)
MIN_POSITIVE_UPDATES = 20
POSITIVE_BLOCKS = 10  # the best of them is the reference


@dataclass(frozen=True, slots=True)
class Fall:
    """Where the share was, where it is, and what shows that this is no noise."""

    before: float
    after: float
    when: str
    onset_step: int  # step
    proof: str
    unknown: Severity = Severity.NOTE  # where the outcome says nothing


def check(trace: Trace) -> Answer:
    """Judge the course of the run, the course since its best, and the level against the start."""
    positive = positive_share(trace)
    if positive is None or len(positive[1]) < MIN_POSITIVE_UPDATES:
        return Undecided("the positive share cannot be worked out", (POSITIVE_SHARE.name,))
    name, share = positive
    fall = _falls(trace, share, "at the start", None)
    fall = fall or _since_best(trace, share) or _below_start(trace, share)
    if fall is None:
        return Clear()
    outcome_trend = learning_trend(trace, since=fall.onset_step)
    evidence, counter = sides(outcome_trend)
    return Finding(
        f"the positive share falls: {fall.before:.1%} {fall.when} to {fall.after:.1%}",
        severity=severity(outcome_trend, unknown=fall.unknown),
        metric=name,
        began=fall.onset_step,
        ended=int(share.steps[-1]),
        observed=fall.after - fall.before,
        bound=MIN_POSITIVE_FALL.bound(trace, "of all samples, default"),
        evidence=(fall.proof, *evidence),
        counter=counter,
        curve=Curve("positive share", share),
    )


def _since_best(trace: Trace, share: Series) -> Fall | None:
    width = max(1, len(share) // POSITIVE_BLOCKS)
    blocks = block_means(share.values, width)
    best = int(blocks.argmax())
    after_best = share.where(slice(len(share) - width * (len(blocks) - best), None))
    fall = _falls(trace, after_best, "at its best", float(blocks[best]))
    # Anything falls from its own best: only a loss of half of it is no selection by looking.
    return fall if fall is not None and fall.after <= 0.5 * fall.before else None  # of its best


def _falls(trace: Trace, share: Series, when: str, first_share: float | None) -> Fall | None:
    fitted = trend(share.values, confidence=0.99)  # high: the test is repeated while a run goes on
    levels = first_last_change(share.values)
    if fitted is None or levels is None or fitted.change_high >= 0:
        return None
    first_share = levels[0] if first_share is None else first_share
    if first_share - levels[1] < _material(trace, first_share):
        return None
    proof = f"99 % interval of the change: {fitted.change_low:+.3g} to {fitted.change_high:+.3g}"
    return Fall(first_share, levels[1], when, int(share.steps[0]), proof)


def _below_start(trace: Trace, share: Series) -> Fall | None:
    """See a sudden fall that nothing made good: no trend, but never again as at the start."""
    head = share.values[: max(POSITIVE_BLOCKS // 2, len(share) // POSITIVE_BLOCKS)]
    half = share.tail(len(share) // 2)
    # How much means of that many updates differ anyway: slow noise shows there, not in neighbours.
    blocks = block_means(half.values, len(head))
    noise = (noise_sd(share.values) or 0.0) / float(np.sqrt(len(head)))
    error = float(np.hypot(noise, blocks.std(ddof=1)))
    last_share = float(np.mean(half.values))
    first_share = float(np.mean(head))
    # 4 standard errors below the start.
    if first_share - last_share < max(_material(trace, first_share), 4.0 * error):
        return None
    low = np.flatnonzero(share.values < last_share)
    onset_step = int(share.steps[max(int(low[0]) - 1, 0)]) if len(low) else int(share.steps[0])
    proof = f"standard error of that difference: {error:.2g}"
    return Fall(first_share, last_share, "at the start", onset_step, proof, Severity.WARNING)


def _material(trace: Trace, first_share: float) -> float:
    return max(MIN_POSITIVE_FALL.on(trace), MIN_POSITIVE_FALL_RATIO.on(trace) * first_share)


RULE = Rule(
    name="positive-share-falls",
    needs=(),
    needs_any=(POSITIVE_SHARE, NEGATIVE_SHARE, POSITIVE_SAMPLES),
    at_least=MIN_POSITIVE_UPDATES,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high",
        "negatives pushed down without anything to push up",
        "prompts that got harder",
    ),
    remedies=(
        "lower {learning_rate}",
        "mix in positive samples: w-reinforce with {lambda_psr:lambda} 0.1",
        "return to the checkpoint before this step",
    ),
    profiles=kinds.THRESHOLD_FILTERED,
    explained_by=(
        "learning-rate-jump",
        "gradient-explosion",
        "entropy-collapse",
        "reference-kl-out-of-range",
        "response-length-explodes",
        "responses-truncated",
        "threshold-off-correctness",
    ),
    thresholds=(MIN_POSITIVE_FALL, MIN_POSITIVE_FALL_RATIO),
)
