"""The value loss collapses to 0 while the outcome stalls: the critic has nothing left to predict.

## What it sees
`value/loss` below 1/100 of the highest value in its first tenth, and below a millionth of the
square of the largest return (an error of 0.1 % of it), in nine of ten points of 20 successive ones
(10 where fewer than 40 are logged) and to the end; the outcome neither rising, nor at its ceiling,
nor holding its best. If returns differ from point to point by 1 % or more all the same, what the
critic learns cannot be the return: a warning where explained variance is mostly undefined or below
-1000, that is 0/0, or below -1, where targets vary less than the little that the critic errs by, or
the discount is set to 0, and where the outcome is proven to stall. So are
targets that changed at a step: the loss jumps to 10 x its median and falls below a twentieth of it
within ten points, while the outcome falls only later. If returns hardly differ, it is a note: there
is nothing to tell apart.

## Why it matters
Advantages are what happened less what was expected. Targets that are all alike, or that leave
out what comes later, make them zero or rounding noise, and normalising blows that up to full
size: every other number of the update looks healthy.

## What to do
Print the targets of one episode: they should fall towards its end, or differ with what
happened. Then look at the discount, at where the reward enters the target, and at what is
detached from the graph.

## When it is wrong
A critic may be right to the last digit where a deterministic task is done in always the same
way: with an explained variance above a half nothing is reported. Where rewards are normalised
but returns are logged as they were, the loss is small beside them anyway; its own start is then
the only limit. At a task's maximum returns do not vary, explained variance is meaningless, and
the outcome says so.

## References
- Stable-Baselines3, `common/utils.py`, `explained_variance`: NaN where targets do not vary.
- Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.5,
  on the discount.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.falling import fall
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import START_SHARE, Stretch, below
from rlvitals.rules.standing import Standing, outcome, standing
from rlvitals.rules.value.critic_explains_nothing import UNDEFINED_EXPLAINED_VARIANCE
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

Array = NDArray[np.float64]

MAX_LOSS_LEFT_SHARE = Threshold(
    "value-loss-vanishes.fall", 0.01, "share of its own start that is left of it"
)
MAX_LOSS_OF_RETURN = Threshold(
    "value-loss-vanishes.small", 1e-6, "share of the largest return squared"
)
MIN_RETURN_SPREAD = Threshold(
    "value-loss-vanishes.varies", 0.01, "spread of returns, share of the largest"
)
MIN_VANISHED_POINTS = 20  # points: its start, and a window after it
MIN_START_POINTS = 5  # points of its start, at least
MAJORITY_OF_ESTIMATES = 0.5  # of the estimates
RELEARNING_POINTS = 10  # points within which a critic learns what little is left


@dataclass(frozen=True, slots=True)
class _Targets:
    """What the critic's targets look like while its loss is gone."""

    spread: float  # sd of the logged returns, as a share of the largest
    differ: bool  # the returns themselves do vary
    undefined: float  # share of the explained variances that are 0/0 or nearly; NaN without any
    narrow: float  # the same, that are below -1: targets vary less than the critic errs
    gamma: float | None  # the discount, where it is known
    abrupt: bool = False  # the loss was usual and gone within a few points


def check(trace: Trace) -> Answer:
    """Find the stretch without a loss, then ask what the returns and the outcome say."""
    loss = trace[LOSS.name].finite()
    picked = outcome(trace)
    if picked is None or picked[0] == "optimiser/loss":
        return Undecided("too little of an outcome is logged to compare with", ("outcome/return",))
    limit = _limit(trace, loss, picked[1])
    # Share of a window: one unusual episode does not end a collapse.
    stretch = below(loss, limit.value, share=0.9)
    if stretch is None or not stretch.goes_on:
        return Clear()
    full_trend, trend = standing(trace), standing(trace, since=stretch.start)
    abrupt = _changes_abruptly(trace, loss, stretch)
    if weigh.content(trend) or (weigh.content(full_trend) and not (abrupt and trend.stalls)):
        return Clear()
    explained = _get_explained_variance(trace, stretch)
    # Most of them, with NaN on the side of those that explain nothing.
    # With half of the variance explained the critic tells the returns apart.
    if explained.size and float((explained > 0.5).mean()) > MAJORITY_OF_ESTIMATES:
        return Clear()
    targets = _targets(trace, picked[1].since(stretch.start).values, explained)
    targets = replace(targets, abrupt=abrupt)
    worse_trend = full_trend if full_trend.stalls else trend
    if not worse_trend.stalls and not _is_cut_off(targets):
        return Undecided(f"the value loss is nearly 0, and {worse_trend.sentence}")
    return _finding(loss, stretch, limit, worse_trend, targets)


def _limit(trace: Trace, loss: Series, returns: Series) -> Bound:
    """Return the lower of the two limits; a return of 0 throughout has no scale."""
    head = loss.values[: max(MIN_START_POINTS, round(START_SHARE * len(loss)))]
    from_start = MAX_LOSS_LEFT_SHARE.bound(trace, "this run's own start", float(head.max()))
    scale = float(np.abs(returns.values).max())
    if scale == 0:
        return from_start
    from_returns = MAX_LOSS_OF_RETURN.bound(
        trace, "default, beside the largest return squared", scale * scale
    )
    return min(from_start, from_returns, key=lambda bound: bound.value or 0.0)


