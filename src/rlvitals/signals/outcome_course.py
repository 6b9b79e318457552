"""The course of an outcome by blocks: what it gained, and what of that is lost at its end."""

import math

import numpy as np

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array, clip_extremes, clip_outliers
from rlvitals.signals.oscillation import turning_points
from rlvitals.signals.spread import NORMAL_MAD, median, noise_sd
from rlvitals.startup.fast_dataclass import dataclass

MIN_BLOCK_SD = 3.0  # standard deviations of a block's mean
FALL_SHARE = 0.5  # of the range, of a fall; of the gain, of a loss
COURSE_BLOCKS = 20
CLEAR_GAIN_SD = 5.0  # standard deviations of a difference of blocks
COURSE_END_BLOCKS = 2  # blocks, a tenth of the run


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
        is_gain = self.gain > max(material, CLEAR_GAIN_SD * self.noise)
        return is_gain and self.loss < FALL_SHARE * self.total_gain

    def ends_falling(self, count: int) -> bool:
        """Return True if each of the last `count` blocks lies below the one before."""
        return bool((np.diff(self.blocks[-count:]) < 0).all())


@dataclass(frozen=True, slots=True)
class LateLoss:
    """The best tenth of an outcome and its last: what a run gained, and lost until its end.

    Each caller states which share of the gain, and how many standard errors, it asks for.
    """

    course: Course  # with the largest and the smallest value clipped
    best: float
    last: float
    gain: float  # from the level that the run begins with to the best tenth
    error: float  # standard error of the loss by the differences between neighbouring values
    swing: float  # the same by those between neighbouring blocks: slow noise is in it
    peak: float  # share of the run before the best tenth
    lasts: bool  # the end lies in the lower half of the loss, and the newest values do as well

    @property
    def loss(self) -> float:
        """Return how far the last tenth lies below the best one, at least 0."""
        return self.best - self.last

    @property
    def share(self) -> float:
        """Return the share of the gain that is lost: 0 without a loss, infinite without a gain."""
        if self.loss <= 0:
            return 0.0
        return self.loss / self.gain if self.gain > 0 else math.inf

    def loss_in_fall(self, count: int) -> float:
        """Return what the last block lies below the best tenth where the last `count` blocks fall.

        0 where they do not, or where less than half of the gain is gone; at most the gain.
        """
        loss = self.best - float(self.course.blocks[-1])
        is_fall = self.course.ends_falling(count) and loss >= FALL_SHARE * self.gain
        return min(loss, self.gain) if is_fall else 0.0


def course_of(values: Array) -> Course:
    """Cut finite values [n] of an outcome, up = better, into about twenty blocks.

    One outlier at either end is clipped: it is no level.
    """
    width = max(1, len(values) // COURSE_BLOCKS)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near 1e308
        blocks = block_means(clip_outliers(values), width)
        peak = int(blocks.argmax())
        best, end = float(blocks[peak]), float(blocks[-COURSE_END_BLOCKS:].mean())
        noise = (noise_sd(values) or 0.0) / float(np.sqrt(width))
        # The level that a run begins with, where the first block is proven to be above it.
        first_block = float(blocks[0])
        count = max(width // 4, 1)
        level = float(values[:count].mean())
        error = (noise_sd(values) or 0.0) / float(np.sqrt(count))
        first_level = level if first_block - level > MIN_BLOCK_SD * error else first_block
        start = min(float(blocks[0]), first_level)
    gain = best - float(blocks[0])
    return Course(blocks, width, peak, gain, best - start, best - end, noise)


def is_back(values: Array, course: Course) -> bool:
    """See a dip that ended within the last block: the newest values have climbed out of it."""
    newest = median(values[-max(5, course.width // 2) :]) or 0.0
    best, low = float(course.blocks[course.peak]), float(course.blocks[course.peak :].min())
    return newest - low > 0.75 * (best - low)  # of the dip's depth


def falls(course: Course, min_fall: float = 0.0) -> int:
    """Count how often an outcome lost half of its range, after it had come back from the last.

    A fall of less than `min_fall`, in the outcome's unit, does not count.
    """
    size = max(FALL_SHARE * float(np.ptp(course.blocks)), min_fall)
    turns = turning_points(course.blocks, max(size, MIN_BLOCK_SD * course.noise))
    return int((np.diff(turns) < 0).sum())


def late_loss(values: Array) -> LateLoss:
    """Return what finite values [n], n >= 10, of an outcome lost after their best tenth.

    Higher is better. A tenth is the mean of so many neighbouring blocks of `course_of`; the largest
    and the smallest value are clipped to the next in rank.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        course = course_of(clip_extremes(values))
        count = max(round(len(course.blocks) / 10), COURSE_END_BLOCKS)
        levels = np.convolve(course.blocks, np.full(count, 1 / count), "valid")
        changes = np.abs(np.diff(course.blocks))
        # Differences of independent values, and of blocks, scatter by sqrt(2) more than each.
        error = float(np.diff(values).std()) / math.sqrt(course.width * count)
    swing = NORMAL_MAD * float(np.median(changes)) / math.sqrt(count)
    peak, best, last = int(levels.argmax()), float(levels.max()), float(levels[-1])
    low = bool((levels[-COURSE_END_BLOCKS:] < best - FALL_SHARE * (best - last)).all())
    return LateLoss(
        course=course,
        best=best,
        last=last,
        gain=best - float(course.blocks[course.peak]) + course.total_gain,
        error=error,
        swing=swing,
        peak=peak / len(course.blocks),
        lasts=low and not is_back(values, course),
    )
