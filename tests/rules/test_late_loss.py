"""Shares of right answers that are lost late in a run, and those that only scatter."""

import numpy as np
import pytest

from rlvitals.rules.gains import late_answer_loss

ROWS = 56


def shares(levels, scatter=0.06, seed=0):
    course = np.interp(np.linspace(0, 1, ROWS), np.linspace(0, 1, len(levels)), levels)
    noise = np.random.default_rng(seed).normal(0, scatter, ROWS)
    return np.clip(course + noise, 0, 1)


def test_a_fifth_of_the_answers_lost_at_the_end_is_a_loss():
    loss = late_answer_loss(shares([0.05, 0.5, 0.85, 0.85, 0.55, 0.55]))
    assert loss.best == pytest.approx(0.85, abs=0.08)
    assert loss.last == pytest.approx(0.55, abs=0.08)


def test_a_loss_below_the_start_that_is_partly_made_up_is_one():
    assert late_answer_loss(shares([0.7, 0.7, 0.75, 0.1, 0.2, 0.4])) is not None


@pytest.mark.parametrize(
    "levels", [[0.1, 0.8], [0.8, 0.8], [0.8, 0.5, 0.8], [0.1, 0.9, 0.8], [0.0, 0.0]]
)
def test_no_loss(levels):
    assert not any(late_answer_loss(shares(levels, seed=seed)) for seed in range(20))


def test_small_batches_scatter_without_a_loss():
    rng = np.random.default_rng(1)
    runs = (rng.binomial(8, 0.5, ROWS) / 8 for _ in range(400))
    assert sum(late_answer_loss(run) is not None for run in runs) <= 1


def test_few_values_and_values_beyond_a_share_are_not_judged():
    assert late_answer_loss(np.array([0.9] * 10 + [0.1] * 10)) is None
    assert late_answer_loss(100 * shares([0.9, 0.1])) is None
