import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.rolling import rolling_median

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(0, 60), elements=st.floats(-5, 5) | st.just(np.nan))


def test_by_hand():
    x = np.array([1.0, 9.0, 2.0, np.nan, 3.0, np.inf])
    np.testing.assert_array_equal(rolling_median(x, 3), [1, 5, 2, 5.5, 2.5, 3])
    np.testing.assert_array_equal(
        rolling_median(x, 3, min_count=3), [np.nan] * 2 + [2] + [np.nan] * 3
    )


@given(VALUES, st.integers(1, 9))
def test_agrees_with_a_loop(x, window):
    for i, found in enumerate(rolling_median(x, window)):
        part = x[max(i + 1 - window, 0) : i + 1]
        part = part[np.isfinite(part)]
        assert found == pytest.approx(np.median(part) if part.size else np.nan, nan_ok=True)


def test_nothing_raises_or_warns(edge_case):
    assert rolling_median(edge_case, 5).size == edge_case.size


def test_long_series_are_done_in_parts():
    x = np.arange(40_000.0)
    np.testing.assert_array_equal(rolling_median(x, 3)[2:], x[1:-1])
