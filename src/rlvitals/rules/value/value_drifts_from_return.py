"""The critic's mean prediction stays apart from the mean return it is fitted to.

## What it sees
The difference of `value/mean` and `value/return_mean`, above one standard deviation in at least
three quarters of 20 successive updates (10 where fewer than 40 are logged). The standard
deviation is that of the returns (`value/return_var`); where it is not logged, that of the
critic's own errors: the rest of the value loss once the squared difference is taken out.

## Why it matters
A critic that is off by a constant shifts every advantage alike. Where advantages are not
normalised, that pushes every action taken up, or every one down; where they are, it still says
that the critic lags behind, and explained variance, blind to an offset, cannot show it.

## What to do
Give the critic a higher learning rate or weight, or normalise the returns. A drift that began
at one step points at that step: a reward whose scale changed, a resume without its normaliser.

## When it is wrong
A critic lags behind returns that grow: early in a run, and whenever the policy makes a leap.
That is over within some tens of updates; then this is at most a note, as it is where the outcome
improves.

## References
- TRL 0.11, `trainer/ppo_trainer.py`: `ppo/val/mean`, `ppo/returns/mean`, `ppo/returns/var`.
- van Hasselt et al. 2016, "Learning values across many orders of magnitude".
"""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.value import LOSS, MEAN, RETURN_MEAN, RETURN_VAR
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Threshold, Undecided
from rlvitals.rules.shapes import MIN_LASTING_SHARE, SHORT_WINDOW, above
from rlvitals.rules.standing import standing
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

Array = NDArray[np.float64]

MAX_VALUE_DRIFT = Threshold(
    "value-drifts-from-return.deviations",
    1.0,
    "standard deviations between mean value and mean return",
)


def check(trace: Trace) -> Answer:
    """Compare the drift with a standard deviation, update by update."""
    drifts = _drifts(trace)
    if drifts is None:
        return Undecided(
            "nothing says how widely returns scatter", (RETURN_VAR.name, "a halved value loss")
        )
    if len(drifts) < SHORT_WINDOW:
        return Undecided("too few updates hold both means", (MEAN.name, RETURN_MEAN.name))
    # Share of a window: a critic that catches up at times does not drift.
    stretch = above(drifts, MAX_VALUE_DRIFT.on(trace), share=0.75)
    if stretch is None or not (stretch.goes_on or stretch.share >= MIN_LASTING_SHARE):
        return Clear()
    during = stretch.of(drifts).values
    middle = median(during) or 0.0
    trend = standing(trace, since=stretch.start, until=stretch.end)
    evidence, counter = weigh.sides(trend)
    last = (
        _value_at(trace[MEAN.name], stretch.end),
        _value_at(trace[RETURN_MEAN.name], stretch.end),
    )
    return Finding(
        f"the critic's mean stays {middle:.2g} standard deviations from the mean return over "
        f"{during.size} updates: {last[0]:.3g} against {last[1]:.3g} at the end",
        severity=stretch.severity(weigh.severity(trend)),
        metric=MEAN.name,
        began=stretch.start,
        ended=stretch.end,
        observed=middle,
        bound=MAX_VALUE_DRIFT.bound(trace, "default: one standard deviation"),
        limit_on_curve=False,
        evidence=evidence,
        counter=counter,
    )


def _drifts(trace: Trace) -> Series | None:
    """Return |mean value - mean return| in standard deviations; None where there is no scale."""
    means = trace[MEAN.name].finite()
    returns = _last_values(means, trace[RETURN_MEAN.name])
    with np.errstate(all="ignore"):
        gap = np.abs(means.values - returns)
        if RETURN_VAR.name in trace:
            variance = _last_values(means, trace[RETURN_VAR.name])
        elif (loss := trace.get(LOSS.name)) and "half" in trace.measured[LOSS.name].how:
            # mean((V - R)^2) is the variance of the errors and the square of their mean. Where
            # the loss is measured after the update, too little may be left: then drift is all.
            squared_errors = 2 * _last_values(means, loss)
            variance = np.maximum(squared_errors - gap * gap, 1e-6 * squared_errors)
        else:
            return None
        # A larger ratio means a loss measured after the update.
        ratio = np.minimum(gap / np.sqrt(variance), 10.0)
    return Series(means.steps, means.times, ratio).where(variance > 0).finite()


def _last_values(series: Series, metric: Series) -> Array:
    """Return another metric's last value at or before each step, NaN before its first."""
    points = metric.finite()
    if not len(points):
        return np.full(len(series), np.nan)
    rows = np.searchsorted(points.steps, series.steps, side="right") - 1
    return np.where(rows >= 0, points.values[np.maximum(rows, 0)], np.nan)


def _value_at(series: Series, step: int) -> float:
    values = series.until(step).finite().values
    return float(values[-1]) if values.size else np.nan


RULE = Rule(
    name="value-drifts-from-return",
    needs=(MEAN, RETURN_MEAN),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the critic learns too slowly for returns of this scale",
        "rewards changed their scale during the run",
        "value clipping holds predictions near the old ones",
    ),
    remedies=(
        "raise {value_coef} or the critic's learning rate",
        "normalise rewards or returns",
        "widen {clip_range_value}",
    ),
    profiles=(Profile.SCHEDULER_PPO, Profile.RLHF_PPO),
    explained_by=(
        "setting-out-of-range",
        "updates-hardly-move",
        "value-clip-high",
        "value-loss-explosion",
    ),
    thresholds=(MAX_VALUE_DRIFT,),
)
