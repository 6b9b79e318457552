"""The interval of a crossing keeps its promise on autocorrelated noise, or nothing is foretold."""

import numpy as np
import pytest

from rlvitals.signals.forecast import Crossing, Unclear, crossing

RUNS = 120


def ar(rng, count, rho):
    """AR(1) noise of standard deviation 1, in its stride."""
    shocks, noise = rng.standard_normal(count + 200), np.zeros(count + 200)
    for i in range(1, noise.size):
        noise[i] = rho * noise[i - 1] + shocks[i]
    return noise[200:] * np.sqrt(1 - rho**2)


@pytest.mark.parametrize("count", [60, 300])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("shape", ["straight", "exponential"])
def test_the_interval_holds_the_true_crossing(count, rho, shape):
    rng = np.random.default_rng(7)
    time = np.arange(count) / count
    told = hits = 0
    for _ in range(RUNS):
        noise = ar(rng, count, rho)
        if shape == "straight":
            values, level, true = 10 - 8 * time + 0.4 * noise, 0.0, 1.25
        else:
            values, level, true = np.exp(-3 * time + 0.1 * noise), np.exp(-3.75), 1.25
        found = crossing(np.arange(count) * 1000, values, level)
        if isinstance(found, Crossing):
            told += 1
            hits += found.low <= true * count * 1000 <= found.high
            assert found.low <= found.at <= found.high
    assert told >= (0.8 if rho == 0 else 0.05) * RUNS  # silent throughout would be calibrated too
    assert hits >= 0.8 * told


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_a_level_series_foretells_nothing(rho):
    rng = np.random.default_rng(3)
    told = [crossing(np.arange(200), 1 + 0.1 * ar(rng, 200, rho), 0.5) for _ in range(100)]
    assert sum(isinstance(found, Crossing) for found in told) <= 3


def test_it_says_why_it_cannot_tell():
    steps = np.arange(100)
    assert crossing(steps[:10], 10.0 - steps[:10], 0.0) == Unclear(
        "10 points are too few to tell a pace"
    )
    away = crossing(steps, 1.0 + steps, 0.0)
    assert away == Unclear("it does not head there")
    there = crossing(steps, -1.0 - steps, 0.0)
    assert there == Unclear("it does not head there")
    rng = np.random.default_rng(0)
    bend = np.concatenate((np.full(75, 10.0), 10.0 - np.arange(25))) + 0.1 * rng.standard_normal(
        100
    )
    assert crossing(steps, bend, -30.0) == Unclear("its pace changes")
    slow = crossing(steps, 100 - 0.01 * steps + 1e-4 * rng.standard_normal(100), 0.0)
    assert slow == Unclear("at this pace it is too far off to tell")
