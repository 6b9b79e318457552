"""Losses of an outcome: those that stand out of its noise, and the one that a run ends with."""

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.rules.episode_window import scatter_of_window
from rlvitals.rules.falling import full
from rlvitals.rules.going_on import liveness
from rlvitals.rules.known_task import knows_way
from rlvitals.rules.paid import longer_way
from rlvitals.rules.standing import LEAST, Standing, least_that_counts, outcome
from rlvitals.signals.drawdown import drawdown
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_course import (
    BLOCKS,
    HALF,
    LAST,
    PLAIN,
    Course,
    falls,
    late_loss,
)
from rlvitals.signals.spread import median, noise_sd
from rlvitals.types import Series, Trace

LOUD = 7.0  # sd from point to point: see `plainly_lost`
SINGLE = "reward/step"  # of single decisions: it follows the load, in long smooth swings
# Of 144 published curves that are good at the end, of tasks whose span is not known, 6 lose a
# quarter of their gain and none by four standard errors. Two healthy CartPole runs lose 40 % by
# more than four and less than six: a policy of a short training still swings.
MIN_LATE_SHARE = 1 / 3  # of the gain
MIN_LATE_ERRORS = 6.0  # of gain and loss, by the change from block to block
MIN_PEAK_SHARE = 0.1  # of the run: a best level before that is its start's
TINY = float(np.finfo(np.float64).tiny)  # a noiseless series still has to fall


def plainly_lost(name: str, values: Array, course: Course) -> bool:
    """Tell a loss from the ups and downs of a noisy outcome.

    Over every prefix of 50 healthy runs the fall stays below 4.8 and 6.3; of 30 that lost what
    they had, all but one pass one of the limits, most of them by a factor of five.
    """
    fall = drawdown(values)
    if fall is not None and fall.size >= PLAIN:
        return True
    if name == SINGLE:
        return False
    start = len(values) - (len(course.blocks) - course.peak) * course.width
    half = course.width // 2
    around = values[max(start - half, 0) : start + course.width + half + 1]
    end = values[-LAST * course.width :]
    drop = (median(around) or 0.0) - (median(end) or 0.0)
    return drop >= LOUD * max(noise_sd(values) or 0.0, TINY)


def lost_before(trace: Trace, step: int) -> bool | None:
    """Tell whether what the outcome had gained was lost by a step; None where there was nothing.

    What sets in after an outcome was lost is a consequence, or another story.
    """
    picked = outcome(trace)
    if picked is None:
        return None
    values_before = picked[1].until(step).values
    if len(values_before) < LEAST:
        return None
    material, _ = least_that_counts(trace, picked[0], picked[1])
    gain, loss = values_before.max() - values_before[0], values_before.max() - values_before[-1]
    if gain <= material:
        return None
    # One bad episode is no loss: the level of the last few lies lower as well.
    levels = np.median(sliding_window_view(values_before, 5), axis=1)
    level_loss = levels.max() - levels[-1]
    return bool(loss > HALF * gain and level_loss > HALF * (levels.max() - levels[0]))


def loss_from_best(trace: Trace, name: str, series: Series, trend: Standing) -> Standing | None:
    """Return the standing of an outcome that ends below its best; None where it does not.

    The best and the last tenth of the outcome `name`, in finite points, differ by a third of what
    was gained or more, and gain and loss are six standard errors, by the change from one block of
    twenty to the next. A steady rise is such a change too, so that a loss has to stand out from it
    and from the slow swings of a mean over episodes. None for a run that goes on, for fewer than 20
    values, where the task's span tells how good the end is, where the best level is that of the
    first tenth, and where the outcome was lost before or is coming back.
    """
    values = series.values
    if len(values) < BLOCKS or liveness(trace).live or knows_way(trace, name, values):
        return None
    late = late_loss(values)
    min_change = max(MIN_LATE_ERRORS * late.swing, scatter_of_window(trace, name))
    if trend.state == "flat":  # a large gain is excluded: what is left of it has to count
        min_change = max(min_change, trend.material)
    stands_out = min(late.gain, late.loss) >= min_change and late.share >= MIN_LATE_SHARE
    if not (late.swing and stands_out and late.lasts) or late.peak < MIN_PEAK_SHARE:
        return None
    if series.steps[-1] < full(trace, name, series) or longer_way(trace, name):
        return None
    if falls(late.course) > 1:
        return None
    return replace(trend, state="fallen back", why="", best=late.best, last=late.last)
