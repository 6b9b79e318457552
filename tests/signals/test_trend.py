from dataclasses import astuple

import numpy as np
import pytest
from effort import cases
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.signals.trend import trend

pytestmark = pytest.mark.filterwarnings("error")
SERIES = st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=60).map(np.array)


@pytest.mark.soak
@pytest.mark.parametrize("samples", cases([30, 100, 500], [30, 60, 100, 200, 500, 2000]))
@pytest.mark.parametrize("memory", cases([0, 0.8, 0.95], [0, 0.5, 0.8, 0.9, 0.95, 0.98]))
def test_false_alarms_stay_below_seven_percent_on_ar1(noise, memory, samples):
    runs = 1000 if memory >= 0.95 and samples <= 200 else 300
    found = [trend(x) for x in noise(memory, samples, runs)]
    alarms = sum(t.rises or t.falls for t in found)
    assert alarms <= 0.07 * runs


@pytest.mark.soak
@pytest.mark.parametrize("samples", cases([30, 100, 500], [30, 60, 100, 200, 500, 2000]))
def test_false_alarms_stay_below_seven_percent_on_a_moving_average(moving_average, samples):
    found = [trend(x) for x in moving_average(100, samples, 1000)]
    assert sum(t.rises or t.falls for t in found) <= 0.07 * 1000


@pytest.mark.parametrize(
    ("memory", "samples", "rise", "least"),
    [(0, 60, 2, 0.8), (0, 30, 4, 0.7), (0.5, 200, 2, 0.9), (0.8, 500, 4, 0.9), (0.98, 100, 8, 0.9)],
)
def test_a_rise_in_noise_sd_is_found(noise, memory, samples, rise, least):
    line = np.linspace(0, rise, samples)
    found = [trend(x + line) for x in noise(memory, samples, 200)]
    assert np.mean([t.rises for t in found]) >= least


@pytest.mark.parametrize("samples", [50, 100, 1000])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_saturating_curve_rises(noise, samples, share):
    climb = 20 + 480 * (1 - np.exp(-np.arange(samples) / (share * samples)))
    assert trend(climb + 40 * noise(0, samples)[0]).rises
    assert trend(-climb + 40 * noise(0, samples)[0]).falls


def test_a_dip_that_recovers_is_a_rise(noise):
    t = np.linspace(0, 1, 240)
    dip = -130 + 250 * t - 150 * np.exp(-(((t - 0.6) / 0.1) ** 2))
    assert trend(dip + 60 * noise(0, 240)[0]).rises


def test_a_line_is_measured_exactly():
    found = trend(3 + 2 * np.arange(50.0))
    assert found.rises
    assert not found.falls
    assert found.slope == pytest.approx(2)
    assert found.low == pytest.approx(2)
    assert found.change == pytest.approx(98)
    assert found.samples == 50


def test_the_interval_holds_the_true_change(noise):
    line = np.linspace(0, 3, 200)
    found = [trend(x + line) for x in noise(0.5, 200, 300)]
    held = np.mean([t.change_low <= 3 <= t.change_high for t in found])
    assert held >= 0.93


def test_more_confidence_is_a_wider_interval(noise):
    x = noise(0.5, 100)[0]
    widths = [trend(x, confidence=c).high - trend(x, confidence=c).low for c in (0.8, 0.95, 0.99)]
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


def test_effective_samples_follow_the_memory(noise):
    effective = [np.median([trend(x).effective for x in noise(r, 200, 100)]) for r in (0, 0.5, 0.9)]
    assert 50 <= effective[0] <= 200
    assert 30 <= effective[1] <= 67
    assert 1 <= effective[2] <= 11


def test_too_few_samples_are_undecided():
    assert trend(np.arange(11.0)) is None
    assert trend(np.array([*np.arange(11.0), np.nan, np.inf])) is None
    assert trend(np.full(100, np.nan)) is None


def test_a_constant_neither_rises_nor_falls():
    found = trend(np.full(30, 0.1))
    assert (found.low, found.slope, found.high) == (0, 0, 0)
    assert not found.rises
    assert not found.falls


def test_nothing_raises_or_warns(edge_case):
    found = trend(edge_case)
    assert found is None or not (found.rises and found.falls)
    assert found is None or not np.isnan(astuple(found)).any()


# A whole shift keeps equal values equal: rounding that parts them is noise of its own.
@given(SERIES, st.integers(-(10**6), 10**6), st.sampled_from([0.25, 2.0, 1024.0]))
def test_shift_changes_nothing_and_scale_scales(x, shift, scale):
    plain, moved = trend(x), trend(scale * (x + shift))
    slack = 1e-6 * (1 + float(np.abs(x).max()) + abs(shift)) * scale
    for name in ("slope", "low", "high", "change"):
        assert getattr(moved, name) == pytest.approx(scale * getattr(plain, name), abs=slack)


@given(SERIES)
def test_a_mirrored_series_has_the_mirrored_trend(x):
    up, down = trend(x), trend(-x)
    assert down.slope == pytest.approx(-up.slope)
    assert down.low == pytest.approx(-up.high)
    back = trend(x[::-1])
    assert back.slope == pytest.approx(-up.slope, abs=1e-9 * float(np.abs(x).max() + 1))


@given(SERIES, st.lists(st.integers(0, 60), max_size=5), st.sampled_from([np.nan, np.inf]))
def test_values_that_are_no_numbers_change_nothing(x, places, hole):
    where = np.minimum(np.array(places, dtype=np.int64), x.size)
    assert trend(np.insert(x, where, hole)) == trend(x)


def test_fewer_blocks_see_slow_noise_under_point_noise(noise):
    mixed = [a + b for a, b in zip(noise(0.98, 200, 150), noise(0, 200, 150, seed=1), strict=True)]
    alarms = [sum((t := trend(x, blocks=b)).rises or t.falls for x in mixed) for b in (256, 64)]
    assert alarms[1] < 0.6 * alarms[0]


def test_a_million_points_stay_bounded():
    x = np.random.default_rng(0).standard_normal(1_000_000)
    assert not trend(x).rises
    assert trend(x + np.linspace(0, 0.1, x.size)).rises
