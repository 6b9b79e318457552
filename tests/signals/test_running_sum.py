"""A sum of all rows so far is told from curves that rise."""

import numpy as np
import pytest

from rlvitals.signals.running_sum import row_of_sum

NOISE = np.random.default_rng(0).normal(0, 1, 500)


def test_a_sum_of_rewards_gives_what_a_row_adds():
    assert row_of_sum(np.cumsum(7100 + 80 * NOISE)) == pytest.approx(7100, rel=0.01)
    assert row_of_sum(np.cumsum(-3 + 0.5 * NOISE)) == pytest.approx(-3, rel=0.1)


@pytest.mark.parametrize(
    "values",
    [
        np.cumsum(np.linspace(1, 9, 200)),  # rows that get better: their sum bends
        np.arange(1.0, 300.0),  # a counter
        500 - 500 * np.exp(-np.arange(1, 300) / 60),  # a mean that nears its level
        300 + np.cumsum(2 + 0.1 * NOISE),  # it does not start at nothing
        np.linspace(1, 200, 200) + 3 * NOISE[:200],
        np.cumsum(5 + NOISE[:40]),  # too few
        5 * np.arange(1, 60) + np.arange(1, 60) % 3,  # a line with a little noise
        np.arange(1, 200) + 0.1 * NOISE[:199],
        10 + np.linspace(7, 450, 60) + 3 * np.sin(np.arange(60)),
    ],
    ids=["better", "counter", "mean", "offset", "noise", "few", "line", "noisy line", "wave"],
)
def test_other_rises_are_none(values):
    assert row_of_sum(values) is None
