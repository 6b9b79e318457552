import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.blocks import autocorrelation_time, block_length, block_means, decimate

pytestmark = pytest.mark.filterwarnings("error")
FLOATS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("memory", "samples"),
    [(0, 100), (0.5, 200), (0.8, 200), (0.9, 1000), (0.95, 2000), (0.98, 5000)],
)
def test_tau_is_that_of_the_process(noise, memory, samples):
    truth = (1 + memory) / (1 - memory)
    found = np.median([autocorrelation_time(x) for x in noise(memory, samples, 40)])
    assert 0.8 * truth <= found <= 1.6 * truth


@pytest.mark.parametrize("samples", [60, 100, 200])
def test_a_short_series_does_not_understate_a_long_memory(noise, samples):
    found = np.median([autocorrelation_time(x) for x in noise(0.98, samples, 200)])
    assert found >= samples / 6  # the raw estimate is below samples / 10


def test_tau_of_a_moving_average_is_its_window(moving_average):
    found = np.median([autocorrelation_time(x) for x in moving_average(20, 4000, 40)])
    assert 16 <= found <= 26


def test_a_bend_in_the_curve_is_not_taken_for_memory(noise):
    curve = 480 * (1 - np.exp(-np.arange(200) / 20))
    found = np.median([autocorrelation_time(curve + 40 * x) for x in noise(0, 200, 40)])
    assert found <= 4


def test_tau_of_a_long_series_is_that_of_its_start(noise):
    x = noise(0.9, 200_000)[0]
    assert 15 <= autocorrelation_time(x) <= 25


def test_tau_stays_between_one_and_the_length(edge_case):
    tau = autocorrelation_time(edge_case)
    assert 1 <= tau <= max(1, np.isfinite(edge_case).sum())
    assert 1 <= block_length(edge_case) <= max(1, np.isfinite(edge_case).sum())


def test_a_block_is_five_tau(noise):
    x = noise(0.5, 1000)[0]
    tau = autocorrelation_time(x)
    assert 5 * tau <= block_length(x) < 5 * tau + 1


def test_too_few_values_are_one_sample():
    assert autocorrelation_time(np.array([1.0, 5.0, 2.0])) == 3


def test_block_means_by_hand():
    np.testing.assert_array_equal(block_means(np.arange(7.0), 3), [2.0, 5.0])
    np.testing.assert_array_equal(block_means(np.array([1, np.nan, 3, np.inf]), 2), [2.0])
    assert block_means(np.arange(2.0), 3).size == 0
    np.testing.assert_array_equal(block_means(np.full(4, 1.5e308), 2), [1.5e308, 1.5e308])


@given(arrays(np.float64, st.integers(0, 80), elements=FLOATS), st.integers(1, 20))
def test_block_means_lie_within_their_blocks_and_newest_counts(x, length):
    means = block_means(x, length)
    assert means.size == x.size // length
    if means.size:
        assert means[-1] == pytest.approx(x[-length:].mean(), abs=1e-6)
        assert x.min() - 1e-6 <= means.min()
        assert means.max() <= x.max() + 1e-6


@given(arrays(np.float64, st.integers(0, 80), elements=st.floats()), st.integers(1, 20))
def test_decimating_keeps_every_nth_and_the_newest(x, window):
    kept = decimate(x, window)
    assert kept.size == -(-x.size // window)
    np.testing.assert_array_equal(kept[-1:], x[-1:])
    np.testing.assert_array_equal(kept, x[(x.size - 1) % window :: window] if x.size else x)


def test_decimating_a_moving_average_makes_it_white(moving_average):
    x = moving_average(20, 4000)[0]
    assert autocorrelation_time(decimate(x, 20)) < 1.6
    assert autocorrelation_time(x) > 12


@given(arrays(np.float64, st.integers(12, 80), elements=FLOATS), FLOATS)
def test_tau_knows_no_scale_and_no_holes(x, hole_at):
    tiny = np.finfo(np.float64).tiny  # eight times a subnormal number is another number
    assume(not ((x != 0) & (np.abs(x) < tiny)).any())
    tau = autocorrelation_time(x)
    assert autocorrelation_time(8 * x) == pytest.approx(tau, rel=1e-6)
    assert autocorrelation_time(np.insert(x, int(abs(hole_at)) % x.size, np.nan)) == tau
