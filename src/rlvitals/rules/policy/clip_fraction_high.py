"""Much of every update is clipped away.

## What it sees
`policy/clip_fraction`, or where that is not logged `policy/clip_fraction_effective`, above the
profile's upper end (0.3 for control and scheduler PPO, 0.2 for
language models) in at least half of 20 successive updates (10 in a short run): a warning where the
outcome is proven not to improve, or where it cannot be told and more than half of the samples are
clipped; an error where both hold; a note where the outcome improves.

## Why it matters
A clipped sample gives no gradient: the update is driven by the minority that still moves, and
the policy is already far from the one that collected the data.

## What to do
Lower the learning rate, run fewer epochs, use larger minibatches. Lowering the clip range makes
the fraction *rise*: a range of 1e-4 clips 90 % of samples.

## When it is wrong
GSPO clips some ten per cent of tokens by design, and GRPO's effective clipping (only where it
acts) is about half of PPO's |r - 1| > eps: the two are kept apart and this rule reads the latter.

## References
- Schulman et al. 2017, "Proximal Policy Optimization Algorithms", section 3.
- Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization".
"""

from rlvitals.metrics.catalogue.policy import APPROX_KL, CLIP_FRACTION, CLIP_FRACTION_EFFECTIVE
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above
from rlvitals.rules.standing import Standing, standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Trace

MAX_CLIP_FRACTION = Threshold(
    "clip-fraction-high.share",
    0.3,
    "share of samples clipped; where it is not set, the healthy range of that kind of training",
    high=1.0,
)
SEVERE_CLIP_FRACTION = Threshold(
    "clip-fraction-high.severe",
    0.5,
    "share of samples clipped, in the median, at which most give no gradient",
    high=1.0,
)


def check(trace: Trace) -> Answer:
    """Compare with the profile's band; let the outcome decide how bad it is."""
    metric = CLIP_FRACTION if CLIP_FRACTION.name in trace else CLIP_FRACTION_EFFECTIVE
    clip = trace[metric.name]
    band_limit = MAX_CLIP_FRACTION.name not in trace.thresholds and metric.band(
        trace.profile
    ).ceiling(trace)
    limit = band_limit or MAX_CLIP_FRACTION.bound(trace, "default")
    stretch = above(clip, limit.value)
    if stretch is None:
        return Clear()
    middle = stretch.middle(clip)
    judge = learning_trend if trace.profile in kinds.LANGUAGE else standing
    trend = judge(trace, since=stretch.start)
    causes, remedies = _weigh_clip_range(trace, stretch)
    severe = middle > SEVERE_CLIP_FRACTION.on(trace) and not weigh.content(standing(trace))
    return Finding(
        f"too many samples are clipped: {middle:.0%} in the median, {stretch.worst:.0%} at most",
        severity=stretch.severity(_severity(trend, severe=severe)),
        metric=metric.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=(f"meanwhile {trend.sentence}",) if trend.stalls else (),
        counter=(f"{trend.sentence} all the same",) if trend.improves else (),
        causes=causes,
        remedies=remedies,
    )


def _severity(trend: Standing, *, severe: bool) -> Severity:
    if trend.improves or not (trend.stalls or severe):
        return Severity.NOTE
    return Severity.ERROR if trend.stalls and severe else Severity.WARNING


def _weigh_clip_range(trace: Trace, stretch: Stretch) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tell large updates from a clip range so small that any update is clipped."""
    clip_range = trace.number("clip_range")
    kl = trace.get(APPROX_KL.name)
    typical_kl = median(kl.since(stretch.start).values) if kl is not None else None
    # So small a range clips updates that hardly move.
    if (clip_range is not None and clip_range < 0.02) or (
        typical_kl is not None and typical_kl < 1e-4  # nats
    ):
        range_text = (
            f"the clip range {clip_range:g}" if clip_range is not None else "the clip range"
        )
        return (f"{range_text} is too small: updates hardly move and are clipped all the same",), (
            "raise the clip range towards 0.1-0.3",
        )
    return (), ()


RULE = Rule(
    name="clip-fraction-high",
    needs=(),
    needs_any=(CLIP_FRACTION, CLIP_FRACTION_EFFECTIVE),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=("learning rate too high", "too many epochs per batch", "minibatches too small"),
    remedies=(
        "lower {learning_rate}",
        "run {n_epochs:fewer epochs per batch}",
        "use {minibatch_size:larger minibatches}",
    ),
    profiles=(*kinds.PPO, Profile.GRPO),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-jump",
        "ratio-off-one",
        "kl-above-target",
        "kl-spike",
        "learning-rate-too-high",
    ),
    thresholds=(MAX_CLIP_FRACTION, SEVERE_CLIP_FRACTION),
)
