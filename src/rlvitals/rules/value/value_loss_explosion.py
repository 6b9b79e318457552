"""The value loss jumps far above all it has been, beside the scale of the returns.

## What it sees
`value/loss` above 4 x its median over the 20 points before and above 3 x the highest such median so
far. The first limit grows with the square of the largest return so far, where one is logged:
returns that grow make the loss grow, as their square, in healthy runs; and an error below 3 % of
that return is too small to matter. One such jump counts only beside a KL spike (8 x its median)
within 5 points or an outcome that is worse afterwards, and for a single point that fell with it; 5
of 10 successive points count by themselves. Never an absolute number.

A slow growth is found where no healthy critic goes: the loss of the last fifth is three times its
lowest level, its root above what nine in ten late episodes pay in all, and returns have not grown
by half meanwhile. A critic whose targets end with the episode errs by less: a warning by itself.

So are targets that have become one number. Value loss over 1 - explained variance is the variance
of what the critic is fitted to. Where each step pays the same and episodes end by themselves within
5 to 50 steps, a step near the end has less before it. Yet in a quarter of the second half that
variance is below 0.5 % of the squared return and 2 % of what it was in the first tenth, the return
above a third of its own, and explained variance below 0.1: ends of episodes do not reach targets.

## Why it matters
Advantages come from the critic. While it is wildly wrong, so are they, and where policy and
critic share a network or a gradient clip, its gradient drowns the policy's.

## What to do
Look at what happened at that step: a learning rate, a reward's scale, observations that jumped, a
resume without the normaliser's statistics. Then clip gradients, normalise rewards, lower the rate.

## When it is wrong
The first failure after many perfect episodes makes a large error once: it is not reported unless
the policy moved or the outcome fell with it. A first success in a sparse task makes large errors
for long: it is not reported where the outcome is far better than before. Frameworks halve or
average the loss differently: only a run's own past is compared.

## References
- Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients", on reward scaling and
  value clipping.
- van Hasselt et al. 2016, "Learning values across many orders of magnitude".
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.outcome import EPISODE_LENGTH, RETURN
from rlvitals.metrics.catalogue.policy import APPROX_KL
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, LOSS
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.falling import fall, falls_by
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold
from rlvitals.rules.shapes import KL_SPIKE_LIMITS, crowd, jumps
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import Standing, outcome, standing
from rlvitals.signals.finite import Array
from rlvitals.signals.rolling import medians_ending_at
from rlvitals.signals.spread import median
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

# Healthy runs pass it on single points only.
VALUE_LOSS_FACTOR = Threshold(
    "value-loss-explosion.factor", 4.0, "x the recent median of the value loss", low=1.0
)
PEAK_FACTOR = 3.0  # x the highest median so far: a converged critic's first error is no fault
PAST_POINTS = 20  # points of the recent median
MIN_HISTORY = 10  # points before the first that is judged: a critic is wrong at its start
CROWD_POINTS, CROWD_WINDOW = 5, 10  # so many points of a window are no outlier
SIDE_POINTS = 5  # points on each side of a jump in which KL may explain it


@dataclass(frozen=True, slots=True)
class _Jump:
    """The jumps that belong together."""

    indices: NDArray[np.int64]  # indices into the series
    lasts: bool  # enough of them in a row


def check(trace: Trace) -> Answer:
    """Find points above both limits, then a witness for them."""
    series = trace[LOSS.name].finite()
    scale = _scale(trace, series)
    limit, by_scale = _limits(series.values, scale, VALUE_LOSS_FACTOR.on(trace))
    above = np.flatnonzero(series.values > np.maximum(limit, _smallest_loss(trace, scale)))
    findings: list[Finding] = []
    for event, end in _events(series, above):
        jump = _Jump(event, crowd(event, CROWD_POINTS, CROWD_WINDOW))
        if (finding := _report_jumps(trace, series, jump, limit, end)) is not None:
            findings.append(finding)
    if findings:
        return max(findings, key=lambda finding: finding.severity)
    unended = _report_growth(trace, series) or _report_one_target(trace, series)
    return unended or _report_scale_jump(trace, series, scale, by_scale)


def _report_growth(trace: Trace, series: Series) -> Finding | None:
    """Report a loss that grows until the critic errs by more than episodes pay.

    Of 265 healthy runs, the root of a loss that had doubled was 0.22 of the return at most.
    """
    picked, values = outcome(trace), series.values
    if picked is None or too_early(trace) or trace.profile not in kinds.CONTROL:
        return None
    width = max(len(values) // 10, 3)
    levels = np.median(sliding_window_view(values, width), axis=1)
    lowest = int(levels[:-width].argmin())
    last = float(np.median(values[-max(len(values) // 5, 3) :]))
    returns = Series(picked[1].steps, picked[1].times, np.abs(picked[1].values))
    level = median(returns.until(int(series.steps[lowest + width - 1])).tail(MIN_HISTORY).values)
    late_returns = returns.since(int(series.steps[len(values) // 2])).values
    if level is None or not late_returns.size or not late_returns.any() or last <= 0:
        return None
    largest, error = float(np.quantile(late_returns, 0.9)), float(np.sqrt(last))
    returns_grow = float(np.median(late_returns)) > 1.5 * level
    if last < PEAK_FACTOR * levels[lowest] or error <= largest or returns_grow:
        return None
    return Finding(
        f"the value loss grows from {levels[lowest]:.3g} to {last:.3g}: the critic errs by "
        f"{error:.3g}, where late episodes pay {largest:.3g} in all",
        severity=Severity.WARNING,
        metric=LOSS.name,
        began=int(series.steps[lowest]),
        ended=int(series.steps[-1]),
        observed=error,
        bound=Bound(largest, "what nine in ten late episodes pay at most, in size"),
        causes=(
            "targets that reach over the ends of episodes: a done mask that is lost",
            "a loss whose sign is wrong, or a learning rate that is too high",
            "rewards that are scaled up for the learner and not in the log",
        ),
        remedies=("check on one episode that the value after its last step counts as 0",),
    )


def _report_one_target(trace: Trace, loss: Series) -> Finding | None:
    """Report targets that hardly differ, in episodes that pay each step and end by themselves."""
    explained, returns, lengths = (
        trace.numbers(metric.name, 2 * MIN_HISTORY)
        for metric in (EXPLAINED_VARIANCE, RETURN, EPISODE_LENGTH)
    )
    if explained is None or returns is None or lengths is None or too_early(trace):
        return None
    steps, loss_rows, explained_rows = np.intersect1d(
        loss.steps, explained.steps, return_indices=True
    )
    unexplained = 1.0 - explained.values[explained_rows]
    if len(steps) < 2 * MIN_HISTORY or trace.profile not in kinds.CONTROL or unexplained.min() <= 0:
        return None
    variances, half = loss.values[loss_rows] / unexplained, len(steps) // 2
    first = float(np.median(variances[: half // 5]))
    last = float(np.quantile(variances[half:], 0.25))
    level = _short_episodes(returns, lengths, int(steps[half]))
    is_blind = float(np.median(np.abs(1.0 - unexplained[half:]))) < 0.1
    if level is None or not is_blind or weigh.content(verdict_trend(trace)):
        return None
    bound = Bound(min(0.005 * level**2, 0.02 * first), "0.5 % of the squared return, 2 % of before")
    if last >= bound.value:
        return None
    return Finding(
        f"what the critic is fitted to has become one number: its variance is {last:.2g}, "
        f"{first:.3g} at first, in episodes that end at a return of {level:.3g} and pay each step",
        severity=Severity.WARNING,
        metric=LOSS.name,
        began=int(steps[0]),
        ended=int(steps[-1]),
        observed=last,
        bound=bound,
        limit_on_curve=False,
        causes=("targets that reach over the ends of episodes: a done mask that is lost",),
        remedies=("check on one episode that the value after its last step counts as 0",),
    )


def _short_episodes(returns: Series, lengths: Series, late_step: int) -> float | None:
    """Return the late return of short episodes that pay each step the same and end by themselves.

    None for other episodes, and where the return fell to a third.
    """
    steps, return_rows, length_rows = np.intersect1d(
        returns.steps, lengths.steps, return_indices=True
    )
    values, episode_steps = returns.values[return_rows], lengths.values[length_rows]
    is_late = steps >= late_step
    if not is_late.any() or is_late.all() or episode_steps.min() <= 0:
        return None
    pay, late_lengths = values / episode_steps, episode_steps[is_late]
    first, last = (float(np.median(np.abs(values[rows]))) for rows in (~is_late, is_late))
    # A time limit ends all episodes at one length, and their values are those of going on.
    ends = float(late_lengths.std()) > 0.02 * float(late_lengths.mean())
    are_short = 5 <= float(np.median(late_lengths)) <= 50
    constant = float(np.ptp(pay)) <= 0.01 * abs(float(np.median(pay)))
    return last if ends and are_short and constant and last > first / 3 else None


def _events(series: Series, above: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], int | None]]:
    """Part the jumps that lie far apart, each with the step of the next: None for the last.

    What came of one is no witness against another.
    """
    if not above.size:
        return []
    events = np.split(above, np.flatnonzero(np.diff(above) > PAST_POINTS) + 1)
    ends = [int(series.steps[event[0]]) for event in events[1:]]
    return list(zip(events, [*ends, None], strict=True))


def _scale(trace: Trace, series: Series) -> Array:
    """Return the largest |return| so far at each point of the loss; ones where none is logged."""
    picked = outcome(trace)
    if picked is None or picked[0] == "optimiser/loss":
        return np.ones(len(series))
    returns = picked[1]
    # A point counts with the returns logged beside it, also where they stand one row later.
    rows = np.searchsorted(returns.steps, series.steps, side="right") - 1
    largest = np.maximum.accumulate(np.abs(returns.values))
    return np.maximum(largest[np.maximum(rows, 0)], np.finfo(np.float64).tiny)


def _smallest_loss(trace: Trace, scale: Array) -> Array:
    """Return the smallest loss that matters beside the returns; 0 where none is logged."""
    return 1e-3 * scale * scale if outcome(trace) else np.zeros(scale.size)  # an error of 3 %


def _limits(values: Array, scale: Array, factor: float) -> tuple[Array, Array]:
    """Return each point's limit, and the limit it would have if returns had not grown."""
    count = values.size
    # The last row of each point's past.
    past_rows = np.arange(MIN_HISTORY - 1, max(count - 1, MIN_HISTORY - 1))
    with np.errstate(all="ignore"):  # 1e308: an infinite limit is never passed
        recent, recent_scale = (
            medians_ending_at(v, past_rows, PAST_POINTS, 1) for v in (values, scale)
        )
        highest = PEAK_FACTOR * np.maximum.accumulate(recent)
        return_growth = np.maximum(scale[MIN_HISTORY:] / recent_scale, 1.0) ** 2
        unscaled = np.maximum(factor * recent, highest)
        fair = np.maximum(factor * recent * return_growth, highest)
    no_limit = np.full(min(MIN_HISTORY, count), np.inf)
    return np.concatenate((no_limit, fair)), np.concatenate((no_limit, unscaled))


