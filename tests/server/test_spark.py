"""The sparkline of the fleet: means of equal ranges of steps."""

import math

import numpy as np

from rlvitals.server.run_summary import SPARK_COLUMNS, SPARK_LEVELS, spark
from rlvitals.types import Series


def series(values):
    steps = np.arange(len(values), dtype=np.int64)
    return Series(steps, steps.astype(float), np.asarray(values, float))


def test_each_height_is_the_mean_of_its_range_the_last_one_too():
    heights, (low, high) = spark(series([step % 7 for step in range(70_000)]))
    assert len(heights) == SPARK_COLUMNS
    assert high - low < 0.02  # the last row alone would be 3 less or more than the mean of all
    assert abs(low - 3) < 0.02
    heights, values = spark(series(np.arange(SPARK_COLUMNS)))
    assert (heights[0], heights[-1], values) == (0, SPARK_LEVELS, (0.0, SPARK_COLUMNS - 1))


def test_what_is_not_finite_is_a_gap_and_no_sum_overflows():
    values = [1e308] * 480
    values[100:110] = [math.nan] * 10
    heights, ends = spark(series(values))
    assert heights[10] is None
    assert set(heights) - {None} == {SPARK_LEVELS // 2}
    assert np.allclose(ends, 1e308)
    assert spark(series([math.nan, math.inf])) == ((), (0.0, 0.0))
