"""Gradients grow to many times what they were.

## What it sees
`optimiser/grad_norm` (before clipping) above 10 x the median of the 50 points before, and above
the run's `max_grad_norm` where one is set. Three such points within 20 count by the outcome:
error where it falls, warning where it is flat or a supervised loss grew (by half in what follows,
or to ten times its first points), else a note; fewer are a note. A norm that is 10 x
its start's level over the last 20 points counts as well, however slowly it rose. Zeros, updates
without a signal, are no baseline. Jumps no higher than the 95th percentile of all points before
them are none while the outcome gets better: it is their median that fell. Where most groups have
no contrast, that percentile is the baseline. In a language model's run that holds its best over
the whole run they are a note.

## Why it matters
One update along such a gradient can undo thousands. Clipping bounds the step's length, not its
direction: that is still the one of the batch that exploded.

## What to do
Clip gradients (`max_grad_norm` 0.5 to 1), then lower the learning rate, then look at the batch:
a reward or an advantage without bounds, a ratio far from 1, a sequence of one token.

## When it is wrong
A first reward in a sparse task has a gradient of its own. With clipping on, healthy
policy-gradient runs log norms far above the limit all the time: only a run's own past is compared.

## References
- Pascanu et al. 2013, "On the difficulty of training recurrent neural networks".
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, LOSS
from rlvitals.metrics.catalogue.reward import GROUP_ZERO_STD
from rlvitals.metrics.metric import Bound
from rlvitals.rules import kinds, weigh
from rlvitals.rules.answers import learning_trend
from rlvitals.rules.rule import Answer, Clear, Finding, Rule, Severity, Threshold, Undecided
from rlvitals.rules.shapes import crowd, jumps, start
from rlvitals.rules.standing import Standing, standing
from rlvitals.signals.spike import Spike
from rlvitals.signals.spread import median
from rlvitals.types import Profile, Series, Trace

# A healthy run's norms scatter by less than this around their median.
GRADIENT_FACTOR = Threshold(
    "gradient-explosion.factor", 10.0, "x the gradient norm before, or at the start", low=1.0
)
GRADIENT_TAIL_POINTS = 20  # points whose median is the level at the end


def check(trace: Trace) -> Answer:
    """Find jumps, or a level at the end far above the start's."""
    logged = trace[GRAD_NORM.name]
    norms = logged.where(~(logged.values == 0))
    if len(norms.finite()) < GRADIENT_TAIL_POINTS:
        return Undecided("gradients are zero in nearly all updates", (GRAD_NORM.name,))
    max_norm = trace.number("max_grad_norm")
    # Frameworks write a huge max_grad_norm for "do not clip".
    floor = max_norm if max_norm is not None and max_norm < 1e6 else 0.0
    spikes = [s for s in jumps(norms, GRADIENT_FACTOR.on(trace), floor) if np.isfinite(s.value)]
    if spikes and not _repeats_peaks(trace, norms, spikes):
        return _report_jumps(trace, norms, spikes, floor)
    return _report_rise(trace, norms, floor)


def _repeats_peaks(trace: Trace, norms: Series, spikes: list[Spike]) -> bool:
    """See peaks of a run that does well that are as high as ever: what fell is their median.

    Where most groups are solved, a batch with one that is not has the gradient of old.
    """
    # Quantile of all points before: a norm that the run has had several times.
    usual = np.array([np.nanquantile(norms.values[: s.index], 0.95) for s in spikes])
    values = np.array([s.value for s in spikes])
    # Without contrast in most batches, the median is the norm of updates without a signal.
    spread = trace.numbers(GROUP_ZERO_STD.name, GRADIENT_TAIL_POINTS)
    if spread is not None and np.median(spread.values) >= 0.5:  # of the groups have equal rewards
        return bool(np.all(values <= GRADIENT_FACTOR.on(trace) * usual))
    if np.any(values > usual):
        return False
    return weigh.content(learning_trend(trace, since=int(norms.steps[spikes[0].index])))


def _outcome(trace: Trace, onset_step: int) -> Standing:
    """Judge the outcome since the jump; of batches of new prompts that do well, the whole run."""
    current = standing(trace, since=onset_step)
    if trace.profile not in kinds.LANGUAGE or weigh.content(current):
        return current
    complete = learning_trend(trace)
    return complete if weigh.content(complete) else current


