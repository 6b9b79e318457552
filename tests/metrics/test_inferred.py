"""Counts read off the first entropies, and silence where they cannot be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.metrics.action_count import NATS_PER_DIMENSION, action_dim, actions

NAN = float("nan")


@pytest.mark.parametrize("n", [2, 3, 4, 6, 9, 18])
def test_a_nearly_uniform_start_tells_the_number_of_actions(n):
    entropies = math.log(n) * np.array([0.999, 0.99, 0.97, 0.5, 0.1])
    assert actions(entropies).value == n


def test_the_origin_shows_the_number_it_came_from():
    assert actions(np.array([1.386])).origin == "the first entropy, 1.386 = ln 4.00"


def test_the_first_missing_rows_are_skipped():
    assert actions(np.array([NAN, NAN, math.log(3), 0.9])).value == 3


@given(n=st.integers(2, 18), share=st.floats(0.9985, 1.0))
def test_rounding_does_not_change_the_count(n, share):
    assert actions(np.array([round(share * math.log(n), 3)])).value == n


@pytest.mark.parametrize("n", range(2, 19))
def test_three_digits_do_not_change_the_count(n):
    assert actions(np.array([float(f"{math.log(n):.3g}")])).value == n


@pytest.mark.parametrize(
    "entropies",
    [
        [],
        [NAN, NAN],
        [0.0],
        [-1.2],
        [0.023, 0.0],  # collapsed at the first row
        [0.9 * math.log(4)],  # started trained
        [math.log(50_000)],  # a vocabulary
        [NATS_PER_DIMENSION],  # one continuous action
        [2 * NATS_PER_DIMENSION],
        [4 * NATS_PER_DIMENSION],
        [float("inf")],
    ],
)
def test_no_count_where_the_first_entropy_is_no_logarithm_of_one(entropies):
    assert actions(np.array(entropies, dtype=float)) is None


@pytest.mark.parametrize("d", [1, 2, 6, 17])
def test_a_unit_gaussian_tells_its_dimensions(d):
    assert action_dim(np.array([d * NATS_PER_DIMENSION, 0.3]), np.array([1.0, 0.5])).value == d


@given(d=st.integers(1, 17), std=st.floats(0.96, 1.04))
def test_a_small_drift_of_the_width_is_taken_out(d, std):
    entropy = d * (NATS_PER_DIMENSION + math.log(std))
    assert action_dim(np.array([entropy]), np.array([std])).value == d


@pytest.mark.parametrize(
    ("entropies", "stds"),
    [
        ([5.5], [0.135]),  # gSDE logs another quantity as its width
        ([1.4], []),
        ([], [1.0]),
        ([NAN], [1.0]),
        ([2.1], [1.0]),
        ([-0.2], [1.0]),
    ],
)
def test_no_dimensions_where_they_do_not_follow(entropies, stds):
    assert action_dim(np.array(entropies, dtype=float), np.array(stds, dtype=float)) is None
