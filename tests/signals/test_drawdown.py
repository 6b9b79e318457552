import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.drawdown import drawdown

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(20, 60), elements=st.integers(-9, 9).map(float))


def test_by_hand():
    x = np.repeat(np.r_[np.arange(11.0), np.full(9, 2.5)], 3)
    found = drawdown(x)
    assert (found.first, found.best, found.last) == (0, 10, 2.5)
    assert found.index == 32
    assert found.share == pytest.approx(0.75)


def test_a_collapse_is_large_and_a_recovered_dip_is_none(noise):
    t = np.linspace(0, 1, 300)
    rise = 100 * np.minimum(t / 0.5, 1)
    collapse = np.where(t > 0.8, 10, rise) + 10 * noise(0, 300)[0]
    dip = rise - 90 * np.exp(-(((t - 0.6) / 0.05) ** 2)) + 10 * noise(0, 300)[0]
    assert drawdown(collapse).share > 0.8
    assert drawdown(collapse).size > 15
    assert drawdown(dip).share < 0.2


@pytest.mark.parametrize("memory", [0, 0.9, 0.98])
def test_noise_is_small(noise, memory):
    sizes = [drawdown(x).size for x in noise(memory, 200, 200)]
    assert sum(s > 5 for s in sizes) <= 1
    assert np.quantile(sizes, 0.95) < 3


def test_a_series_that_only_fell_has_no_gain_to_lose():
    assert drawdown(-np.arange(60.0)).share == np.inf
    assert drawdown(np.arange(60.0)).share == 0
    assert drawdown(np.full(60, 3.0)).size == 0
    assert drawdown(np.arange(19.0)) is None


@given(VALUES, st.sampled_from([0.5, 4.0]), st.integers(-5, 5), st.integers(0, 60))
def test_shift_scale_and_holes(x, scale, shift, place):
    plain, moved = drawdown(x), drawdown(scale * (x + shift))
    assert moved.share == pytest.approx(plain.share, rel=1e-6, abs=1e-9)
    assert moved.best == pytest.approx(scale * (plain.best + shift), abs=1e-9)
    holed = drawdown(np.insert(x, min(place, x.size), np.nan))
    assert (holed.share, holed.size) == (plain.share, plain.size)


def test_nothing_raises_or_warns(edge_case):
    found = drawdown(edge_case)
    assert found is None or found.share >= 0
