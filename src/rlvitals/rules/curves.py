"""Heuristics for the shape of a whole curve (higher is better): a rise, a loss, or neither."""

import numpy as np

from rlvitals.rules import kinds
from rlvitals.rules.episode_window import episode_sd, episodes
from rlvitals.signals.blocks import block_means
from rlvitals.signals.drawdown import Drawdown, drawdown
from rlvitals.signals.finite import Array
from rlvitals.signals.level import first_last_change
from rlvitals.signals.outcome_change import (
    MIN_SHARE_LOST,
    OutcomeChange,
    outcome_change,
    starts_below,
)
from rlvitals.signals.spread import median, noise_sd, robust_sd
from rlvitals.signals.trend import trend
from rlvitals.types import Profile, Series, Trace

MIN_TAIL_POINTS = 5
MIN_CHANGE_SDS = 5.0  # sd of a block's noise: pure noise stays below 4.2 in 99 of 100 series
PLAIN_CHANGE_FACTOR = 3.0  # x the least change that counts
PLAIN_CHANGE_SDS = 6.0  # x the scatter from point to point
LONG_CURVE = 60  # points: in a longer curve a rise by 1.5 times what counts is plain
CURVE_START_POINTS = 3  # points whose median is the first level
CURVE_BLOCKS = 20  # blocks for the range and the best level
MIN_DIP_ERRORS = 3.0  # standard errors of the first block, for a rise from it
FIFTHS = 5  # the first fifth is the start of a run
# Times the span of the log: a log from the start begins within its first interval.
MAX_GAP_SPANS = 3.0


def by_steps(series: Series) -> Series:
    """Average a long series of finite points over equal stretches of steps.

    An episode log counts episodes: a policy that fails fast would fill most of it with the
    little time it takes. Short series are given back as they are.
    """
    if len(series) <= 1000:  # points: a longer log is averaged over stretches
        return series
    first, last = int(series.steps[0]), int(series.steps[-1])
    bin_index = (series.steps - first) * 200 // max(last - first + 1, 1)  # 200 stretches
    starts = np.flatnonzero(np.diff(bin_index, prepend=-1))
    counts = np.diff(starts, append=len(series))
    size = float(np.abs(series.values).max()) or 1.0  # a sum of 1e308s must not overflow
    means = np.add.reduceat(series.values / size, starts) / counts * size
    ends = starts + counts - 1
    return Series(series.steps[ends], series.times[ends], means)


def rises_at_once(values: Array, last: float, material: float) -> bool:
    """See a task that was learned within the first few points, and is still: flat is no fault."""
    gain = min(median(values) or 0.0, last) - (median(values[:CURVE_START_POINTS]) or 0.0)
    return gain > max(material, PLAIN_CHANGE_SDS * (robust_sd(values) or 0.0))


def rises(  # noqa: PLR0913 - a change, what counts of it, and how sure it is
    values: Array, gain: float, low: float, material: float, *, plain: float, anew: bool
) -> bool:
    """See a rise that is proven, or plain.

    `gain` is that of the last fifth over the first, `low` the low end of its interval, `plain` what
    counts where nothing is proven. `anew`: each point is measured anew, so that its noise is all
    from point to point and none is sluggish. Then the first one, of a policy that has hardly
    trained, is a level too.
    """
    if anew and _leaves_first_value(values, material):
        return True
    return gain >= material and (low > 0 or is_clear_rise(values, plain))


