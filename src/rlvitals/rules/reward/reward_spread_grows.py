"""Rewards scatter far more than they did at the start.

## What it sees
`reward/std` above five times its own start in at least half of 10 successive updates, without
the mean reward having grown by a like amount. A warning where the outcome does not improve.

Where the extremes are logged, a long tail is noted: the highest or lowest reward of a batch further
from the mean than eight of its standard deviations and five times as far as at the start. A reward
that is bounded cannot do that, however rarely it is earned.

## Why it matters
A few extreme rewards take over the advantages' normalisation: every other sample's gradient
shrinks. Long tails are where a reward model is least to be trusted.

## What to do
Look at the samples with the extreme rewards; clip or rank-transform rewards; check the reward
model's inputs.

## When it is wrong
Returns that grow scatter more in proportion: that growth is taken out before comparing.

## References
- Gao, Schulman and Hilton 2023, "Scaling Laws for Reward Model Overoptimization".
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import REWARD, SCORE
from rlvitals.metrics.catalogue.reward import MAX, MIN, STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import SHORT_WINDOW, Stretch, above, start
from rlvitals.rules.standing import outcome, standing
from rlvitals.types import Series, Trace

SPREAD_FACTOR = Threshold(
    "reward-spread-grows.factor",
    5.0,
    "x the spread at the start, the level's growth taken out",
    low=1.0,
)
MIN_TAIL_SD = 8.0  # standard deviations: the largest of a thousand normal rewards is at 3.2


def check(trace: Trace) -> Answer:
    """Compare with the start, after taking out what the level grew by."""
    spread = trace[STD.name].finite()
    first = start(spread)
    if not first:
        return Undecided("rewards did not scatter at the start: there is nothing to compare with")
    origin = f"{SPREAD_FACTOR.on(trace):g} x this run's start, the level's growth taken out"
    limit = SPREAD_FACTOR.bound(trace, origin, max(1.0, _growth(trace)) * first)
    stretch = above(spread, limit.value, SHORT_WINDOW)
    if stretch is None:
        return _tail(trace, spread) or Clear()
    trend = standing(trace, since=stretch.start)
    evidence, counter = weigh.sides(trend)
    return Finding(
        f"rewards scatter up to {stretch.worst / first:.0f} x as much as at the start: standard "
        f"deviation {first:.3g} to {stretch.worst:.3g}",
        severity=stretch.severity(weigh.severity(trend)),
        metric=STD.name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
        evidence=evidence,
        counter=counter,
    )


def _tail(trace: Trace, spread: Series) -> Finding | None:
    """Note a reward that now and then lies far outside the rest of its batch."""
    mean = next((trace[n].finite() for n in (REWARD.name, SCORE.name) if n in trace), None)
    for name in (MAX.name, MIN.name):
        extreme = trace.get(name)
        if mean is None or not len(mean) or extreme is None:
            continue
        if len(extreme.finite()) < 2 * SHORT_WINDOW:
            continue
        extremes = extreme.finite()
        level, scale = (np.interp(extremes.steps, s.steps, s.values) for s in (mean, spread))
        far = Series(extremes.steps, extremes.times, np.abs(extremes.values - level))
        first = start(far)
        if not first:
            continue
        limit = SPREAD_FACTOR.on(trace) * first
        long = np.where(far.values > MIN_TAIL_SD * scale, far.values, 0.0)
        stretch = above(Series(far.steps, far.times, long), limit, SHORT_WINDOW)
        if stretch is not None:
            end = "highest" if name == MAX.name else "lowest"
            factor = f"{SPREAD_FACTOR.on(trace):g} x its distance at the start"
            origin = f"{factor}, and {MIN_TAIL_SD:g} deviations"
            return _long(name, end, stretch, first, SPREAD_FACTOR.bound(trace, origin, first))
    return None


def _long(name: str, end: str, stretch: Stretch, first: float, limit: Bound) -> Finding:
    return Finding(
        f"the {end} reward of a batch lies {stretch.worst:.3g} from the mean, {first:.3g} at the "
        "start: a long tail",
        severity=Severity.NOTE,
        metric=name,
        began=stretch.start,
        ended=stretch.end,
        observed=stretch.worst,
        bound=limit,
    )


def _growth(trace: Trace) -> float:
    """Return by how much the outcome's magnitude grew since the start."""
    picked = outcome(trace)
    if picked is None:
        return 1.0
    sizes = np.abs(picked[1].values)
    first = float(np.median(sizes[: max(3, len(sizes) // 10)]))
    return float(np.median(sizes[-max(3, len(sizes) // 5) :])) / first if first > 0 else 1.0


RULE = Rule(
    name="reward-spread-grows",
    needs=(STD,),
    at_least=2 * SHORT_WINDOW,
    check=check,
    doc=__doc__,
    profiles=kinds.WITH_REWARD,
    causes=("a few extreme rewards", "a reward model far from the data it was trained on"),
    remedies=("look at the samples with extreme rewards", "clip rewards or transform them by rank"),
    thresholds=(SPREAD_FACTOR,),
)
