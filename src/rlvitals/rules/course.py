"""Course of an outcome where no trend tells it: its losses, an early rise, a level, a low end."""

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.rules.curves import MIN_DIP_ERRORS, falls_from_start, gain_after_dip, is_clear_fall
from rlvitals.rules.episode_window import (
    MEAN_WORDS,
    describe_measure,
    episodes,
    episodes_per_point,
    scatter_of_window,
)
from rlvitals.rules.falling import first_full_step
from rlvitals.rules.gains import no_gain, order_chance
from rlvitals.rules.going_on import liveness
from rlvitals.rules.known_task import knows_way
from rlvitals.rules.outcome_blocks import by_blocks, flat_unless_good
from rlvitals.rules.paid import longer_way
from rlvitals.rules.standing import (
    EVAL_OUTCOME,
    MIN_OUTCOME_POINTS,
    Standing,
    least_that_counts,
    outcome,
    slow_swing,
)
from rlvitals.rules.untaught import stays_uniform
from rlvitals.signals.drawdown import drawdown
from rlvitals.signals.early_rise import early_rise_size
from rlvitals.signals.finite import Array, clip_extremes
from rlvitals.signals.outcome_change import MIN_LEVEL_SD, line_gain, outcome_change
from rlvitals.signals.outcome_course import (
    CLEAR_GAIN_SD,
    COURSE_BLOCKS,
    COURSE_END_BLOCKS,
    FALL_SHARE,
    Course,
    LateLoss,
    course_of,
    falls,
    is_back,
    late_loss,
)
from rlvitals.signals.spread import difference_sd, median, noise_sd
from rlvitals.types import Series, Trace

MIN_LOSS_SDS = 7.0  # sd from point to point: see `is_clear_loss`
# Of 144 published curves that are good at the end, of tasks whose span is not known, 6 lose a
# quarter of their gain and none by four standard errors. Two healthy CartPole runs lose 40 % by
# more than four and less than six: a policy of a short training still swings.
MIN_LATE_SHARE = 1 / 3  # of the gain
MIN_LATE_ERRORS = 6.0  # of gain and loss, by the change from block to block
MIN_DECLINE_ERRORS = 4.0  # the same, where the blocks since the best fall in order


def is_no_loss(trace: Trace, name: str, series: Series, course: Course) -> bool:
    """Return True if an outcome below its best came back before, comes back, or has a longer way.

    What was lost before and came back is return_oscillates' business.
    """
    return falls(course) > 1 or is_back(series.values, course) or bool(longer_way(trace, name))


def is_clear_loss(name: str, values: Array, course: Course) -> bool:
    """Tell a loss from the ups and downs of a noisy outcome.

    Over every prefix of 50 healthy runs the fall stays below 4.8 and 6.3; of 30 that lost what
    they had, all but one pass one of the limits, most of them by a factor of five.
    """
    fall = drawdown(values)
    if fall is not None and fall.size >= CLEAR_GAIN_SD:
        return True
    if name == "reward/step":  # of single decisions: it follows the load, in long smooth swings
        return False
    start = len(values) - (len(course.blocks) - course.peak) * course.width
    half = course.width // 2
    peak_values = values[max(start - half, 0) : start + course.width + half + 1]
    end = values[-COURSE_END_BLOCKS * course.width :]
    drop = (median(peak_values) or 0.0) - (median(end) or 0.0)
    # Games are won or lost: the median of such differences says nothing of their scatter.
    scatter = difference_sd(clip_extremes(values))
    noise = max(noise_sd(values) or 0.0, float(np.finfo(np.float64).tiny))
    return drop >= max(MIN_LOSS_SDS * noise, CLEAR_GAIN_SD * scatter)


def is_lost_before(trace: Trace, step: int) -> bool | None:
    """Tell whether what the outcome had gained was lost by a step; None where there was nothing.

    What sets in after an outcome was lost is a consequence, or another story.
    """
    picked = outcome(trace)
    if picked is None:
        return None
    values_before = picked[1].until(step).values
    if len(values_before) < MIN_OUTCOME_POINTS:
        return None
    material, _ = least_that_counts(trace, picked[0], picked[1])
    gain, loss = values_before.max() - values_before[0], values_before.max() - values_before[-1]
    if gain <= material:
        return None
    # One bad episode is no loss: the level of the last few lies lower as well.
    levels = np.median(sliding_window_view(values_before, 5), axis=1)
    level_loss = levels.max() - levels[-1]
    return bool(loss > FALL_SHARE * gain and level_loss > FALL_SHARE * (levels.max() - levels[0]))


def loss_from_best(trace: Trace, name: str, series: Series, trend: Standing) -> Standing | None:
    """Return the standing of an outcome that ends below its best; None where it does not.

    The best and the last tenth of the outcome `name`, in finite points, differ by a third of what
    was gained or more, and gain and loss are six standard errors, by the change from one block of
    twenty to the next; four where the blocks since the best fall in order. A steady rise is such a
    change too, so that a loss has to stand out from it and from the slow swings of a mean over
    episodes. A run may also end in its fall: four blocks fall, and half of the gain is gone.

    None for a run that goes on, for fewer than 20 values, where the task's span tells how good the
    end is, where the best level is that of the first tenth, and where the outcome was lost before
    or is coming back.
    """
    values = series.values
    if len(values) < COURSE_BLOCKS or liveness(trace).live or knows_way(trace, name, values):
        return None
    late = late_loss(values)
    min_change = scatter_of_window(trace, name)
    if trend.state == "flat":  # a large gain is excluded: what is left of it has to count
        min_change = max(min_change, trend.material)
    last = _level_after_loss(values, late, min_change)
    # A best level in the first tenth of the run belongs to its start.
    if last is None or late.peak < 0.1:
        return None
    if series.steps[-1] < first_full_step(trace, name, series) or longer_way(trace, name):
        return None
    if falls(late.course) > 1:
        return None
    return replace(trend, state="fallen back", why="", best=late.best, last=last)


