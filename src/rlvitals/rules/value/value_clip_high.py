"""Most of the critic's larger corrections are clipped away.

## What it sees
`value/clip_fraction` above 0.3 in at least half of 20 successive updates (10 where fewer than 40
are logged). Never more than a note.

## Why it matters
Value clipping keeps a prediction within a fixed distance of the old one in each update. Where
it acts on a third of the samples, the critic runs behind the returns, or the range does not
fit their scale.

## What to do
Compare `cliprange_value` with the scale of the returns: it is an absolute distance. Widen it, or
normalise rewards; a critic that over-fits one batch wants fewer epochs or a lower learning rate.

## When it is wrong
The share depends on the frameworks' own counting: TRL counts samples whose clipped error is the
larger, which early in a run are many. A critic that catches up within some tens of updates was
only far off at the start.

## References
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.5:
  value clipping hurts more often than it helps.
- TRL, `trainer/ppo_trainer.py`, `vf_clipfrac`.
"""

from rlvitals.metrics.catalogue.value import CLIP_FRACTION
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, above
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Trace

MAX_VALUE_CLIP_FRACTION = Threshold(
    "value-clip-high.share",
    0.3,
    "share of values clipped; where it is not set, the healthy range of that kind of training",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Find a stretch above the healthy band."""
    clipped = trace[CLIP_FRACTION.name]
    band_limit = MAX_VALUE_CLIP_FRACTION.name not in trace.thresholds and CLIP_FRACTION.band(
        trace.profile
    ).ceiling(trace)
    bound = band_limit or MAX_VALUE_CLIP_FRACTION.bound(trace, "default")
    stretch = above(clipped, bound.value)
    if stretch is None:
        return Clear()
    middle = median(stretch.of(clipped).values) or 0.0
    evidence, counter = weigh.sides(standing(trace, since=stretch.start))
    return Finding(
        f"{middle:.0%} of value updates are clipped in the median, {stretch.worst:.0%} at most",
        severity=Severity.NOTE,
        metric=CLIP_FRACTION.name,
        began=stretch.start,
        ended=stretch.end,
        observed=middle,
        bound=bound,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="value-clip-high",
    needs=(CLIP_FRACTION,),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the value clip range is small beside the returns' scale",
        "rewards are not normalised",
        "too many epochs over one batch: the critic over-fits it",
    ),
    remedies=(
        "widen {clip_range_value}, or switch value clipping off",
        "normalise rewards",
        "lower {learning_rate} or run {n_epochs:fewer epochs per batch}",
    ),
    profiles=(Profile.RLHF_PPO,),
    explained_by=(
        "reward-spread-grows",
        "value-loss-explosion",
    ),
    thresholds=(MAX_VALUE_CLIP_FRACTION,),
)
