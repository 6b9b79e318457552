"""Advantages are not centred: every action looks better than expected, or worse.

## What it sees
`policy/advantage_mean` beyond half of `policy/advantage_std`, on one side, in at least three
quarters of 20 successive updates (10 where fewer than 40 are logged), over at least a fifth of
the run. Only where advantages are logged as they are: normalised ones have mean 0 and standard
deviation 1 by construction, and say nothing.

## Why it matters
An advantage is what an action is worth beyond what the critic expects. If the mean stays on one
side, the critic is off, and without normalisation every action taken is pushed up alike, or
down: that moves entropy, not the choice between actions.

## What to do
Look at the critic first: `value/mean` against the returns, its learning rate and weight. A mean
that is off from the first update on points at the computation: a value that is not bootstrapped
at a time limit, a sum over steps that runs past an episode's end.

## When it is wrong
Returns that grow outrun their critic: in runs that learn, the mean may stand at 1 to 5 standard
deviations for most of the way, which is why they are not reported. A batch with one rare success
is skewed. Where the framework normalises afterwards, only the critic's message is left.

## References
- Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
  Estimation".
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.5,
  on advantage normalisation.
"""

import numpy as np

from rlvitals.metrics.catalogue.policy import ADVANTAGE_MEAN, ADVANTAGE_STD
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Threshold, Undecided
from rlvitals.rules.shapes import MIN_LASTING_SHARE, SHORT_WINDOW, Stretch, above
from rlvitals.rules.standing import standing
from rlvitals.types import Series, Trace

MAX_MEAN_DEVIATIONS = Threshold(
    "advantage-off-centre.deviations", 0.5, "standard deviations of the mean advantage from 0"
)
MAX_NORMALISED_DEVIATION = 0.02  # from mean 0 and sd 1, throughout, for normalised advantages


def check(trace: Trace) -> Answer:
    """Find a stretch in which the mean stays on one side of zero."""
    offsets = _offsets(trace)
    if offsets is None:
        return Undecided("advantages are logged after normalisation: centred by construction")
    if len(offsets) < SHORT_WINDOW:
        return Undecided("too few updates hold both mean and spread", (ADVANTAGE_STD.name,))
    for sign in (1.0, -1.0):
        side = Series(offsets.steps, offsets.times, sign * offsets.values)
        stretch = above(side, MAX_MEAN_DEVIATIONS.on(trace), share=0.75)  # of a window
        if stretch is not None and stretch.share >= MIN_LASTING_SHARE:
            return _weigh_finding(trace, offsets, stretch)
    return Clear()


def _offsets(trace: Trace) -> Series | None:
    """Return mean / standard deviation, update by update; None where they are normalised."""
    mean, spread = trace[ADVANTAGE_MEAN.name].finite(), trace[ADVANTAGE_STD.name].finite()
    _, mean_rows, spread_rows = np.intersect1d(mean.steps, spread.steps, return_indices=True)
    mean, spread = mean.where(mean_rows), spread.where(spread_rows)
    white = (np.abs(mean.values) < MAX_NORMALISED_DEVIATION) & (
        np.abs(spread.values - 1) < MAX_NORMALISED_DEVIATION
    )
    if len(mean) and white.all():
        return None
    mean, sd = mean.where(spread.values > 0), spread.values[spread.values > 0]
    return Series(mean.steps, mean.times, mean.values / sd).finite()


def _weigh_finding(trace: Trace, offsets: Series, stretch: Stretch) -> Answer:
    during = stretch.of(offsets).values
    middle = float(np.median(during))
    trend = standing(trace, since=stretch.start, until=stretch.end)
    if weigh.content(trend):
        return Clear()
    evidence, _ = weigh.sides(trend)
    comparative = "better" if middle > 0 else "worse"
    return Finding(
        f"advantages are off centre: {middle:.2g} standard deviations in the median of "
        f"{during.size} updates; every action looks {comparative} than the critic expects",
        severity=stretch.severity(weigh.severity(trend)),
        metric=ADVANTAGE_MEAN.name,
        began=stretch.start,
        ended=stretch.end,
        observed=middle,
        bound=MAX_MEAN_DEVIATIONS.bound(trace, "default: half a standard deviation"),
        limit_on_curve=False,
        evidence=evidence,
    )


RULE = Rule(
    name="advantage-off-centre",
    needs=(ADVANTAGE_MEAN, ADVANTAGE_STD),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the critic lags behind the returns, or does not learn",
        "advantages are computed past an episode's end, or without a bootstrapped value",
    ),
    remedies=(
        "raise {value_coef} or the critic's learning rate",
        "check the advantages by hand on one short episode",
        "normalise advantages",
    ),
    profiles=kinds.ACTOR_CRITIC,
    explained_by=("value-loss-explosion", "critic-explains-nothing", "value-drifts-from-return"),
    thresholds=(MAX_MEAN_DEVIATIONS,),
)
