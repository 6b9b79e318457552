"""The total reward is negative although the absolute score is positive: the delta part drowns it.

## What it sees
By twelfths of the run, the mean of `outcome/reward` (else `reward/step` or `reward/mean`) below
zero while the mean of `reward/absolute` is above zero: in a fifth of them and still at the end, or
in half of them. A warning where the outcome does not improve.

## Why it matters
The policy is punished for states that are good by the absolute score, because they are a little
worse than the states before. Doing nothing new becomes the safest choice.

## What to do
Lower the weight of the delta part (`gamma` for what got worse, `beta` for what got better), or
smooth the averages it is taken against.

## When it is wrong
Other penalties (imbalance, a latency threshold) may be what makes the total negative: the delta
part's own mean is given as evidence.

## References
- Ng, Harada and Russell 1999, "Policy invariance under reward transformations".
"""

import numpy as np

from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.reward import ABSOLUTE, COMPONENT, DELTA, MEAN, STEP
from rlvitals.metrics.metric import Bound
from rlvitals.rules import weigh
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Threshold, Undecided
from rlvitals.rules.shapes import MIN_LASTING_SHARE
from rlvitals.rules.standing import standing
from rlvitals.types import Profile, Series, Trace

MIN_LASTING_NEGATIVE_SHARE = Threshold(
    "total-negative-absolute-positive.lasting",
    MIN_LASTING_SHARE,
    "share of the run, where it goes on at the end",
    high=1.0,
)
MIN_PAST_NEGATIVE_SHARE = Threshold(
    "total-negative-absolute-positive.share",
    0.5,
    "share of the run, where it is over by the end",
    high=1.0,
)
TOTAL_REWARDS = (REWARD, STEP, MEAN)
REWARD_WINDOWS = 12  # of a run: short enough to date it, long enough to average rewards


def check(trace: Trace) -> Answer:
    """Compare the signs of the two, window by window."""
    name = next(metric.name for metric in TOTAL_REWARDS if metric.name in trace)
    paid = trace[name].finite()
    score = trace[ABSOLUTE.name].finite()
    steps = np.concatenate((paid.steps, score.steps))
    first, last = int(steps.min()), int(steps.max())
    edges = np.linspace(first, last + 1, REWARD_WINDOWS + 1)
    total, absolute = _means(paid, edges), _means(score, edges)
    finite = np.isfinite(total) & np.isfinite(absolute)
    if finite.sum() < REWARD_WINDOWS // 2:
        return Undecided("too few rewards to compare over the run", (name, ABSOLUTE.name))
    mask = finite & (total < 0) & (absolute > 0)
    share = mask.sum() / finite.sum()
    if not mask.any() or share < (
        MIN_LASTING_NEGATIVE_SHARE.on(trace) if mask[-1] else MIN_PAST_NEGATIVE_SHARE.on(trace)
    ):
        return Clear()
    negative_windows = np.flatnonzero(mask)
    onset_step = int(np.ceil(edges[negative_windows[0]]))
    trend = standing(trace, since=onset_step)
    evidence, counter = weigh.sides(trend)
    return Finding(
        f"total reward is negative ({total[mask].mean():.3g}) while the absolute score is positive "
        f"({absolute[mask].mean():.3g}) in {share:.0%} of the run",
        severity=weigh.severity(trend),
        metric=name,
        began=onset_step,
        ended=min(int(edges[negative_windows[-1] + 1]), last),
        observed=float(total[mask].mean()),
        bound=Bound(0.0, "zero"),
        evidence=(*_delta(trace), *_lowest_part(trace), *evidence),
        counter=counter,
    )


def _means(
    series: Series, edges: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Average a series over windows of steps; NaN where a window holds too few points."""
    inside = np.digitize(series.steps, edges) - 1
    counts = np.bincount(inside, minlength=REWARD_WINDOWS)[:REWARD_WINDOWS]
    sums = np.bincount(inside, weights=series.values, minlength=REWARD_WINDOWS)[:REWARD_WINDOWS]
    enough = counts >= min(5, len(series) // REWARD_WINDOWS or 1)  # numbers in each window
    return np.where(enough, sums / np.maximum(counts, 1), np.nan)


def _delta(trace: Trace) -> tuple[str, ...]:
    delta = trace.get(DELTA.name)
    values = None if delta is None else delta.finite().values
    if values is None or not len(values):
        return ()
    return (f"the delta part is {values.mean():.3g} on average",)


def _lowest_part(trace: Trace) -> tuple[str, ...]:
    """Name the part of the reward that takes most away."""
    means = {
        name: float(values.mean())
        for name, series in trace.family(COMPONENT.name).items()
        if len(values := series.finite().values)
    }
    worst = min(means, key=lambda name: means[name], default="")
    return (f"{worst} is {means[worst]:.3g} on average",) if worst and means[worst] < 0 else ()


RULE = Rule(
    name="total-negative-absolute-positive",
    needs=(ABSOLUTE,),
    needs_any=TOTAL_REWARDS,
    at_least=REWARD_WINDOWS,
    check=check,
    doc=__doc__,
    causes=("the delta part's penalty for getting worse is too heavy", "another penalty dominates"),
    remedies=(
        "lower {reward_gamma:gamma}, the weight of what got worse",
        "raise {reward_beta:beta}, the weight of what got better",
    ),
    profiles=(Profile.SCHEDULER_PPO,),
    thresholds=(MIN_LASTING_NEGATIVE_SHARE, MIN_PAST_NEGATIVE_SHARE),
)