def _get_explained_variance(trace: Trace, stretch: Stretch) -> Array:
    """Return explained variance over the stretch, NaN kept; empty where it is not logged."""
    logged = trace.get(EXPLAINED_VARIANCE.name)
    return np.empty(0) if logged is None else stretch.of(logged).values


def _targets(trace: Trace, returns: Array, explained: Array) -> _Targets:
    largest = float(np.abs(returns).max(initial=0.0))
    spread = float(np.std(returns)) / largest if largest > 0 else 0.0
    absurd = ~(explained > UNDEFINED_EXPLAINED_VARIANCE)  # NaN too
    return _Targets(
        spread,
        spread >= MIN_RETURN_SPREAD.on(trace),
        float(absurd.mean()) if explained.size else np.nan,
        float((absurd | (explained < -1.0)).mean()) if explained.size else np.nan,
        trace.number("gamma"),
    )


def _is_cut_off(targets: _Targets) -> bool:
    """Tell targets that leave the returns out: they do not vary though the returns do."""
    is_cut = targets.gamma == 0 or targets.narrow > MAJORITY_OF_ESTIMATES or targets.abrupt
    return targets.differ and is_cut


def _changes_abruptly(trace: Trace, loss: Series, stretch: Stretch) -> bool:
    """Tell targets that changed at a step: the critic errs, then nothing is left to predict.

    While the outcome stands as it was: where it breaks too, what changed is outside.
    """
    values = loss.until(stretch.start - 1).values
    usual = values[-MIN_VANISHED_POINTS - RELEARNING_POINTS : -RELEARNING_POINTS]
    recent = values[-RELEARNING_POINTS:]
    after, picked = stretch.of(loss).values[:MIN_START_POINTS], outcome(trace)
    if len(usual) < MIN_START_POINTS or picked is None:
        return False
    level = float(np.median(usual))
    # Both relative to the usual loss before.
    if float(recent.max()) < 10.0 * level or float(np.median(after)) >= 0.05 * level:
        return False
    drop = fall(
        trace, *picked, int(loss.steps[len(values) - RELEARNING_POINTS + int(recent.argmax())])
    )
    return drop is None or drop.late


def _severity(trend: Standing, targets: _Targets) -> Severity:
    if _is_cut_off(targets):
        return weigh.severity(trend)
    return Severity.NOTE


def _finding(
    loss: Series, stretch: Stretch, limit: Bound, trend: Standing, targets: _Targets
) -> Finding:
    during = stretch.of(loss).values
    level = float(np.median(during))
    evidence, _ = weigh.sides(trend)
    if targets.undefined > MAJORITY_OF_ESTIMATES:
        share = f"{targets.undefined:.0%} of the updates"
        sentence = (
            f"explained variance is 0/0 or nearly in {share}: the critic's targets are all alike"
        )
        evidence = (sentence, *evidence)
    elif targets.narrow > MAJORITY_OF_ESTIMATES:
        sentence = (
            f"explained variance is below -1 or 0/0 in {targets.narrow:.0%} of the updates: the "
            "critic's targets vary even less than it errs by"
        )
        evidence = (sentence, *evidence)
    if targets.gamma == 0:
        evidence = ("gamma is 0: the target is the next reward, whatever comes later", *evidence)
    alike = ("where nothing has succeeded yet, that is to be expected",)
    returns = "and returns hardly differ: there is nothing to tell a good action by"
    if targets.differ:
        returns = f"though returns differ by {targets.spread:.0%} of the largest"
    causes, remedies = _describe_reward(targets)
    return Finding(
        f"the value loss has collapsed: {level:.2g} in the median of {during.size} updates, "
        f"{float(loss.values[:MIN_START_POINTS].max()):.2g} at first, {returns}",
        severity=_severity(trend, targets),
        metric=LOSS.name,
        began=stretch.start,
        ended=stretch.end,
        observed=level,
        bound=limit,
        evidence=evidence,
        counter=() if targets.differ else alike,
        causes=causes,
        remedies=remedies,
    )


def _describe_reward(targets: _Targets) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return causes and remedies of their own where the discount spans more than a reward."""
    if not _is_cut_off(targets) or targets.gamma is None or targets.gamma < 0.5:
        return (), ()
    cause = "training sees rewards of 0, or the same in every step: a wrapper, a scale, a clip"
    remedy = "print the rewards that an update trains on, beside those that the environment pays"
    return (cause, *RULE.causes[1:2]), (remedy, *RULE.remedies[1:2])


RULE = Rule(
    name="value-loss-vanishes",
    needs=(LOSS,),
    at_least=MIN_VANISHED_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "a discount of 0 or nearly: every target is the next reward, and that never changes",
        "targets that leave the reward out, or take the critic's own value for it",
        "a reward that is the same for every step, in episodes of one length",
    ),
    remedies=(
        "set gamma so that 1 / (1 - gamma) steps span what an action brings about",
        "print the value targets of one episode, and check that they differ",
        "give a reward that tells a good step from a bad one",
    ),
    profiles=kinds.ACTOR_CRITIC,
    explained_by=(
        "setting-out-of-range",
        "constant-reward",
    ),
    verdict="stalled",
    thresholds=(MAX_LOSS_LEFT_SHARE, MAX_LOSS_OF_RETURN, MIN_RETURN_SPREAD),
)