def _report_jumps(
    trace: Trace, series: Series, jump: _Jump, limit: Array, end: int | None
) -> Finding | None:
    """Report jumps that last or that something else bears witness to, until the next ones."""
    first, last = int(jump.indices[0]), int(jump.indices[-1])
    onset_step = int(series.steps[first])
    trend = standing(trace, since=onset_step)
    trend_until_next = standing(trace, since=onset_step, until=None if end is None else end - 1)
    trend = trend_until_next if weigh.content(trend_until_next) else trend
    kl = _kl_spike(trace, series, jump)
    direction = _outcome_direction(trace, onset_step, end, trend)
    if direction > 0 or not (jump.lasts or kl or direction < 0):
        return None  # an unforeseen success, or an outlier without consequence
    evidence, counter = weigh.sides(trend)
    if kl:
        evidence = (f"KL per update spikes beside it: {kl:.3g}", *evidence)
    worst = first + int(np.argmax(series.values[first : last + 1]))
    usual = median(series.values[max(0, worst - PAST_POINTS) : worst]) or 0.0
    highest = float(series.values[worst])
    return Finding(
        f"the value loss jumps to {highest:.3g} at step {series.steps[worst]:,}, from {usual:.3g} "
        f"in the median before; {_count(jump.indices.size)} above the limit",
        severity=Severity.NOTE
        if _ends_before_fall(trace, series, jump)
        else _severity(trend, direction, jump, kl, fell=falls_by(trace, onset_step)),
        metric=LOSS.name,
        began=onset_step,
        ended=int(series.steps[last]),
        observed=highest,
        bound=Bound(float(limit[worst]), "this run's own past, grown with the square of returns"),
        evidence=evidence,
        counter=counter,
    )