def _leaves_first_value(values: Array, material: float) -> bool:
    tail = values[-max(MIN_TAIL_POINTS, len(values) // 3) :]
    gain = (median(tail) or 0.0) - float(values[0])
    noise = noise_sd(values) or 0.0
    return bool(tail.min() > values[0]) and gain >= max(material, MIN_CHANGE_SDS * noise)


def is_clear_rise(values: Array, material: float) -> bool:
    """See a rise that a test made for sluggish noise cannot prove on a short, bent curve.

    Only for rising: to be wrong here delays an alarm, it never raises one.
    """
    head = values[: max(3, len(values) // 10)]
    tail = values[-max(MIN_TAIL_POINTS, len(values) // 3) :]
    gain = (median(tail) or 0.0) - (median(head) or 0.0)
    noise = noise_sd(values) or 0.0
    factor = PLAIN_CHANGE_FACTOR if len(values) < LONG_CURVE else 1.5
    return bool(tail.min() > head.max()) and gain >= max(
        factor * material, PLAIN_CHANGE_SDS * noise
    )


def is_clear_fall(values: Array, material: float) -> bool:
    """Return True if a short log of returns ends far below its first ones: see `is_clear_rise`.

    Three times what counts, for a log of any length, as a fall may raise an alarm. One that gained
    more than it lost in between is judged by its best.
    """
    head = values[: max(3, len(values) // 10)]
    tail = values[-max(MIN_TAIL_POINTS, len(values) // 3) :]
    loss = (median(head) or 0.0) - (median(tail) or 0.0)
    noise = noise_sd(values) or 0.0
    gain = float(values.max()) - (median(head) or 0.0)
    is_falling = bool(tail.max() < head.min()) and gain < loss
    return is_falling and loss >= max(PLAIN_CHANGE_FACTOR * material, PLAIN_CHANGE_SDS * noise)


def never_improves(values: Array, first: float, last: float, material: float) -> bool:
    """See a long log that ends where it began and never stood above that by what counts.

    A mean over many episodes wanders like a random walk, so that no test can bound its trend. But
    what did not get better in all that time, beyond its own scatter, did not learn.
    """
    if len(values) < LONG_CURVE or last - first > material / 2:
        return False
    best = float(block_means(values, max(1, len(values) // CURVE_BLOCKS)).max())
    # The scatter around a curve that did rise holds the rise: it counts for half as much at most.
    return best - first <= _scatter_limit(values, material)


def falls_from_start(values: Array, first: float, material: float) -> bool:
    """See a long log that fell from its very start, of a random policy, and never came back.

    Its first fifth is a slope and no level, so that its best says nothing of learning: what counts
    is that it never rose in there, and that nothing later stands above it.
    """
    if len(values) < LONG_CURVE:
        return False
    course = block_means(values, max(1, len(values) // CURVE_BLOCKS))
    begins, later_levels = course[: CURVE_BLOCKS // FIFTHS], course[CURVE_BLOCKS // FIFTHS :]
    climbs = float((begins - np.minimum.accumulate(begins)).max())
    return climbs <= _scatter_limit(values, material) and float(later_levels.max()) <= first


def _scatter_limit(values: Array, material: float) -> float:
    return material + min(robust_sd(values) or 0.0, material / 2)


def find_fall_back(values: Array, material: float) -> Drawdown | None:
    """Return the fall of a rise that was lost again: neither a trend nor a flat line fits it."""
    fall = drawdown(values)
    if fall is None or fall.best - fall.last < material:
        return None
    return fall if fall.share >= 0.5 and fall.size >= MIN_CHANGE_SDS else None


def find_proven_loss(values: Array, material: float, *, anew: bool = False) -> OutcomeChange | None:
    """Return the loss of half of a gain where blocks prove it and both are `material`.

    `anew`: each value is an evaluation.
    """
    change = outcome_change(values, margin=material, anew=anew)
    if change is None or change.answer != "lost" or change.share_lost < 0.5:
        return None
    return change


def _is_of_episodes(trace: Trace, name: str) -> bool:
    """Return True for an outcome of training episodes, from the first, untrained policy on."""
    return name in {"outcome/return", "outcome/reward"} and trace.profile not in kinds.LANGUAGE


def gain_after_dip(
    trace: Trace, name: str, values: Array, material: float
) -> tuple[float, float] | None:
    """Return how far an outcome that fell from its very start ends above that, and the error.

    Its first fifth holds the fall, so that a rise from there is none of the run: the start is the
    first of twenty blocks of `values` [n], of the whole run, the end their last fifth, the error
    the standard error of that block. None where it did not fall by `material` at first, for a
    language model, for fewer than 60 values, and for a mean over the last episodes, which begins
    with one of them.
    """
    levels = first_last_change(values)
    is_of_one = _is_of_episodes(trace, name) and episodes(trace, name) <= 1
    if levels is None or len(values) < LONG_CURVE or not is_of_one:
        return None
    width = len(values) // CURVE_BLOCKS
    start, fifth = float(values[:width].mean()), values[: len(values) // FIFTHS]
    if start - float(block_means(fifth, width).min()) < material:
        return None
    return levels[1] - start, (noise_sd(fifth) or 0.0) / float(np.sqrt(width))


def is_back_at_start(dip: tuple[float, float] | None, material: float) -> bool:
    """Return True if the end lies above the start by less than what counts, or three errors."""
    return dip is not None and dip[0] < max(material, MIN_DIP_ERRORS * dip[1])


def rises_early(trace: Trace, name: str, values: Array, last: float, material: float) -> bool:
    """Return True if the first few values lie far below the rest, and the end, `last`, does not."""
    return rises_at_once(values, last, material) or (
        trace.profile not in kinds.LANGUAGE and starts_below(trace[name].values)
    )


def holds_early_gain(trace: Trace, name: str, values: Array, last: float, material: float) -> bool:
    """Return True if an outcome rose early, and less than a third of that is gone at the end.

    A mean over the last episodes begins with one of them: what it gains at once has to be four
    times `material`, the least change that counts.
    """
    if not _is_of_episodes(trace, name):
        return False
    single = episodes(trace, name) <= 1 and starts_below(trace[name].values)

    def keeps_gain(rows: Array) -> bool:
        best = float(block_means(rows, max(1, len(rows) // CURVE_BLOCKS)).max())
        is_kept = best - last < MIN_SHARE_LOST * (best - (median(rows[:CURVE_START_POINTS]) or 0.0))
        return is_kept and (single or rises_at_once(rows, last, 4 * material))

    # Means over several rows hide that the first few rows of a long log are low.
    return keeps_gain(values) or keeps_gain(trace[name].finite().values)


def describe_earlier_learning(trace: Trace) -> str:
    """Say why what was learned may not be in the log; empty where all of it must be.

    The end of a long run alone; a scheduler that began from another's decisions.
    """
    if trace.first_step > MAX_GAP_SPANS * (trace.last_step - trace.first_step):
        return f"the log begins at step {trace.first_step:,} of the run"
    warm = str(trace.settings.get("skip_warmstart", "")).lower() == "false"
    if warm and trace.profile is Profile.SCHEDULER_PPO:
        return "it is flat from a warm start on, and how much there was to gain is not known"
    return ""


def still_climbs(trace: Trace, name: str, series: Series, min_gain: float) -> bool:
    """Return True where a gain exceeds the scatter of an episode and goes on over the last third.

    `series` has finite points of the outcome `name`, up = better. Such a gain of at least
    `min_gain` is learned, though it is a small part of the way to a solved task.
    """
    levels, sd = first_last_change(series.values), episode_sd(trace, name, series)
    if levels is None or not sd or levels[1] - levels[0] < max(sd, min_gain):
        return False
    late = trend(series.values[-len(series) // 3 :])
    return late is not None and late.change_low > 0
