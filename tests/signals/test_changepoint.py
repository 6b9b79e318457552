import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.changepoint import change_point

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(20, 60), elements=st.integers(-9, 9).map(float))


def test_a_clean_step_is_found_where_it_is():
    found = change_point(np.r_[np.zeros(30), np.full(30, 2.0)])
    assert (found.index, found.before, found.after, found.size) == (30, 0, 2, math.inf)


@pytest.mark.parametrize(("memory", "shift", "least"), [(0, 4, 0.95), (0.5, 6, 0.8)])
def test_a_step_in_noise_is_found(noise, memory, shift, least):
    step = np.where(np.arange(200) < 120, 0, shift)
    found = [change_point(x + step) for x in noise(memory, 200, 50)]
    near = [c for c in found if c and abs(c.index - 120) <= 3 and c.size > 0]
    assert len(near) >= least * 50
    assert np.median([c.after - c.before for c in near]) == pytest.approx(shift, rel=0.1)


@pytest.mark.parametrize("samples", [30, 100, 300])
@pytest.mark.parametrize("memory", [0, 0.5, 0.9, 0.98])
def test_noise_has_no_level_shift(noise, memory, samples):
    assert sum(change_point(x) is not None for x in noise(memory, samples, 200)) <= 6


@pytest.mark.parametrize("memory", [0, 0.8])
def test_a_smooth_trend_is_no_level_shift(noise, memory):
    t = np.linspace(0, 1, 200)
    curves = (10 * t, 10 * (1 - np.exp(-t / 0.2)), 10 / (1 + np.exp((0.5 - t) / 0.1)))
    found = [change_point(curve + x) for curve in curves for x in noise(memory, 200, 50)]
    assert sum(c is not None for c in found) <= 6


def test_a_moving_average_has_no_level_shift(moving_average):
    assert sum(change_point(x) is not None for x in moving_average(100, 300, 200)) <= 6


def test_the_index_counts_in_the_values_given():
    x = np.r_[np.zeros(30), np.full(30, 2.0)]
    holed = np.insert(x, [0, 10, 20], np.nan)
    assert change_point(holed).index == 33


@given(VALUES, st.sampled_from([0.5, 4.0]), st.integers(-5, 5))
def test_shift_and_scale(x, scale, shift):
    plain, moved = change_point(x), change_point(scale * (x + shift))
    assert (plain is None) == (moved is None)
    if plain:
        assert moved.index == plain.index
        assert moved.after == pytest.approx(scale * (plain.after + shift))


def test_too_few_are_undecided():
    assert change_point(np.r_[np.zeros(9), np.ones(10)]) is None


def test_nothing_raises_or_warns(edge_case):
    found = change_point(edge_case)
    assert found is None or 0 < found.index < edge_case.size
