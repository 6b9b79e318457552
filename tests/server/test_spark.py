"""The sparkline of the fleet: means of equal ranges of steps."""

import math

import numpy as np

from rlvitals.server import fleet_groups
from rlvitals.server.fleet_line import Summary
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


def seed(name, values, last, state="finished"):
    """Return the line of a run whose outcome passes through `values` until step `last`."""
    low, high = min(values), max(values)
    heights = tuple(round(SPARK_LEVELS * (value - low) / (high - low or 1)) for value in values)
    return Summary(
        f"a/seed{name}", name, lamp="good", state=state, outcome="return", value=str(values[-1]),
        spark=heights, spark_values=(low, high), spark_steps=(0, last),
    )  # fmt: skip


def test_the_curve_of_a_group_does_not_dip_where_the_best_seed_ends():
    rows = [seed("1", (0, 100), 500), seed("2", (0, 60), 1000), seed("3", (0, 60), 1000)]
    (group,) = fleet_groups.group(rows, ())
    assert list(group.spark) == sorted(group.spark)
    assert list(group.spark_high) == sorted(group.spark_high)
    assert group.spark_high[-1] == SPARK_LEVELS
    assert None not in group.spark


def test_a_running_seed_joins_the_curve_of_its_group_when_it_has_come_as_far():
    ended = [seed("1", (0, 60), 1000), seed("2", (0, 60), 1000)]
    behind, level = (seed("3", (0, 10), last, "running") for last in (400, 1000))
    (group,), (expected,) = (fleet_groups.group(rows, ()) for rows in ([*ended, behind], ended))
    assert (group.spark, group.spark_low) == (expected.spark, expected.spark_low)
    (group,) = fleet_groups.group([*ended, level], ())
    assert group.spark_low[-1] < group.spark[-1] < group.spark_high[-1] == SPARK_LEVELS


def test_the_curve_of_a_group_ends_where_less_than_half_of_it_goes_on():
    rows = [seed("1", (0, 50), 500), seed("2", (0, 50), 500), seed("3", (0, 50, 0), 1000)]
    (group,) = fleet_groups.group(rows, ())
    assert group.spark[-1] == SPARK_LEVELS
