import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.types import Series
from rlvitals.views.sparkline import EMPTY_BLOCK, NAN_BLOCK, SPARK_BLOCKS, sparkline


def series(values, steps=None):
    values = np.asarray(values, dtype=np.float64)
    steps = np.arange(len(values)) if steps is None else np.asarray(steps)
    return Series(steps.astype(np.int64), np.full(len(values), np.nan), values)


def test_a_ramp_uses_every_block_in_order():
    drawn = sparkline(series(range(8)), 0, 7, 80)
    assert drawn.line == SPARK_BLOCKS
    assert (drawn.low, drawn.high) == (0, 7)


def test_nan_is_a_visible_gap_not_a_low_value():
    assert sparkline(series([0, np.nan, np.inf, 1]), 0, 3, 80).line == "▁··█"


def test_a_constant_is_neither_low_nor_high():
    assert sparkline(series([2.0] * 4), 0, 3, 80).line == "▅▅▅▅"


@pytest.mark.parametrize("high", [5e-324, 1e-310, 1.7e308])
def test_the_ends_of_float64_are_drawn(high):
    assert len(sparkline(series([0.0, high] * 4), 0, 7, 80).line) == 8
    assert len(sparkline(series([-high, high] * 4), 0, 7, 80).line) == 8


def test_nothing_logged_in_the_second_half_is_blank():
    drawn = sparkline(series([0, 0, 1, 1]), 0, 7, 80)
    assert drawn.line == "▁█" + 2 * EMPTY_BLOCK


def test_uneven_steps_leave_no_holes_but_a_long_silence_does():
    steps = [0, 10, 21, 29, 41, 50]
    assert EMPTY_BLOCK not in sparkline(series([1, 2, 3, 4, 5, 6], steps), 0, 50, 6).line
    steps = [0, 1, 2, 3, 4, 100]
    assert EMPTY_BLOCK in sparkline(series([1, 2, 3, 4, 5, 6], steps), 0, 100, 6).line


def test_a_lone_spike_does_not_drown_in_its_mean():
    values = np.zeros(1000)
    values[500] = 7.0
    drawn = sparkline(series(values), 0, 999, 10)
    assert drawn.line == "▁▁▁▁▁█▁▁▁▁"
    assert drawn.high == 7.0


@pytest.mark.parametrize(("step", "column"), [(0, 0), (50, 5), (99, 9), (100, None), (-1, None)])
def test_the_mark_stands_over_its_step(step, column):
    assert sparkline(series(np.arange(100)), 0, 99, 10, mark=step).mark == column


@settings(deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=60),
    st.integers(1, 40),
)
def test_any_series_fits_its_width_and_shows_blocks_only(values, width):
    drawn = sparkline(series(values), 0, len(values) - 1, width)
    assert 1 <= len(drawn.line) <= width
    assert set(drawn.line) <= {*SPARK_BLOCKS, NAN_BLOCK, EMPTY_BLOCK}
    if np.isfinite(values).any():
        assert set(drawn.line) & set(SPARK_BLOCKS)
