"""The course of an outcome by blocks: what it gained, what it lost, and whether it came back."""

import math
from dataclasses import dataclass, replace

import numpy as np

from rlvitals.rules.episode_window import scatter_of_window
from rlvitals.rules.falling import full
from rlvitals.rules.going_on import liveness
from rlvitals.rules.known_task import knows_way
from rlvitals.rules.paid import longer_way
from rlvitals.rules.standing import LEAST, Standing, least_that_counts, outcome
from rlvitals.signals.blocks import block_means
from rlvitals.signals.drawdown import drawdown
from rlvitals.signals.finite import Array, clip_extremes, clip_outliers
from rlvitals.signals.oscillation import turning_points
from rlvitals.signals.spread import NORMAL_MAD, median, noise_sd
from rlvitals.types import Series, Trace

NOISE = 3.0  # standard deviations of a block's mean
HALF = 0.5  # of its range, for a leg down to be a fall; of its gain, for it to be lost
BLOCKS = 20
PLAIN, LOUD = 5.0, 7.0  # sd of a difference of blocks, sd from point to point: see `plainly_lost`
LAST = 2  # blocks, a tenth of the run
NEWEST = 5  # values
OUT = 0.75  # of a dip's depth
SINGLE = "reward/step"  # of single decisions: it follows the load, in long smooth swings
# Of 144 published curves that are good at the end, of tasks whose span is not known, 6 lose a
# quarter of their gain and none by four standard deviations. Two healthy CartPole runs lose 40 % by
# more than four and less than six: a policy of a short training still swings.
MIN_LATE_SHARE = 1 / 3  # of the gain
TINY = float(np.finfo(np.float64).tiny)  # a noiseless series still has to fall


@dataclass(frozen=True, slots=True)
class Course:
    """The outcome by blocks: where it started, peaked and ended."""

    blocks: np.ndarray[tuple[int], np.dtype[np.float64]]  # [about 20]
    width: int  # points a block
    peak: int  # index of the best block
    gain: float  # over the first block
    total_gain: float  # over the first level, which may lie below the first block
    loss: float
    noise: float  # standard deviation of a block's mean

    def keeps(self, material: float) -> bool:
        """Return True if a proven gain of at least `material` is there, and half of it is left."""
        is_gain = self.gain > max(material, PLAIN * self.noise)
        return is_gain and self.loss < HALF * self.total_gain


def course_of(values: Array) -> Course:
    """Cut finite values [n] of an outcome, up = better, into about twenty blocks.

    One outlier at either end is clipped: it is no level.
    """
    width = max(1, len(values) // BLOCKS)
    blocks = block_means(clip_outliers(values), width)
    peak = int(blocks.argmax())
    best, end = float(blocks[peak]), float(blocks[-LAST:].mean())
    noise = (noise_sd(values) or 0.0) / float(np.sqrt(width))
    start = min(float(blocks[0]), _first_level(values, width, float(blocks[0])))
    gain = best - float(blocks[0])
    return Course(blocks, width, peak, gain, best - start, best - end, noise)


def _first_level(values: Array, width: int, first_block: float) -> float:
    """Return the level that a run begins with, where the first block is proven to be above it."""
    count = max(width // 4, 1)
    level = float(values[:count].mean())
    error = (noise_sd(values) or 0.0) / float(np.sqrt(count))
    return level if first_block - level > NOISE * error else first_block


def is_back(values: Array, course: Course) -> bool:
    """See a dip that ended within the last block: the newest values have climbed out of it."""
    newest = median(values[-max(NEWEST, course.width // 2) :]) or 0.0
    best, low = float(course.blocks[course.peak]), float(course.blocks[course.peak :].min())
    return newest - low > OUT * (best - low)


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


def falls(course: Course) -> int:
    """Count how often an outcome lost half of its range, after it had come back from the last."""
    size = HALF * float(np.ptp(course.blocks))
    turns = turning_points(course.blocks, max(size, NOISE * course.noise))
    return int((np.diff(turns) < 0).sum())


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
    return bool(loss > HALF * gain) if gain > material else None


def loss_from_best(trace: Trace, name: str, series: Series, trend: Standing) -> Standing | None:
    """Return the standing of an outcome that ends below its best; None where it does not.

    The best and the last tenth of the outcome `name`, in finite points, differ by a third of what
    was gained or more, and gain and loss are six standard deviations of the change from one block
    of twenty to the next. A steady rise is such a change too, so that a loss has to stand out from
    it and from the slow swings of a mean over episodes. The last three blocks lie in the lower half
    of the loss. None for a run that goes on, for fewer than 20 values, where the task's span tells
    how good the end is, where the best level is that of the first tenth, and where the outcome was
    lost before or is coming back.
    """
    values = series.values
    if len(values) < BLOCKS or liveness(trace).live or knows_way(trace, name, values):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        course = course_of(clip_extremes(values))
    levels = np.convolve(course.blocks, np.full(LAST, 1 / LAST), "valid")
    peak, best, last = int(levels.argmax()), float(levels.max()), float(levels[-1])
    gain = best - float(course.blocks[course.peak]) + course.total_gain
    loss = best - last
    with np.errstate(over="ignore"):
        changes = np.abs(np.diff(course.blocks))
    noise = NORMAL_MAD * float(np.median(changes)) / math.sqrt(2)
    min_change = max(6 * noise, scatter_of_window(trace, name))
    if trend.state == "flat":  # a large gain is excluded: what is left of it has to count
        min_change = max(min_change, trend.material)
    stands_out = min(gain, loss) >= min_change and loss >= MIN_LATE_SHARE * gain
    lasts = bool((levels[-LAST:] < best - HALF * loss).all()) and not is_back(values, course)
    from_start = peak < LAST * len(course.blocks) // BLOCKS
    from_start = from_start or bool(series.steps[-1] < full(trace, name, series))
    if not (noise and stands_out and lasts) or from_start or falls(course) > 1:
        return None
    if longer_way(trace, name):
        return None
    return replace(trend, state="fallen back", why="", best=best, last=last)
