import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.spike import Spike, spikes

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(0, 80), elements=st.floats(0, 1e3) | st.just(np.nan))


def test_by_hand():
    x = np.array([1.0, 2, 1, 2, 1, 2, 30, 1, 2, 1, 400])
    assert spikes(x, factor=8, floor=0.5, window=6) == (
        Spike(6, 30, 1.5, 20),
        Spike(10, 400, 1.5, pytest.approx(400 / 1.5)),
    )


def test_below_the_floor_nothing_counts():
    x = np.array([1e-9] * 20 + [1e-3])
    assert spikes(x, factor=8, floor=0.05) == ()
    assert len(spikes(x, factor=8, floor=1e-4)) == 1


def test_a_new_level_stops_being_a_spike():
    x = np.array([1.0] * 50 + [20.0] * 50)
    found = [s.index for s in spikes(x, factor=5, floor=0, window=20)]
    assert found == list(range(50, 60))  # until half the window has seen it


def test_the_first_points_have_no_baseline():
    assert spikes(np.array([1.0, 1.0, 1.0, 1.0, 99.0]), factor=2, floor=0) == ()
    assert spikes(np.array([1.0, np.nan, 1.0, 1.0, 1.0, 99.0]), factor=2, floor=0) == ()
    assert spikes(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 99.0]), factor=2, floor=0)


def test_infinity_is_a_spike_and_nan_is_none():
    x = np.array([1.0] * 10 + [np.inf, np.nan, 1.0])
    (found,) = spikes(x, factor=10, floor=0)
    assert (found.index, found.value, found.ratio) == (10, np.inf, np.inf)


def test_a_zero_baseline_has_no_ratio():
    (found,) = spikes(np.array([0.0] * 10 + [3.0]), factor=10, floor=1)
    assert found == Spike(10, 3, 0, np.inf)


def test_exponential_noise_has_few_spikes():
    x = np.random.default_rng(0).exponential(1, 5000)
    assert len(spikes(x, factor=10, floor=0)) <= 0.004 * 5000


@given(VALUES, st.integers(0, 80), st.integers(5, 30))
def test_what_comes_later_changes_nothing(x, cut, window):
    whole = spikes(x, factor=3, floor=1, window=window)
    part = spikes(x[:cut], factor=3, floor=1, window=window)
    assert part == tuple(s for s in whole if s.index < cut)


@given(VALUES, st.sampled_from([0.5, 4.0]))
def test_scale(x, scale):
    plain = spikes(x, factor=3, floor=1)
    scaled = spikes(scale * x, factor=3, floor=scale)
    assert [(s.index, s.ratio) for s in scaled] == [(s.index, s.ratio) for s in plain]


def test_nothing_raises_or_warns(edge_case):
    for found in spikes(edge_case, factor=2, floor=0):
        assert found.value > found.baseline


def test_many_points_use_bounded_memory():
    assert len(spikes(np.arange(1, 100_001.0), factor=1, floor=0, window=5)) == 99_995
