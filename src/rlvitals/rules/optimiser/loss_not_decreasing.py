"""The loss of a run that is meant to lower it does not fall.

## What it sees
`optimiser/loss` at the end no more than 5 % below its start (the level of the last fifth against
the higher of the first five points and the first fifth), judged after 50 logged points, or half of
the budget where it is known. In supervised training that is a warning. In PSR, NSR and W-REINFORCE,
whose losses fall in healthy runs too, it is a note. Where the outcome improves or holds its best,
more pairs of responses are ordered rightly, or the margin of pairs is proven to rise, it is not
reported; while the learning rate still rises to its level, nothing is said. The guides' measure,
standard
deviation over mean of the last ten losses (below 0.01: converged), is given as evidence, and so is
the curve's shape. Elsewhere in RL the loss is no score, and the rule does not apply. A supervised
loss of which more than a twentieth lies below 0 is not judged: it is that of a policy.

## Why it matters
A supervised run that does not lower its loss learns nothing: the learning rate is too low, or
the labels do not reach the loss.

## What to do
Raise the learning rate by factors of 3 and watch the first fifty updates. Then check masks and
labels: which tokens count, and whether they are the right ones.

## When it is wrong
A long warm-up whose learning rate is not logged holds the loss up for as long. A model that starts
near its floor, resumed from a good checkpoint, has little left to lower.

## References
- Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section 3.3.
- Zhu et al. 2025, "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning".
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import LEARNING_RATE, LOSS
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
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
from rlvitals.signals.level import first_last_change
from rlvitals.signals.shape import shape, tail_ratio
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

LOSS_PERSISTENCE = persistence("loss-not-decreasing")
MIN_LOSS_FALL = Threshold(
    "loss-not-decreasing.fall",
    0.05,
    "share of the loss at the start that is gone at the end",
    high=1.0,
)
MAX_CONVERGED_VARIATION = 0.01  # standard deviation / mean, the limit of published guides


def check(trace: Trace) -> Answer:
    """Compare the end with the start, once enough of the run is seen."""
    loss = trace[LOSS.name].finite()
    supervised = trace.profile is Profile.SUPERVISED
    if reason := _reason_for_silence(trace, loss, supervised=supervised):
        return Undecided(reason)
    levels = first_last_change(loss.values)
    if levels is None:
        return Undecided("too few losses for a level")
    first, last = max(median(loss.values[:5]) or 0.0, levels[0]), levels[1]
    fall = first - last
    if fall > MIN_LOSS_FALL.on(trace) * abs(first):
        return Clear()
    trend = standing(trace)
    if weigh.content(trend) or (
        supervised and (weigh.content(verdict_trend(trace)) or kinds.margin_rise(trace))
    ):
        return Clear()
    evidence, counter = weigh.sides(trend)
    share = f", a fall of {fall / abs(first):.1%}" if fall >= 0 and first else ""
    return Finding(
        f"the loss does not decrease: {first:.4g} at the start, {last:.4g} at the end{share}",
        severity=Severity.WARNING if supervised else Severity.NOTE,
        metric=LOSS.name,
        began=int(loss.steps[0]),
        ended=int(loss.steps[-1]),
        observed=fall / abs(first) if first else 0.0,
        bound=MIN_LOSS_FALL.bound(trace, "default: a share of the loss at the start"),
        limit_on_curve=False,
        evidence=(*_picture(loss), *evidence),
        counter=counter,
    )


def _reason_for_silence(trace: Trace, loss: Series, *, supervised: bool) -> str:
    """Say why the levels of a loss tell nothing; empty where they do."""
    if not _is_long_enough(trace, loss):
        return f"too early: {len(loss)} losses are logged"
    if _warms_up(trace):
        return "too early: the learning rate is still rising"
    if supervised and float(np.mean(loss.values < 0)) > 0.05:  # of the losses
        return "the loss goes below 0, as that of a policy: a fall has no scale"
    return ""


def _is_long_enough(trace: Trace, loss: Series) -> bool:
    if len(loss) >= 50:  # points, without a budget
        return True
    return trace.budget is not None and trace.last_step >= 0.5 * trace.budget.steps


def _warms_up(trace: Trace) -> bool:
    """Return True if the learning rate never fell, and rose over the last half of the run."""
    if LEARNING_RATE.name not in trace:
        return False
    rates = trace[LEARNING_RATE.name].finite().values
    if len(rates) < 2:
        return False
    return bool((np.diff(rates) >= 0).all() and rates[-1] > rates[len(rates) // 2])


def _picture(loss: Series) -> tuple[str, ...]:
    """Describe the curve as the guides do."""
    sentences = []
    if (curve_shape := shape(loss.values)) is not None:
        sentences.append(f"the curve is {curve_shape}")
    ratio = tail_ratio(loss.values)
    if ratio is not None and np.isfinite(ratio):
        side = "below" if ratio < MAX_CONVERGED_VARIATION else "above"
        sentences.append(
            f"std / mean of the last ten losses is {ratio:.2g}, {side} {MAX_CONVERGED_VARIATION}"
        )
    return tuple(sentences)


RULE = Rule(
    name="loss-not-decreasing",
    needs=(LOSS,),
    at_least=20,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too low, or zero",
        "learning rate too high: the loss left its start upwards",
        "labels or masks are wrong: nothing that can be learnt counts",
        "rewards do not tell samples apart",
    ),
    remedies=(
        "raise {learning_rate} by factors of 3",
        "check labels, masks and rewards on one batch by hand",
        "try to over-fit a single batch",
    ),
    profiles=(Profile.SUPERVISED, *kinds.THRESHOLD_FILTERED),
    explained_by=(
        "not-a-number",
        "gradient-explosion",
        "learning-rate-jump",
        "policy-loss-flat",
        "constant-reward",
        "zero-variance-groups",
        "samples-all-filtered",
        "threshold-off-correctness",
    ),
    verdict="stalled",
    thresholds=(MIN_LOSS_FALL, LOSS_PERSISTENCE),
    persists=LOSS_PERSISTENCE,
)
