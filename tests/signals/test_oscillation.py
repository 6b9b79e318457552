import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.oscillation import oscillation, turning_points

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(20, 60), elements=st.integers(-9, 9).map(float))


def test_turning_points_by_hand():
    assert turning_points(np.array([0, 5, 1, 6, 5, 6, 0.0]), 2) == [0, 5, 1, 6, 0]
    assert turning_points(np.array([0, 5, 1, 6, 5, 6, 0.0]), 4.5) == [0, 6, 0]
    assert turning_points(np.array([3.0, 3, 3]), 1) == [3]


@pytest.mark.parametrize("samples", [30, 100, 1000])
def test_white_noise_does_not_oscillate(noise, samples):
    found = [oscillation(x) for x in noise(0, samples, 200)]
    assert np.mean([o.reversals >= 2 for o in found]) <= 0.02
    assert np.median([o.ratio for o in found]) == pytest.approx(1, abs=0.15)


def test_a_smooth_curve_has_no_reversals(noise):
    curve = 10 * np.exp(-np.linspace(0, 5, 200))
    found = [oscillation(curve + 0.5 * x) for x in noise(0, 200, 50)]
    assert {(o.reversals, o.amplitude) for o in found} == {(0, 0)}


def test_slow_swings_are_counted_and_measured(noise):
    wave = np.sin(2 * np.pi * 4 * np.linspace(0, 1, 400))
    found = oscillation(wave + 0.05 * noise(0, 400)[0])
    assert 6 <= found.reversals <= 8
    assert found.amplitude == pytest.approx(2, rel=0.15)


def test_growing_noise_is_a_ratio():
    x = np.random.default_rng(0).standard_normal(1000)
    x[500:] *= 5
    assert oscillation(x).ratio == pytest.approx(25, rel=0.3)


def test_silence_before_noise_is_an_infinite_ratio():
    assert oscillation(np.r_[np.zeros(50), [1.0, -1.0] * 25]).ratio == np.inf
    assert oscillation(np.zeros(50)).ratio == 1


def test_too_few_are_undecided():
    assert oscillation(np.arange(19.0)) is None


@given(VALUES, st.sampled_from([0.5, 4.0]), st.integers(-5, 5))
def test_shift_and_scale(x, scale, shift):
    plain, moved = oscillation(x), oscillation(scale * (x + shift))
    assert moved.reversals == plain.reversals
    assert moved.ratio == pytest.approx(plain.ratio)
    assert moved.amplitude == pytest.approx(scale * plain.amplitude)


@given(VALUES, st.integers(0, 60))
def test_values_that_are_no_numbers_change_nothing(x, place):
    assert oscillation(np.insert(x, min(place, x.size), np.nan)) == oscillation(x)


def test_nothing_raises_or_warns(edge_case):
    found = oscillation(edge_case)
    assert found is None or found.ratio >= 0
