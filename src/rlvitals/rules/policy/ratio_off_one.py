"""The probability ratio's mean is off one: the old log-probabilities are not the sampler's.

## What it sees
`policy/ratio` outside 0.5-2 in at least half of 10 successive updates is a warning; outside
0.1-10, or above 200 once, an error. A mean that wanders from 1 by more than 0.05 is a note; so
is a single update in which `policy/ratio_var` exceeds 0.1 and ten times what it was.

## Why it matters
E_old[pi_new / pi_old] is 1 whatever the update does, because probabilities sum to one. Off one,
the data did not come from the policy whose log-probabilities were stored, and PPO's gradient is
not that of its objective.

## What to do
Evaluate the first minibatch of the first epoch: there the ratio must be 1. If it is not, look for
another temperature, dropout, padding, another tokenisation, or stale weights in the sampler. If it
is, and KL and clip fraction are high too, the updates are too drastic for a mean over this few
samples: lower the learning rate.

## When it is wrong
The mean over few samples scatters by sqrt(variance of the ratio / samples): after huge updates
it is driven by single samples. Then KL and clip fraction are high as well, and are named here.

## References
- Schulman et al. 2017, "Proximal Policy Optimization Algorithms".
- Hilton et al. 2022, "Batch size-invariance for policy optimization", on the old policy's role.
"""

import numpy as np

from rlvitals.metrics.catalogue.policy import (
    APPROX_KL,
    CLIP_FRACTION,
    CLIP_FRACTION_EFFECTIVE,
    RATIO,
    RATIO_VAR,
)
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import Stretch, above, jumps
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

# Guide values of TRL's documentation.
MAX_MEAN_RATIO = Threshold(
    "ratio-off-one.off", 2.0, "mean ratio: beyond it, or as far below one", low=1.0
)
SEVERE_MEAN_RATIO = Threshold("ratio-off-one.far", 10.0, "the same, for an error", low=1.0)
MAX_SINGLE_RATIO = Threshold(
    "ratio-off-one.single", 200.0, "mean ratio of a single update", low=1.0
)
# |ln ratio| .05: three standard deviations of a healthy batch of a thousand samples.
NOTED_MEAN_RATIO = Threshold(
    "ratio-off-one.slight", float(np.exp(0.05)), "the same, for a note", low=1.0
)
RATIO_WINDOW = 10  # updates
RATIO_VARIANCE_FACTOR, RATIO_VARIANCE_FLOOR = 10.0, 0.1


def check(trace: Trace) -> Answer:
    """Measure the distance from one on a log scale: 0.5 and 2 are equally far."""
    ratio = trace[RATIO.name].finite()
    positive = ratio.where(ratio.values > 0)
    distance = Series(positive.steps, positive.times, np.abs(np.log(positive.values)))
    if len(distance) and ratio.values.max() > MAX_SINGLE_RATIO.on(trace):
        peak = int(ratio.values.argmax())
        step = int(ratio.steps[peak])
        stretch = Stretch(step, step, float(ratio.values[peak]), 0.0, goes_on=False)
        return _finding(
            trace, ratio, stretch, Severity.ERROR, MAX_SINGLE_RATIO.bound(trace, "default")
        )
    origin = "default, and as far below one"
    grades = (
        (SEVERE_MEAN_RATIO.bound(trace, origin), Severity.ERROR),
        (MAX_MEAN_RATIO.bound(trace, origin), Severity.WARNING),
        (NOTED_MEAN_RATIO.bound(trace, origin), Severity.NOTE),
    )
    for bound, severity in grades:
        if off_stretch := above(distance, float(np.log(bound.value)), RATIO_WINDOW):
            return _finding(trace, ratio, off_stretch, severity, bound)
    return _scatter(trace)