def _ends_before_fall(trace: Trace, series: Series, jump: _Jump) -> bool:
    """Tell a jump that was over, with the outcome unharmed, before the outcome fell."""
    picked = outcome(trace)
    if picked is None:
        return False
    last = min(int(jump.indices[-1]) + 1, len(series) - 1)
    drops = (
        fall(trace, *picked, int(series.steps[index])) for index in (int(jump.indices[0]), last)
    )
    return all(drop is not None and drop.late for drop in drops)


def _count(points: int) -> str:
    return "it alone is" if points == 1 else f"{points} points are"


def _outcome_direction(trace: Trace, onset_step: int, end: int | None, trend: Standing) -> int:
    """Compare the outcome before and after: 1 for much better, -1 for much worse, else 0."""
    picked = outcome(trace)
    if picked is None:
        return 0
    median_before = median(picked[1].until(onset_step - 1).tail(MIN_HISTORY).values)
    after_onset = picked[1].since(onset_step)
    after = median((after_onset if end is None else after_onset.until(end - 1)).values)
    if median_before is None or after is None or not abs(after - median_before) > trend.material:
        return 0
    return 1 if after > median_before else -1


def _severity(trend: Standing, direction: int, jump: _Jump, kl: float, *, fell: bool) -> Severity:
    """Ask the outcome: worse than before is a fault, stalled one where the jump lasts.

    A jump of one point is one only if the outcome `fell` with it.
    """
    if weigh.content(trend) or not (direction < 0 or jump.lasts):
        return Severity.NOTE
    if direction < 0 and jump.lasts:
        return Severity.ERROR
    if direction < 0:  # a single point of noise falls beside levels that wander
        return Severity.WARNING if jump.indices.size > 1 or kl or fell else Severity.NOTE
    return Severity.WARNING if trend.stalls or kl else Severity.NOTE


