import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.level import first_last_change, stays_above, stays_below

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(0, 60), elements=st.floats(-5, 5) | st.just(np.nan))


def test_by_hand():
    x = np.array([0, 0, 9, 0, 9, 9, 0, 0, 0, 0.0])
    assert stays_above(x, 1, window=4, share=0.75) == (2, 5)
    assert stays_above(x, 1, window=4, share=1.0) is None
    assert stays_below(-x, -1, window=4, share=0.75) == (2, 5)


def test_nan_is_on_neither_side():
    x = np.array([9, np.nan, 9, np.nan, 9, np.nan, 0.0, 0, 0, 0])
    assert stays_above(x, 1, window=6, share=1) == (0, 4)
    assert stays_above(np.full(20, np.nan), 1, window=5, share=0.1) is None
    assert stays_below(np.full(20, np.nan), 1, window=5, share=0.1) is None
    mostly = np.array([9, np.nan, np.nan, np.nan, np.nan, np.nan])
    assert stays_above(mostly, 1, window=6, share=0.5) is None


def test_infinity_is_above():
    assert stays_above(np.full(5, np.inf), 1, window=5, share=1) == (0, 4)


@given(VALUES, st.integers(1, 12), st.floats(0.05, 1))
def test_agrees_with_a_loop(x, window, share):
    held = []
    for i in range(x.size - window + 1):
        part = x[i : i + window]
        known, over = int((~np.isnan(part)).sum()), int((part > 1).sum())
        if over and over >= share * known and 2 * known >= window:
            held.append(i)
    over = np.flatnonzero(x > 1)
    expected = None
    if held:
        inside = over[(over >= held[0]) & (over < held[-1] + window)]
        expected = (inside[0], inside[-1])
    assert stays_above(x, 1, window, share) == expected


@given(VALUES, st.integers(1, 12))
def test_below_is_above_of_the_mirror(x, window):
    assert stays_below(x, 1, window, 0.5) == stays_above(-x, -1, window, 0.5)


def test_first_and_last_by_hand():
    assert first_last_change(np.arange(10.0)) == (0.5, 8.5)
    robust = first_last_change(np.r_[np.ones(19), 1e6, np.zeros(60), np.full(20, 3.0)])
    assert robust == (1, 3)
    assert first_last_change(np.arange(3.0)) is None
    assert first_last_change(np.arange(10.0), share=0.6) is None
    assert first_last_change(np.full(20, np.nan)) is None


def test_nothing_raises_or_warns(edge_case):
    stays_above(edge_case, 0, 3, 0.5)
    stays_below(edge_case, 0, 3, 0.5)
    found = first_last_change(edge_case)
    assert found is None or np.isfinite(found).all()