def _scatter(trace: Trace) -> Answer:
    """Note single updates in which the ratio scatters far more than before."""
    variance = trace.get(RATIO_VAR.name)
    spikes = (
        jumps(variance.finite(), RATIO_VARIANCE_FACTOR, RATIO_VARIANCE_FLOOR) if variance else ()
    )
    if variance is None or not spikes:
        return Clear()
    worst = max(spikes, key=lambda spike: spike.value)
    steps = variance.finite().steps
    return Finding(
        f"the ratio's variance jumps to {worst.value:.2g} in one update, from {worst.baseline:.1g}",
        severity=Severity.NOTE,
        metric=RATIO_VAR.name,
        began=int(steps[spikes[0].index]),
        ended=int(steps[spikes[-1].index]),
        observed=worst.value,
        bound=Bound(
            RATIO_VARIANCE_FLOOR, f"default, and {RATIO_VARIANCE_FACTOR:g} x the updates before it"
        ),
        causes=("one drastic update: an outlier in its advantages",),
        remedies=("{max_grad_norm:clip gradients} and advantages", "lower {learning_rate}"),
    )


def _finding(
    trace: Trace, ratio: Series, stretch: Stretch, severity: Severity, bound: Bound
) -> Finding:
    during = stretch.of(ratio)
    worst = float(during.values[np.abs(np.log(np.maximum(during.values, 1e-12))).argmax()])
    together = _describe_large_updates(trace, stretch)
    causes = ("updates are too drastic: learning rate or epochs too high",) if together else ()
    remedies = (
        ("lower {learning_rate}", "run {n_epochs:fewer epochs per batch}") if together else ()
    )
    improves = standing(trace, since=stretch.start).improves
    return Finding(
        f"the probability ratio's mean is off one: {worst:.3g} at the extreme",
        severity=Severity.NOTE if improves and severity < Severity.ERROR else severity,
        metric=RATIO.name,
        began=stretch.start,
        ended=stretch.end,
        observed=worst,
        bound=bound,
        evidence=together,
        counter=("the outcome improves all the same",) if improves else (),
        causes=(*causes, *RATIO_CAUSES) if together else (),
        remedies=(*remedies, *RATIO_REMEDIES) if together else (),
    )


def _describe_large_updates(trace: Trace, stretch: Stretch) -> tuple[str, ...]:
    """Say whether KL and clip fraction are high at the same time: then updates are drastic."""
    sentences = []
    for metric, limit, template in (
        (APPROX_KL, 0.03, "KL per update is {:.2g} nats meanwhile"),
        (CLIP_FRACTION, 0.2, "{:.0%} of samples are clipped meanwhile"),
        # Half of the clip fraction: one direction counts.
        (CLIP_FRACTION_EFFECTIVE, 0.1, "{:.0%} of tokens are clipped meanwhile"),
        (RATIO_VAR, 1.0, "the ratio's variance is {:.2g} meanwhile"),
    ):
        series = trace.get(metric.name)
        middle = None if series is None else median(series.since(stretch.start).values)
        if middle is not None and middle > limit:
            sentences.append(template.format(middle))
    return tuple(sentences)


RATIO_CAUSES = (
    "the sampler's temperature, dropout or padding differs from the trainer's",
    "stale weights in the sampler",
    "text is tokenised anew between sampling and training",
)
RATIO_REMEDIES = (
    "check that the ratio is 1 on the first minibatch of the first epoch",
    "use the sampler's own log-probabilities",
)

RULE = Rule(
    name="ratio-off-one",
    needs=(RATIO,),
    at_least=RATIO_WINDOW,
    check=check,
    doc=__doc__,
    causes=RATIO_CAUSES,
    remedies=RATIO_REMEDIES,
    profiles=(*kinds.PPO, Profile.GRPO),
    explained_by=("first-update-off",),
    verdict="unstable",
    thresholds=(MAX_MEAN_RATIO, SEVERE_MEAN_RATIO, NOTED_MEAN_RATIO, MAX_SINGLE_RATIO),
)
