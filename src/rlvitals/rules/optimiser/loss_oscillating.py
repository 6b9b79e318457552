"""A loss swings more and more, and the run does not get better.

## What it sees
A supervised run's `optimiser/loss`, or a critic's `value/loss`, by its logarithm, as its size says
nothing: the mean square of its steps in the last half against the first 30 %, above 4 (somewhat
more for short runs), while the late steps are a quarter of the level. The outcome decides: a
warning where it is proven to stall, a note where it cannot be told, nothing where it improves.
Policy and total losses are not looked at: they are noise around zero.

## Why it matters
A loss that grows rougher is one whose steps overshoot: each undoes part of the one before.

## What to do
Lower the learning rate, or let it decay; larger batches and gradient clipping help as well.

## When it is wrong
Sign changes of a loss say nothing (white noise has 67 %), nor does its spread over its mean, which
is infinite around zero; so only growth against the run's own past counts. A run that swings
from its first step on is not seen here. Data that becomes harder makes a loss rougher too.

## References
- von Neumann 1941, "Distribution of the Ratio of the Mean Square Successive Difference to the
  Variance".
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import LOSS
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import (
    Answer,
    Clear,
    Finding,
    Rule,
    Severity,
    Threshold,
    Undecided,
    persistence,
)
from rlvitals.rules.standing import standing
from rlvitals.signals.oscillation import oscillation
from rlvitals.signals.spread import noise_sd
from rlvitals.types import Profile, Series, Trace

LOSS_OSCILLATION_PERSISTENCE = persistence("loss-oscillating")
# About 1 for noise that stays as it is.
ROUGHNESS_RATIO = Threshold(
    "loss-oscillating.ratio", 4.0, "mean square step, last half over first 30 % of the run", low=1.0
)
MIN_LOG_SWING = Threshold(
    "loss-oscillating.swing", 0.25, "standard deviation of the late logarithms: a part of the level"
)
MIN_ROUGHNESS_POINTS = 40


def check(trace: Trace) -> Answer:
    """Compare the roughness of the last half with that of the start."""
    supervised = trace.profile is Profile.SUPERVISED
    name = LOSS.name if supervised else VALUE_LOSS.name
    logged = trace.get(name)
    if logged is None or len(logged := logged.finite()) < MIN_ROUGHNESS_POINTS:
        return Undecided(f"fewer than {MIN_ROUGHNESS_POINTS} points of {name}", (name,))
    series = logged.where(logged.values > 0)  # so has every loss that is a square or a surprise
    values = np.log(series.values)
    roughness = oscillation(values)
    if roughness is None:
        return Undecided(f"too few points of {name}", (name,))
    # Slack: short stretches differ more by chance.
    limit = ROUGHNESS_RATIO.on(trace) * (1 + 20 / values.size)
    is_large = (noise_sd(values[values.size // 2 :]) or 0.0) > MIN_LOG_SWING.on(trace)
    if not (roughness.ratio > limit and is_large):
        return Clear()
    return _finding(trace, name, series, roughness.ratio, limit)


def _finding(trace: Trace, name: str, series: Series, ratio: float, limit: float) -> Answer:
    half = series.where(slice(len(series) // 2, None))
    # Zeros too, which have no logarithm.
    half_values = trace[name].finite().since(int(half.steps[0])).values
    trend = standing(trace)  # a critic may swing around a plateau that the run has climbed to
    if weigh.content(trend):
        return Clear()
    evidence, counter = weigh.sides(trend)
    low, high = float(half_values.min()), float(half_values.max())
    return Finding(
        f"{name} swings {np.sqrt(ratio):.2g} x as widely as in the first 30 % of the run: between "
        f"{low:.3g} and {high:.3g} in its last half",
        severity=Severity.WARNING if trend.stalls else Severity.NOTE,
        metric=name,
        began=int(half.steps[0]),
        ended=int(half.steps[-1]),
        observed=ratio,
        bound=Bound(limit, "this run's own first 30 %: mean square step, as a multiple of it"),
        limit_on_curve=False,
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="loss-oscillating",
    needs=(),
    needs_any=(LOSS, VALUE_LOSS),
    at_least=MIN_ROUGHNESS_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high for this stage",
        "batches too small, or of very different difficulty",
        "no gradient clipping",
    ),
    remedies=(
        "lower {learning_rate} or let it decay",
        "use {batch_size|n_steps:larger batches}",
        "{max_grad_norm:clip gradients}",
    ),
    profiles=(Profile.SUPERVISED, *kinds.ACTOR_CRITIC),
    explained_by=(
        "setting-out-of-range",
        "gradient-explosion",
        "learning-rate-too-high",
        "learning-rate-jump",
        "kl-above-target",
        "kl-spike",
        "value-loss-explosion",
    ),
    verdict="unstable",
    thresholds=(ROUGHNESS_RATIO, MIN_LOG_SWING, LOSS_OSCILLATION_PERSISTENCE),
    persists=LOSS_OSCILLATION_PERSISTENCE,
)