def _report_jumps(trace: Trace, norms: Series, spikes: list[Spike], floor: float) -> Finding:
    indices = np.array([s.index for s in spikes])
    are_crowded = crowd(indices, 3, 20)  # 3 jumps within 20 points are no outlier
    worst = max(spikes, key=lambda s: s.ratio)
    times = f"{indices.size} such jumps" if indices.size > 1 else "the only such jump"
    summary = (
        f"the gradient norm jumps to {worst.value:.3g}, {worst.ratio:.3g} x the median of the "
        f"points before ({worst.baseline:.3g}); {times}"
    )
    limit = _limit(trace, worst.baseline, floor, "median")
    return _finding(
        trace, norms, (int(indices[0]), int(indices[-1])), summary, limit, worst.value, are_crowded
    )


def _report_rise(trace: Trace, norms: Series, floor: float) -> Answer:
    points = norms.finite()
    first, last = start(points), median(points.values[-GRADIENT_TAIL_POINTS:])
    if first is None or last is None or not last > max(GRADIENT_FACTOR.on(trace) * first, floor):
        return Clear()
    above = np.flatnonzero(points.values <= GRADIENT_FACTOR.on(trace) * first)
    onset = int(above[-1]) + 1 if above.size else 0
    summary = (
        f"the gradient norm rose from {first:.3g} to {last:.3g}, {last / first:.3g} x its start"
    )
    limit = _limit(trace, first, floor, "start")
    onset = min(onset, len(points) - GRADIENT_TAIL_POINTS)
    return _finding(trace, points, (onset, len(points) - 1), summary, limit, last, often=True)


def _limit(trace: Trace, level: float, floor: float, origin: str) -> Bound:
    limit = GRADIENT_FACTOR.bound(
        trace, f"{GRADIENT_FACTOR.on(trace):g} x this run's own {origin}", scale=level
    )
    return Bound(max(limit.value, floor), limit.origin)


def _finding(  # noqa: PLR0913, PLR0917 - the parts of one noun, from the two callers above
    trace: Trace,
    norms: Series,
    span: tuple[int, int],
    summary: str,
    limit: Bound,
    observed: float,
    often: bool,  # noqa: FBT001
) -> Finding:
    onset_step = int(norms.steps[span[0]])
    trend = _outcome(trace, onset_step)
    evidence, counter = weigh.sides(trend)
    stall_severity = Severity.ERROR if trend.state == "falling" else Severity.WARNING
    unknown = Severity.NOTE
    if loss_text := _describe_loss_growth(trace, onset_step):
        evidence, unknown = (loss_text, *evidence), Severity.WARNING
    return Finding(
        summary,
        severity=weigh.severity(trend, stall_severity, unknown) if often else Severity.NOTE,
        metric=GRAD_NORM.name,
        began=onset_step,
        ended=int(norms.steps[span[1]]),
        observed=observed,
        bound=limit,
        evidence=evidence,
        counter=counter,
    )


def _describe_loss_growth(trace: Trace, onset_step: int) -> str:
    """Say how a supervised loss, which ought to fall, grew instead; empty where it did not."""
    loss = trace.get(LOSS.name)
    if trace.profile is not Profile.SUPERVISED or loss is None:
        return ""
    tail = loss.since(onset_step).finite().values
    usual = median(loss.until(onset_step - 1).tail(GRADIENT_TAIL_POINTS).values)
    after = median(tail)
    if usual is not None and after is not None and after > 1.5 * usual > 0:  # a second witness
        return f"the loss is {after:.3g} in the median of what follows, {usual:.3g} before"
    start_level = median(loss.finite().values[:5]) or 0.0
    far = tail[tail > 10.0 * start_level]
    if start_level <= 0 or len(far) < 3:
        return ""
    return f"the loss reaches {far.max():.3g}, from {start_level:.3g} in its first five points"


RULE = Rule(
    name="gradient-explosion",
    needs=(GRAD_NORM,),
    at_least=GRADIENT_TAIL_POINTS,
    check=check,
    doc=__doc__,
    causes=(
        "learning rate too high",
        "no gradient clipping",
        "rewards, advantages or ratios without bounds",
    ),
    remedies=(
        "{max_grad_norm:clip gradients}: at a norm of 0.5 to 1",
        "lower {learning_rate}",
        "with RL: normalise advantages, clip rewards",
        "restart from a checkpoint before the jump",
    ),
    explained_by=(
        "setting-out-of-range",
        "learning-rate-too-high",
        "learning-rate-jump",
        "reward-spread-grows",
        "sampler-mismatch",
        "samples-stale",
    ),
    verdict="unstable",
    thresholds=(GRADIENT_FACTOR,),
)
