"""Average numbers of rollouts or groups over the rows of each step."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.rollouts.rollout_columns import NO_STEP, Rollouts
from rlvitals.types import Series


class StepMeans:
    """Means over the rows of each step: `steps` int64 [s], `step_of_row` int64 [n] into them."""

    def __init__(self, steps: NDArray[np.int64], step_of_row: NDArray[np.int64]) -> None:
        """Take the steps, and the number of each row's step."""
        self.steps, self.step_of_row = steps, step_of_row

    def of(self, values: NDArray[np.generic]) -> Series:
        """Return the mean at each step that has a number; NaN is left out."""
        numbers = values.astype(np.float64)
        finite = np.isfinite(numbers)
        count = self.sums(finite)
        total = self.sums(np.where(finite, numbers, 0.0))
        some = count > 0
        return to_series(self.steps[some], total[some] / count[some])

    def sums(self, values: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the sum of the values of each step, float64 [s]."""
        sums = np.bincount(self.step_of_row, values.astype(np.float64), len(self.steps))
        return sums.astype(np.float64)

    def extreme(self, values: NDArray[np.generic], pick: np.ufunc) -> Series:
        """Return the lowest or highest value at each step."""
        numbers = values.astype(np.float64)
        result = np.full(len(self.steps), np.inf if pick is np.minimum else -np.inf)
        pick.at(result, self.step_of_row, numbers)
        return to_series(self.steps, result)


def training_rows(rollouts: Rollouts) -> tuple[NDArray[np.int64], StepMeans]:
    """Return the indices of the training's rollouts that have a step, and means over them."""
    indices = rollouts.indices(rollouts.training & (rollouts.rows["step"] != NO_STEP))
    steps, step_of_row = np.unique(rollouts.rows["step"][indices], return_inverse=True)
    return indices, StepMeans(steps, step_of_row)


def to_series(steps: NDArray[np.int64], values: NDArray[np.float64]) -> Series:
    """Return a series without times."""
    return Series(steps, np.full(len(steps), np.nan), values)
