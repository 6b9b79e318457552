import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.ema import ema

pytestmark = pytest.mark.filterwarnings("error")
ALPHAS = st.floats(1e-3, 1)


def reference(values, alpha):
    total, weight, out = 0.0, 0.0, []
    for value in values:
        if np.isfinite(value):
            total = (1 - alpha) * total + alpha * value
            weight = (1 - alpha) * weight + alpha
        out.append(total / weight if weight else np.nan)
    return np.array(out)


def test_by_hand():
    np.testing.assert_allclose(ema(np.array([1.0, 2.0, 4.0]), 0.5), [1, 5 / 3, 3])


@given(arrays(np.float64, st.integers(0, 300), elements=st.floats(-1e6, 1e6)), ALPHAS)
def test_equals_the_plain_recursion(x, alpha):
    np.testing.assert_allclose(ema(x, alpha), reference(x, alpha), rtol=1e-7, atol=1e-3)


@given(arrays(np.float64, st.integers(1, 100), elements=st.floats(-1e6, 1e6)), ALPHAS)
def test_stays_within_what_was_seen(x, alpha):
    smooth = ema(x, alpha)
    slack = 1e-9 * (1 + np.abs(x).max())
    assert (smooth <= np.maximum.accumulate(x) + slack).all()
    assert (smooth >= np.minimum.accumulate(x) - slack).all()


@given(arrays(np.float64, st.integers(0, 100), elements=st.floats(-10, 10)), st.integers(0, 100))
def test_holes_carry_the_last_average_over(x, place):
    place = min(place, x.size)
    holed = ema(np.insert(x, place, np.nan), 0.1)
    np.testing.assert_allclose(np.delete(holed, place), ema(x, 0.1))
    expected = holed[place - 1] if place else np.nan
    np.testing.assert_equal(holed[place], expected)


@given(arrays(np.float64, st.integers(2, 100), elements=st.floats(-10, 10)), st.integers(1, 100))
def test_is_causal(x, cut):
    np.testing.assert_allclose(ema(x, 0.2)[:cut], ema(x[:cut], 0.2), atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-4, 0.01, 0.5, 0.999999, 1.0])
def test_long_series(alpha):
    x = np.random.default_rng(0).standard_normal(20_000) + 5
    np.testing.assert_allclose(ema(x, alpha), reference(x, alpha), rtol=1e-9)


def test_nothing_raises_or_warns(edge_case):
    smooth = ema(edge_case, 0.1)
    assert smooth.size == edge_case.size
    seen = np.cumsum(np.isfinite(edge_case)) > 0
    assert np.isfinite(smooth[seen]).all()
    assert np.isnan(smooth[~seen]).all()


@pytest.mark.parametrize("alpha", [0, -1, 1.5, np.nan])
def test_a_weight_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        ema(np.arange(3.0), alpha)