def _level_after_loss(values: Array, late: LateLoss, min_change: float) -> float | None:
    """Return the level at which an outcome ends that lost its gain; None where none is proven."""
    if not late.swing:
        return None
    min_errors = MIN_DECLINE_ERRORS if decline_chance(late) <= 0.01 else MIN_LATE_ERRORS
    is_large = min(late.gain, late.loss) >= max(min_errors * late.swing, min_change)
    if late.lasts and is_large and late.share >= MIN_LATE_SHARE:
        return late.last
    is_large = late.loss_in_fall(4) >= max(CLEAR_GAIN_SD * late.swing, min_change)
    return float(late.course.blocks[-1]) if is_large and not is_back(values, late.course) else None


def decline_chance(late: LateLoss) -> float:
    """Return the chance that blocks [about 20] without a trend fall as the ones since the best do.

    By Kendall's test of their order; 1 for fewer than five. The best is left out: it is above the
    others by its choice.
    """
    blocks = late.course.blocks[late.course.peak + 1 :]
    return order_chance(-blocks) if len(blocks) >= 5 else 1.0


def judge_unclear(trace: Trace, trend: Standing, series: Series) -> Standing:
    """Judge an outcome, in finite points with up = better, by what a line through all hides."""
    values = series.values
    swing = slow_swing(trace, trend.metric, trend.material_from)
    falls_short = falls_from_start(values, trend.first, trend.material)
    if falls_short or is_clear_fall(values, max(trend.material, swing)) or stays_uniform(trace):
        return replace(trend, state="flat", why="")
    for judge in (_judge_dip, early_level):
        judgement = judge(trace, trend, series)
        if judgement is not trend:
            return judgement
    blocks = by_blocks(trace, trend, values)
    if blocks.state == "fallen back" and blocks.best - blocks.last < swing:
        return replace(
            trend, why=f"{trend.why}; a mean over so many episodes wanders by {swing:.3g}"
        )
    flat = _flat_by_line(trace, trend, series) if blocks.state == "unknown" else None
    return blocks if flat is None else flat


def _judge_dip(trace: Trace, trend: Standing, series: Series) -> Standing:
    """Return a flat standing for an outcome that fell at first and ends below its first block."""
    dip = gain_after_dip(trace, trend.metric, series.values, trend.material)
    if dip is None or -dip[0] < max(trend.material, MIN_DIP_ERRORS * dip[1]):
        return trend
    return replace(trend, state="flat", why="", first=trend.last - dip[0])


def early_level(trace: Trace, trend: Standing, series: Series) -> Standing:
    """Return a standing that holds its best where a trend hides an early rise that lasts.

    A line through a curve that rises at once and then stays is flat, or proves nothing. Where the
    task's span is known, that tells how good the level is. Of published curves that never gained,
    none rises by more than 1.5 standard errors; of five that gained, which no other test proves,
    the smallest rise is 5.1.
    """
    name = trend.metric
    if trend.state not in {"unknown", "flat"} or _is_running_mean(trace, name, series):
        return trend
    if knows_way(trace, name, series.values) or early_rise_size(series.values) < MIN_LEVEL_SD:
        return trend
    return replace(trend, state="holding its best", why="")


def judge_late_part(trace: Trace, trend: Standing, series: Series) -> Standing:
    """Return the standing of the end of a long run: its first level was learned, and may be lost.

    A proven rise is one wherever it began. Evaluations that end far below the first ones have
    fallen back, whatever they gained before. Of training returns that fall nothing is said: they
    also fall where exploration begins anew.
    """
    if trend.state != "unknown":
        loss = loss_from_best(trace, trend.metric, series, trend) if trend.improves else None
        return loss or trend
    min_loss = max(trend.material, slow_swing(trace, trend.metric, trend.material_from))
    if trend.metric == EVAL_OUTCOME and is_clear_fall(series.values, min_loss):
        return replace(trend, state="fallen back", why="", best=max(trend.best, trend.first))
    blocks = by_blocks(trace, trend, series.values)
    return blocks if blocks.state == "rising" else trend


def _flat_by_line(trace: Trace, trend: Standing, series: Series) -> Standing | None:
    """Return a flat standing of values that gain less than a small effect and exclude a large one.

    Cohen 1988: 0.2 and 0.8 standard deviations. None where the task's span tells, where the outcome
    moves or swings, and for a mean over the last episodes.
    """
    values = series.values
    level, line = outcome_change(values), line_gain(values)
    has_moved = trend.low > 0 or trend.last - trend.first > trend.material
    if level is None or line is None or has_moved or level.stands_out:
        return None
    gain, half = line
    course = course_of(values)
    if gain > 0.2 or gain + half > 0.8 or falls(course) > 2:  # as said; again and again
        return None
    if knows_way(trace, trend.metric, values) or _is_running_mean(trace, trend.metric, series):
        return None
    flat = flat_unless_good(trace, trend, values, level, course)
    return no_gain(flat) if flat.state == "flat" else flat


def _is_running_mean(trace: Trace, name: str, series: Series) -> bool:
    """Return True for a mean over the last episodes, or over all: it begins with one of them."""
    if name == EVAL_OUTCOME:
        return False
    if episodes(trace, name) > 1:
        return True
    is_mean = MEAN_WORDS.search(describe_measure(trace, name)) is not None
    return is_mean and episodes_per_point(trace, name, series) <= 1
