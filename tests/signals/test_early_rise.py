"""An early rise that lasts is measured against all later swings."""

import numpy as np
import pytest

from rlvitals.signals.early_rise import early_rise_size

pytestmark = pytest.mark.filterwarnings("error")
PROVEN = 4.0


def early(count=240, seed=0, sd=1.0):
    """Return a rise by 20 within an eighth of the series, level after it: [count]."""
    course = np.interp(np.linspace(0, 1, count), [0, 0.125, 1], [0, 20, 20])
    return course + sd * np.random.default_rng(seed).normal(size=count)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e300])
def test_neither_offset_nor_unit_changes_the_size(scale):
    size = early_rise_size(early())
    assert size > PROVEN
    assert early_rise_size(scale * early()) == pytest.approx(size)
    assert early_rise_size(early() - 1e4) == pytest.approx(size)


@pytest.mark.parametrize("every", [2, 5])
def test_fewer_rows_tell_the_same(every):
    assert all(early_rise_size(early(seed=s)[::every]) > PROVEN for s in range(20))


@pytest.mark.parametrize("window", [2, 5, 20])
def test_smoothed_rows_tell_the_same(window):
    for seed in range(20):
        smooth = np.convolve(early(seed=seed), np.ones(window) / window, "valid")
        assert early_rise_size(smooth) > PROVEN


@pytest.mark.parametrize("row", [0, 1, 100, 239])
@pytest.mark.parametrize("value", [-1e9, 1e9])
def test_one_outlier_tells_the_same(row, value):
    values = early()
    values[row] = value
    assert early_rise_size(values) > PROVEN


@pytest.mark.parametrize(
    ("memory", "count"), [(0.0, 20), (0.5, 20), (0.0, 60), (0.9, 60), (0.0, 200), (0.9, 200)]
)
def test_a_level_with_a_short_memory_has_no_early_rise(noise, memory, count):
    sizes = [early_rise_size(run) for run in noise(memory, count, runs=500)]
    assert np.mean(np.array(sizes) > PROVEN) <= 0.02


@pytest.mark.parametrize("count", [60, 200])
def test_nor_has_a_moving_average_or_a_long_tail(moving_average, count):
    sizes = [early_rise_size(run) for run in moving_average(count // 10, count, runs=500)]
    assert np.mean(np.array(sizes) > PROVEN) <= 0.02
    tails = -np.random.default_rng(1).lognormal(size=(500, count))
    assert np.mean([early_rise_size(run) > PROVEN for run in tails]) <= 0.02


def test_what_is_lost_again_or_came_late_is_no_early_rise():
    lost = early()
    lost[180:] -= 10
    late = np.interp(np.arange(240), [0, 120, 150, 239], [0, 0, 20, 20])
    for values in (lost, late, -early(), np.zeros(240), early()[:15]):
        assert early_rise_size(values) == 0


def test_without_noise_the_size_is_large():
    assert early_rise_size(np.repeat([0.0, 1.0], [20, 300])) > 100


def test_no_edge_case_raises(edge_case):
    assert early_rise_size(edge_case) >= 0