def _kl_spike(trace: Trace, series: Series, jump: _Jump) -> float:
    """Return the largest KL spike near a jump, 0 where there is none."""
    kl = trace.get(APPROX_KL.name)
    if kl is None:
        return 0.0
    spikes = [s for s in jumps(kl, *KL_SPIKE_LIMITS) if np.isfinite(s.value)]
    low = series.steps[np.maximum(jump.indices - SIDE_POINTS, 0)]
    high = series.steps[np.minimum(jump.indices + SIDE_POINTS, len(series) - 1)]
    spike_steps = [int(kl.steps[s.index]) for s in spikes]
    values = [
        s.value
        for s, k in zip(spikes, spike_steps, strict=True)
        if ((low <= k) & (k <= high)).any()
    ]
    return max(values, default=0.0)


def _report_scale_jump(trace: Trace, series: Series, scale: Array, limit: Array) -> Answer:
    """Report, as a note, a loss that rose only because the returns' own scale jumped."""
    scale_before = np.concatenate((np.full(SIDE_POINTS, np.inf), scale[:-SIDE_POINTS]))
    scale_before = scale_before[: scale.size]
    # Tenfold, and not a first reward after none, which has no scale to be compared with.
    scale_jumps = (scale > 10.0 * scale_before) & (scale_before > np.finfo(np.float64).tiny)
    above = series.values > limit
    rows = np.flatnonzero(above & scale_jumps)
    if not rows.size or not crowd(np.flatnonzero(above), CROWD_POINTS, CROWD_WINDOW):
        return Clear()
    first = int(rows[0])
    onset_step, highest = int(series.steps[first]), float(series.values[first:].max())
    level = median(series.values[:first]) or 0.0
    evidence, counter = weigh.sides(standing(trace, since=onset_step))
    evidence = ("a reward whose scale was changed does that; so does a first success", *evidence)
    return Finding(
        f"the value loss jumps from {level:.3g} to {highest:.3g} as the returns' scale does, from "
        f"{scale_before[first]:.3g} to {scale[first]:.3g} within {SIDE_POINTS} points",
        severity=Severity.NOTE,
        metric=LOSS.name,
        began=onset_step,
        ended=int(series.steps[-1]),
        observed=highest,
        bound=Bound(float(limit[first]), "this run's own past"),
        evidence=evidence,
        counter=counter,
    )


RULE = Rule(
    name="value-loss-explosion",
    needs=(LOSS,),
    at_least=2 * MIN_HISTORY,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high, or raised at that step",
        "the reward's or the observations' scale changed",
        "a bug in the returns: bootstrapping past an episode's end, a sum where a mean was meant",
    ),
    remedies=(
        "lower {learning_rate}",
        "{max_grad_norm:clip gradients}, and clip or normalise rewards",
        "check the returns by hand on one episode",
        "restart from a checkpoint before the jump",
    ),
    profiles=(*kinds.ACTOR_CRITIC, Profile.OFF_POLICY),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-too-high",
        "learning-rate-jump",
        "kl-spike",
        "exploration-explodes",
        "environment-changed",
        "impossible-value",
        "gradient-explosion",
        "kl-above-target",
    ),
    verdict="unstable",
    thresholds=(VALUE_LOSS_FACTOR,),
)
