"""The numbers that describe a curve do not depend on its unit, and say what they are named for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.signals.curve_shape import MIN_CURVE_POINTS, SHAPE, curve_shape

CURVES = st.lists(st.floats(-100, 100), min_size=12, max_size=80).map(np.array)


def shape(values):
    return dict(zip(SHAPE, curve_shape(np.asarray(values, dtype=float)), strict=True))


def noise(points, seed=0):
    return np.random.default_rng(seed).normal(size=points)


@given(CURVES, st.floats(-1e4, 1e4), st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]))
def test_offset_and_scale_change_nothing(values, offset, scale):
    values = np.round(values, 3)
    there = curve_shape(scale * (values + round(offset)))
    if np.ptp(np.sort(values)[1:-1]) > 0.01:  # else rounding decides what is noise
        assert there == pytest.approx(curve_shape(values), abs=1e-5)


def test_one_outlier_however_large_changes_what_the_next_in_rank_would():
    values = noise(100)
    for far in (1e3, 1e9, -1e9):
        with_outlier = values.copy()
        with_outlier[50] = far
        assert np.abs(curve_shape(with_outlier) - curve_shape(values)).max() < 0.3


def test_a_rise_a_loss_and_a_flat_line_differ_in_the_numbers_that_are_named_so():
    rising = shape(np.linspace(0, 10, 120) + noise(120))
    lost = shape(np.r_[np.linspace(0, 10, 60), np.linspace(10, 0, 60)] + noise(120))
    flat = shape(noise(120))
    assert rising["change"] > 2
    assert abs(flat["change"]) < 0.7
    assert abs(lost["change"]) < 0.7
    assert rising["order"] > 0.9
    assert rising["lost"] < 0.1
    assert lost["lost"] > 0.9
    assert 0.3 < lost["best at"] < 0.6
    assert rising["gain"] > 1.5 > flat["gain"]
    assert rising["range"] > 2 > flat["range"]


def test_a_constant_has_a_shape_and_a_few_points_have_none():
    assert curve_shape(np.full(50, -7.0)).tolist() == [0.0] * len(SHAPE)
    assert curve_shape(np.arange(MIN_CURVE_POINTS - 1.0)) is None
    assert np.isfinite(curve_shape(np.arange(float(MIN_CURVE_POINTS)))).all()
    assert np.isfinite(curve_shape(np.linspace(-1, 1, 50) * 1e308)).all()
