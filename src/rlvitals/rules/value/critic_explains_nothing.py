"""The critic predicts returns no better than a constant would, while the outcome stalls.

## What it sees
`value/explained_variance` below 0.1 in at least half of 20 successive updates (10 where fewer
than 40 are logged), over at least a fifth of the run so far. Alone that is a note: it is a
warning only where the outcome is proven flat or falling over the same steps. Updates are left
out where returns hardly vary (the value loss fell to 1/10,000 of its own highest level, or
explained variance is below -1000), and so is a run at its ceiling. A critic that starts so
is a note before 40 % of the run's budget, and while a run of unknown budget goes on. So is one that
explains half or more in the last ten updates.

A critic that has learned nothing at all over the whole run is told apart: explained variance in the
median of the last third below 0.3 and no better than in the first third, where it was below 0.4,
and a value loss whose median is above three tenths of what it was at first: not even the mean of
the returns was learned. Of a Q-learner: a loss that keeps within a factor of two from the first
update to the last, its root more than 2.5 times what a step pays on average; or one that is no
lower in the last third than at first, its root more than twice the mean of `value/q_mean`: a critic
that is trained errs by less than it predicts. In an environment that
is known, that is a warning also where the outcome cannot be told or rises, if nine tenths of a
known budget are spent and it ends far from solved; not where explained variance rises as well, if
slowly, nor where a rising outcome has come a third of the way and nine tenths of the last explained
variances are above 0: then the budget may just be small.

## Why it matters
Advantages are returns minus predictions. A critic that explains nothing leaves them as noisy as
the returns: the policy is pushed about by luck, and luck can pick a winner.

## What to do
See whether the critic learns at all: its learning rate, its weight in the loss, whether it shares
a trunk with the policy. Then whether it can: do observations show what the return depends on,
are they and the rewards normalised, is the discount's horizon shorter than what is to be seen.

## When it is wrong
Explained variance is 1 - Var(R - V) / Var(R): blind to a constant offset, and as lambda-returns
contain V, a high one is no proof of a good critic either. Short rollouts (A2C: 5 steps) keep it
near 0 in runs that learn well, so below 256 samples for each estimate this is never more than
a note, and that only where the outcome is proven to stall. It falls far below 0 where all
returns are alike, as at a task's maximum. Values that are clipped move by the clip range in an
update: while all updates together move them by less than they err by, this is a note. RLlib cuts it
off at -1. TRL's `ppo/val/var_explained` uses the squared error: there an offset counts too.

## References
- Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
  Estimation", section 5.
- Stable-Baselines3, `common/utils.py`, `explained_variance`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.catalogue.optimiser import LOSS as TOTAL_LOSS
from rlvitals.metrics.catalogue.value import EXPLAINED_VARIANCE, LOSS, MSE_EXPLAINED_VARIANCE
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
from rlvitals.rules.shapes import MIN_LASTING_SHARE, SHORT_WINDOW, Stretch, below
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import Standing, outcome, standing
from rlvitals.rules.untrained import find_constant_error, find_useless_critic
from rlvitals.types import Profile, Series, Trace

Array = NDArray[np.float64]
EXPLAINED_VARIANCE_METRICS = (EXPLAINED_VARIANCE, MSE_EXPLAINED_VARIANCE)

# Healthy critics pass it once they learn.
MIN_EXPLAINED_VARIANCE = Threshold(
    "critic-explains-nothing.explained", 0.1, "explained variance", low=-float("inf"), high=1.0
)
# Healthy critics that learned late end between 0.56 and 0.97.
# Below it, A2C's healthy runs stay at 0.
MIN_ESTIMATE_SAMPLES = Threshold(
    "critic-explains-nothing.samples", 256.0, "samples of each estimate: with fewer, a note at most"
)
UNDEFINED_EXPLAINED_VARIANCE = -1e3  # a lower value was divided by a variance of nearly 0


def check(trace: Trace) -> Answer:
    """Ask whether the critic learned at all; then find a lasting stretch of low values."""
    if trace.profile is Profile.OFF_POLICY:
        return find_constant_error(trace)
    metric = next((metric for metric in EXPLAINED_VARIANCE_METRICS if metric.name in trace), None)
    if metric is None:
        return Undecided(f"{EXPLAINED_VARIANCE.name} is not logged", (EXPLAINED_VARIANCE.name,))
    logged = trace[metric.name].finite()
    untrained = find_useless_critic(trace, metric.name, logged, MIN_EXPLAINED_VARIANCE)
    answer = untrained or _stretch(trace, metric.name, logged)
    reason = _describe_value_clip(trace, len(logged)) if isinstance(answer, Finding) else ""
    if isinstance(answer, Finding) and reason:
        return replace(answer, severity=Severity.NOTE, counter=(*answer.counter, reason))
    return answer


def _describe_value_clip(trace: Trace, updates: int) -> str:
    """Say why clipped predictions cannot have come to the returns yet; empty where they can.

    A value that has moved by the clip range in an update gets no gradient from there on.
    """
    loss, clip = trace.get(LOSS.name), trace.number("clip_range_value")
    if clip is None and trace.settings.get("clip_vloss") is True:  # CleanRL: the policy's range
        clip = trace.number("clip_range")
    if loss is None or not clip or not len(loss := loss.finite()):
        return ""
    error = float(np.sqrt(np.median(loss.values)))
    if updates * clip >= error:
        return ""
    return (
        f"values are clipped to {clip:g} an update: {updates} updates move them by "
        f"{updates * clip:.3g} at most, and they err by {error:.3g} or more"
    )


def _stretch(trace: Trace, metric: str, logged: Series) -> Answer:
    """Find a lasting stretch of low explained variance, then ask the outcome."""
    meaningful = _where_returns_vary(trace, logged)
    if standing(trace).state == "at its ceiling":
        return Clear()
    if len(meaningful) < SHORT_WINDOW:
        return Undecided("returns hardly vary: there is no variance to explain")
    stretch = below(meaningful, MIN_EXPLAINED_VARIANCE.on(trace))
    if stretch is None or stretch.share * len(meaningful) < MIN_LASTING_SHARE * len(logged):
        return Clear()
    during = stretch.of(meaningful).values
    if float(np.median(during)) >= MIN_EXPLAINED_VARIANCE.on(trace):
        return Clear()  # low at either end, better in between
    return _weigh_finding(trace, metric, logged, during, stretch)


def _weigh_finding(
    trace: Trace, metric: str, logged: Series, during: Array, stretch: Stretch
) -> Answer:
    """Ask whether there was anything to explain, from enough samples, and what came of it."""
    if _is_constant_outcome(trace, stretch):
        return Undecided("the outcome is constant: there is no variance to explain")
    trend = standing(trace, since=stretch.start, until=stretch.end)
    samples = _samples(trace)
    small_sample = samples is not None and samples < MIN_ESTIMATE_SAMPLES.on(trace)
    if small_sample and weigh.content(trend):
        return Clear()
    if small_sample and trend.state == "unknown":
        return Undecided(f"an estimate rests on {samples:.0f} samples only, and {trend.sentence}")
    if weigh.content(trend) and not stretch.goes_on:
        return Clear()  # the policy learned without it, and the critic caught up since
    trend_since = None if stretch.goes_on else standing(trace, since=stretch.start)
    finding = _finding(
        trace, metric, during, stretch, trend, trend_since, samples if small_sample else None
    )
    last = float(np.median(logged.values[-SHORT_WINDOW:]))
    if stretch.goes_on or last < 0.5:  # explained variance of the last updates: a note at most
        return finding
    caught_up = f"it is over: the last {SHORT_WINDOW} explain {last:.2g}"
    return replace(finding, severity=Severity.NOTE, counter=(*finding.counter, caught_up))


def _where_returns_vary(trace: Trace, values: Series) -> Series:
    """Leave out the points at which explained variance divides by almost nothing."""
    values = values.where(values.values > UNDEFINED_EXPLAINED_VARIANCE)
    loss = trace.get(LOSS.name)
    if loss is None or not len(loss := loss.finite()):
        return values
    # Below a ten-thousandth of its highest level little variance is left to explain.
    is_small = loss.values < 1e-4 * np.maximum.accumulate(loss.values)
    rows = np.searchsorted(loss.steps, values.steps, side="right") - 1
    return values.where(~is_small[np.maximum(rows, 0)])


def _is_constant_outcome(trace: Trace, stretch: Stretch) -> bool:
    picked = outcome(trace)
    if picked is None:
        return False
    values = stretch.of(picked[1]).values
    return values.size > 1 and bool((values == values[0]).all())


def _finding(  # noqa: PLR0913, PLR0917 - the finding's parts, from the one caller above
    trace: Trace,
    metric: str,
    during: Array,
    stretch: Stretch,
    trend: Standing,
    trend_since: Standing | None,
    samples: float | None,
) -> Finding:
    middle = float(np.median(during))
    evidence, counter = weigh.sides(trend)
    severity = stretch.severity(weigh.severity(trend))
    if trend_since is not None and weigh.content(trend_since):
        severity = Severity.NOTE
        counter = (*counter, f"it is over, and {trend_since.sentence} since it began")
    if samples is not None:
        severity = Severity.NOTE
        counter = (*counter, f"an estimate rests on {samples:.0f} samples only: near 0 is usual")
    first = trace.first_step
    is_first = stretch.start - first < MIN_LASTING_SHARE * (trace.last_step - first)
    if is_first and (reason := too_early(trace)):
        severity = Severity.NOTE  # every critic starts so, and every outcome
        counter = (*counter, reason)
    negative = float((during < 0).mean())
    if (during < -0.01).any():  # below 0, which predicting a constant gives
        evidence = (*evidence, f"worse than a constant, below 0, in {negative:.0%} of them")
    every = stretch.of(trace[metric].finite())
    qualifier = "" if during.size == len(every) else " in which returns vary"
    return Finding(
        f"the critic explains nothing: over {during.size} updates{qualifier} the median explained "
        f"variance is {middle:.2g}, the mean {float(during.mean()):.2g}",
        severity=severity,
        metric=metric,
        began=stretch.start,
        ended=stretch.end,
        observed=middle,
        bound=MIN_EXPLAINED_VARIANCE.bound(trace, "default"),
        evidence=evidence,
        counter=counter,
    )


def _samples(trace: Trace) -> float | None:
    """Count the samples behind one estimate, where the settings tell."""
    steps = trace.number("n_steps")
    if steps is not None:
        return steps * (trace.number("n_envs") or 1.0)
    return trace.number("batch_size")


RULE = Rule(
    name="critic-explains-nothing",
    needs=(),
    needs_any=(*EXPLAINED_VARIANCE_METRICS, LOSS, TOTAL_LOSS),
    at_least=SHORT_WINDOW,
    check=check,
    doc=__doc__,
    causes=(
        "the critic hardly learns: its learning rate or value_coef is too low",
        "observations do not show what the return depends on",
        "rewards or observations are not normalised, or their scale is far from the network's",
        "gradient clipping shared with a large value loss leaves neither head a step",
    ),
    remedies=(
        "raise {value_coef} or the critic's learning rate",
        "normalise observations and returns",
        "check that returns are bootstrapped and cut at episode ends",
        "lower {gamma}, or collect {n_steps:more steps per update}",
    ),
    profiles=(*kinds.ACTOR_CRITIC, Profile.OFF_POLICY),
    explained_by=(
        "setting-out-of-range",
        "not-a-number",
        "impossible-value",
        "learning-rate-too-high",
        "environment-changed",
        "updates-cut-short",
        "updates-hardly-move",
        "exploration-explodes",
        "value-loss-explosion",
        "value-loss-vanishes",
        "value-clip-high",
    ),
    thresholds=(
        MIN_EXPLAINED_VARIANCE,
        MIN_ESTIMATE_SAMPLES,
        persistence("critic-explains-nothing", 0.25),
    ),
    persists=persistence("critic-explains-nothing", 0.25),  # a slow start is as flat
)
