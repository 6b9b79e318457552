"""Distance of a language model from its reference, per token and per sequence.

TRL's PPO logs KL summed over a response, its GRPO the mean over tokens: the two differ by the
response length and are never compared with one bound. Where neither is logged, the
log-probabilities of the sampled tokens under both models tell it: their mean difference is k1.
"""

import math
from collections.abc import Sequence

import numpy as np

from rlvitals.metrics.catalogue.language import LENGTH_MEAN, LOGPROBS, REF_LOGPROBS
from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE, KL_TO_REFERENCE_PER_TOKEN
from rlvitals.signals.blocks import block_length, block_means
from rlvitals.signals.level import first_last_change
from rlvitals.signals.spread import median
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Histogram, Series, Trace


@dataclass(frozen=True, slots=True)
class PerToken:
    """KL to the reference, nats per token."""

    series: Series  # finite points
    metric: str  # what it was taken from
    how: str  # how the tokens were counted; empty where it was logged so
    length: float = 1.0  # tokens that a logged value spans, the median over the run


def token_kl(trace: Trace) -> PerToken | None:
    """Return KL per token; None where it is not logged or the response length is not known.

    Without a logged length the response limit stands in: then the true value is no smaller.
    """
    name = KL_TO_REFERENCE_PER_TOKEN.name
    if name in trace and len(kl := trace[name].finite()):
        return PerToken(kl, name, "")
    name = KL_TO_REFERENCE.name
    if name not in trace or not len(kl := trace[name].finite()):
        pair = logprobs(trace)
        if pair is None or LOGPROBS.name not in trace:
            return None
        policy, theirs = pair
        gap = Series(policy.steps, policy.times, policy.values - theirs.values)
        return PerToken(gap, LOGPROBS.name, "k1: log-probabilities less those under the reference")
    logged = trace.get(LENGTH_MEAN.name)
    lengths = None if logged is None else logged.finite()
    if lengths is not None and len(lengths):
        per = np.maximum(np.interp(kl.steps, lengths.steps, lengths.values), 1.0)
        middle = median(per) or 1.0
        how = f"per sequence / mean response length (median {middle:.4g} tokens)"
        return PerToken(_divide(kl, per), name, how, middle)
    limit = trace.number("max_completion_length")
    if limit is None or limit < 1:
        return None
    return PerToken(_divide(kl, limit), name, f"per sequence / response limit ({limit:g})", limit)


def far(trace: Trace, start_step: int) -> tuple[str, ...]:
    """Say that the text has left the reference behind, where KL since a step shows it."""
    kl = token_kl(trace)
    if kl is None:
        return ()
    level = median(kl.series.since(start_step).values)
    # At 1 nat, the usual token is e times as likely as under the reference.
    if level is None or level <= 1.0:
        return ()
    return (f"KL to the reference is {level:.3g} nats per token meanwhile",)


def logprobs(trace: Trace) -> tuple[Series, Series] | None:
    """Return the tokens' mean log-probability under policy and reference, at common steps.

    From numbers, or from histograms of all tokens (by their bins' middles); None without both.
    """
    policy, theirs = (_level(trace, name) for name in (LOGPROBS.name, REF_LOGPROBS.name))
    if policy is None or theirs is None:
        return None
    _, rows, within = np.intersect1d(policy.steps, theirs.steps, return_indices=True)
    return (policy.where(rows), theirs.where(within)) if len(rows) else None


def _level(trace: Trace, name: str) -> Series | None:
    if name in trace:
        return trace[name].finite()
    suffix = name.rsplit("/", 1)[-1]
    drawn = [
        histogram for key, histogram in trace.histograms.items() if key.rsplit("/", 1)[-1] == suffix
    ]
    return _means(drawn[0]) if drawn else None


def _means(drawn: Sequence[Histogram]) -> Series | None:
    """Return each histogram's mean; one whose outermost bin is open cannot be averaged."""
    closed = [h for h in drawn if np.isfinite(h.edges).all() and h.counts.sum() > 0]
    if not closed:
        return None
    means = [float((h.edges[1:] + h.edges[:-1]) @ h.counts / 2 / h.counts.sum()) for h in closed]
    return Series(
        np.array([h.step for h in closed]), np.array([h.time for h in closed]), np.array(means)
    )


def describe_logprob_shift(trace: Trace) -> tuple[str, ...]:
    """Say how likely the sampled tokens are under both models, first and last."""
    pair = logprobs(trace)
    levels = [first_last_change(series.values) for series in pair] if pair else [None]
    if levels[0] is None or levels[1] is None:
        return ()
    (first, last), (reference_first, reference_last) = levels[0], levels[1]
    course = f"goes from {first:.3g} to {last:.3g}, under the reference from"
    return (f"a token's log-probability {course} {reference_first:.3g} to {reference_last:.3g}",)


@dataclass(frozen=True, slots=True)
class Negative:
    """The mean of the last half of a run, and where it left zero."""

    mean: float
    high: float  # end of its 99.9 % interval; NaN where its error is not known
    first_step: int  # step
    updates: int


MIN_ERROR_BLOCKS = 5  # fewer give no standard error


def below_zero(kl: Series, rounding: float) -> Negative | None:
    """Judge the mean of a KL's last half [n >= 10] against its own error; None where it is fine."""
    half = kl.tail(len(kl) // 2)
    mean = float(block_means(half.values, len(half))[0])  # a sum might overflow
    if mean >= rounding:
        return None
    high = _high(half)
    if high >= 0:
        return None
    sums = np.concatenate(([0.0], np.cumsum(kl.values)))[:-1]
    # The step after which the sum only goes down.
    return Negative(mean, high, int(kl.steps[int(np.argmax(sums))]), len(half))


def _high(half: Series) -> float:
    blocks = block_means(half.values, block_length(half.values))
    if len(blocks) < MIN_ERROR_BLOCKS:
        if len(half) < 2 * MIN_ERROR_BLOCKS or np.any(half.values >= 0):
            return math.nan
        blocks = block_means(half.values, len(half) // MIN_ERROR_BLOCKS)
    error = float(blocks.std(ddof=1)) / math.sqrt(len(blocks))
    # Two-sided: one chance in a thousand on the low side.
    return float(blocks.mean()) + t_quantile(0.998, len(blocks) - 1.0) * error


def _divide(series: Series, divisor: float | np.ndarray) -> Series:
    return Series(series.steps, series.times, series.values / divisor)
