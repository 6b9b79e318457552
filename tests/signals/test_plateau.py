import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.plateau import plateau_start

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(20, 60), elements=st.integers(-9, 9).map(float))


def climb(samples, share):
    return 20 + 480 * (1 - np.exp(-np.arange(samples) / (share * samples)))


@pytest.mark.parametrize("samples", [100, 300, 2000])
def test_a_saturated_curve_has_its_plateau_after_the_climb(noise, samples):
    found = [plateau_start(climb(samples, 0.1) + 20 * x) for x in noise(0, samples, 20)]
    assert all(f is not None for f in found)
    assert 0.1 * samples <= np.median(found) <= 0.4 * samples


def test_a_step_and_then_nothing():
    x = np.r_[np.zeros(20), np.ones(60)]
    assert 20 <= plateau_start(x) <= 24


def test_a_fall_levels_off_too(noise):
    x = -climb(300, 0.1) + 20 * noise(0, 300)[0]
    assert plateau_start(x) is not None


def test_what_still_rises_has_no_plateau(noise):
    line = np.linspace(0, 500, 200)
    assert not any(plateau_start(line + 20 * x) for x in noise(0, 200, 50))


@pytest.mark.parametrize("memory", [0, 0.9, 0.98])
def test_noise_has_no_plateau(noise, memory):
    found = [plateau_start(x) for x in noise(memory, 200, 100)]
    assert sum(f is not None for f in found) <= 3


def test_a_plateau_that_noise_hides_is_undecided(noise):
    assert plateau_start(climb(40, 0.1) + 400 * noise(0, 40)[0]) is None


def test_the_index_counts_in_the_values_given():
    x = np.r_[np.zeros(20), np.ones(60)]
    assert plateau_start(np.insert(x, [0, 5], np.nan)) == plateau_start(x) + 2


@given(VALUES, st.sampled_from([0.5, -4.0]))
def test_scale_and_sign(x, scale):
    assert plateau_start(scale * x) == plateau_start(x)


def test_nothing_raises_or_warns(edge_case):
    found = plateau_start(edge_case)
    assert found is None or 0 <= found < edge_case.size
