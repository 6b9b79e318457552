import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.shape import shape, tail_ratio

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(20, 60), elements=st.integers(-9, 9).map(float))


def pictures(samples):
    t = np.linspace(0, 1, samples)
    return {
        "converged": 1.5 + 1.7 * np.exp(-t / 0.1),
        "still falling": 3.2 - 1.7 * t,
        "still rising": 1 + t,
        "unstable": 2 + 0.8 * np.sin(2 * np.pi * 6 * t),
        "flat": np.full(samples, 2.0),
    }


@pytest.mark.parametrize("samples", [60, 200, 2000])
@pytest.mark.parametrize("name", pictures(60))
def test_the_pictures_are_told_apart(noise, name, samples):
    curve = pictures(samples)[name]
    found = [shape(curve + 0.03 * x) for x in noise(0, samples, 20)]
    assert sum(f == name for f in found) >= 19 or (name == "flat" and set(found) <= {"flat", None})


@pytest.mark.parametrize("samples", [30, 100, 1000])
def test_white_noise_is_never_converged_and_hardly_ever_unstable(noise, samples):
    found = [shape(x) for x in noise(0, samples, 100)]
    assert found.count("converged") == 0
    assert found.count("unstable") <= 2
    if samples >= 100:
        assert found.count("flat") >= 90


@pytest.mark.parametrize("memory", [0.9, 0.98])
def test_slow_noise_has_no_shape(noise, memory):
    found = [shape(x) for x in noise(memory, 300, 100)]
    assert sum(f in {"converged", "unstable"} for f in found) <= 5


@pytest.mark.parametrize("count", [20, 21, 40, 400])
@pytest.mark.parametrize(
    "cycle", [(2.0, 5.3, 1.8, 4.2), (3.0, 1.0), (2.0, 5.0, 2.5, 6.0, 1.5, 4.0)]
)
def test_a_loss_that_swings_from_value_to_value_is_unstable(cycle, count):
    curve = np.resize(cycle, count)
    assert shape(curve) == "unstable"
    assert shape(1e-3 * curve) == "unstable"  # whatever its unit


@pytest.mark.parametrize("samples", [100, 1000])
def test_noise_that_is_large_beside_the_loss_does_not_alternate(noise, samples):
    found = [shape(9 + 3 * x) for x in noise(0, samples, 200)]
    assert found.count("unstable") <= 2


def test_small_alternation_is_not_unstable():
    assert shape(np.resize([2.0, 2.2], 100)) == "flat"


def test_growing_noise_is_unstable():
    x = 2 + 0.02 * np.random.default_rng(0).standard_normal(200)
    x[100:] += np.random.default_rng(1).standard_normal(100)
    assert shape(x) == "unstable"


def test_a_loss_that_rose_to_its_plateau_has_not_converged(noise):
    x = -1.7 * np.exp(-np.linspace(0, 10, 200)) + 0.02 * noise(0, 200)[0]
    assert shape(x) == "flat"


def test_too_few_have_no_shape():
    assert shape(np.arange(19.0)) is None
    assert shape(np.full(100, np.nan)) is None
    assert shape(np.zeros(20)) == "flat"


def test_tail_ratio_is_the_formula():
    x = np.array([9.0, 9, 9] + [1.0, 1.02] * 5)
    assert tail_ratio(x) == pytest.approx(0.01 / 1.01)
    assert tail_ratio(-x) == pytest.approx(0.01 / 1.01)
    assert tail_ratio(x, count=4) == pytest.approx(0.01 / 1.01)


def test_tail_ratio_of_a_mean_near_zero_is_undecided():
    assert tail_ratio(np.array([1.0, -1.0] * 5)) is None
    assert tail_ratio(np.zeros(10)) is None
    assert tail_ratio(np.full(10, -2.0)) == 0
    assert tail_ratio(np.arange(9.0)) is None
    assert tail_ratio(np.array([np.nan] * 9 + [1.0])) is None


@given(VALUES, st.sampled_from([0.5, 4.0]))
def test_scale_changes_no_shape(x, scale):
    assert shape(scale * x) == shape(x)


@given(VALUES, st.integers(0, 60))
def test_values_that_are_no_numbers_change_nothing(x, place):
    holed = np.insert(x, min(place, x.size), np.inf)
    assert shape(holed) == shape(x)
    assert tail_ratio(holed) == tail_ratio(x)


def test_nothing_raises_or_warns(edge_case):
    shape(edge_case)
    found = tail_ratio(edge_case)
    assert found is None or found >= 0
