"""Quantiles of histograms, against those of the values that were counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.signals.quantiles import quantiles
from rlvitals.tracking.media import count_values

LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@pytest.mark.parametrize("bins", [64, 1000])
def test_they_are_those_of_the_values_to_a_bin(bins):
    values = np.random.default_rng(0).gamma(2.0, 1.0, 10_000)
    counts, edges = np.histogram(values, bins)
    found = quantiles(edges, counts.astype(float), LEVELS)
    assert found == pytest.approx(np.quantile(values, LEVELS), abs=edges[1] - edges[0])
    assert (found[0], found[-1]) == (values.min(), values.max())


def test_empty_bins_hold_nothing():
    edges = np.arange(7.0)
    counts = np.array([0.0, 2.0, 0.0, 0.0, 2.0, 0.0])
    assert quantiles(edges, counts, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist() == [1, 1.5, 2, 4.5, 5]
    assert np.isnan(quantiles(edges, np.zeros(6), LEVELS)).all()
    assert np.isnan(quantiles(np.array([0.0]), np.empty(0), LEVELS)).all()


def test_what_is_beyond_an_infinite_edge_stands_at_the_finite_one():
    edges = np.array([-np.inf, 0.0, 1.0, np.inf])
    assert quantiles(edges, np.array([1.0, 2.0, 1.0]), (0, 0.5, 1)).tolist() == [0, 0.5, 1]


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=50))
def test_they_ascend_and_stay_within_what_was_counted(values):
    found = count_values(0, 0.0, np.array(values))
    got = quantiles(found.edges, found.counts, LEVELS)
    assert np.isfinite(got).all()
    assert (np.diff(got) >= 0).all()
    assert found.edges[0] <= got[0]
    assert got[-1] <= found.edges[-1]
