"""Whether a mean over fresh prompts rises, levels off or stays: a test for batch rewards.

Each batch of a language model's training draws new prompts, so the noise of its mean reward is new
at each point, unlike that of a mean over the last hundred episodes. The level of a stretch is
then known to within the noise over the root of its points, or as well as neighbouring stretches
agree, whichever is worse. Nothing here depends on where zero is, or on the unit.
"""

import math
from dataclasses import dataclass

import numpy as np

from rlvitals.signals.finite import ROUNDING, Array
from rlvitals.signals.spread import noise_sd

MIN_POINTS = 20  # fewer hold no block that is a level
BLOCKS, MIN_BLOCK = 10, 3  # stretches that the levels are taken over, and points in each at least
LATE = 3  # blocks at the end that are the late level
PROVEN = 3.5  # standard errors: one in two thousand of two comparisons, by chance
SURE = 2.0  # standard errors of the interval


@dataclass(frozen=True, slots=True)
class Gain:
    """The levels of a series over its first and last stretches, in its own unit."""

    first: float  # the lower of the first block and the first three
    last: float  # the last three blocks
    best: float  # the highest three neighbouring blocks
    error: float  # standard error of a difference between two levels of three blocks
    proven: bool  # the last level is above the first beyond what chance gives
    goes_on: bool  # it is above the middle's as well
    falls: bool  # the last level is below the first, or below the best, beyond chance

    @property
    def size(self) -> float:
        """Return the change from the first level to the last."""
        return self.last - self.first

    @property
    def most(self) -> float:
        """Return the high end of the change's interval."""
        return self.size + SURE * self.error


def gain(values: Array) -> Gain | None:
    """Compare the first and the last stretches of finite `values` [n]; None for fewer than 20."""
    if len(values) < MIN_POINTS:
        return None
    count = min(BLOCKS, len(values) // MIN_BLOCK)
    course = np.array([block.mean() for block in np.array_split(values, count)])
    scatter = (noise_sd(values) or 0.0) / math.sqrt(len(values) / count)
    rounding = ROUNDING * float(np.abs(values).max())  # means of equal values differ by it
    noise = max(scatter, noise_sd(course) or 0.0, rounding)
    levels = np.convolve(course, np.full(LATE, 1 / LATE), mode="valid")
    # Levels of three blocks, and of one against three.
    three, one = noise * math.sqrt(2 / LATE), noise * math.sqrt(1 + 1 / LATE)
    early, start, last = float(levels[0]), float(course[0]), float(levels[-1])
    rose = last - early > PROVEN * three or last - start > PROVEN * one
    best = float(levels.max())
    middle = float(levels[len(levels) // 2])
    lost = best - last > (PROVEN + 1) * three  # the best is chosen for being best
    return Gain(
        first=min(early, start),
        last=last,
        best=best,
        error=three,
        proven=bool(rose and last > start),
        goes_on=last - middle > SURE * three,
        falls=bool(lost or early - last > PROVEN * three),
    )
