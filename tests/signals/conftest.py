"""Noise with a known memory, and the inputs that no signal may stumble over."""

import numpy as np
import pytest

EDGE_CASES = {
    "empty": [],
    "single": [3.0],
    "two": [1.0, 2.0],
    "constant": [2.5] * 60,
    "zeros": [0.0] * 60,
    "all nan": [np.nan] * 60,
    "all inf": [np.inf, -np.inf] * 30,
    "huge": [1e308, -1e308] * 30,
    "huge rise": list(1.7e308 * np.linspace(-1, 1, 60)),
    "tiny": [5e-324, 0.0] * 30,
    "one outlier": [0.0] * 59 + [1e308],
    "mixed": [1.0, np.nan, np.inf, 2.0, -np.inf, 3.0] * 20,
    "steps": [0.0] * 30 + [1.0] * 30,
    "negative": list(-np.arange(60.0)),
}


@pytest.fixture(params=EDGE_CASES.values(), ids=EDGE_CASES.keys())
def edge_case(request):
    return np.array(request.param, dtype=np.float64)


@pytest.fixture
def noise():
    """`noise(memory, samples, runs, seed)`: runs x samples of stationary AR(1), variance 1."""

    def make(memory, samples, runs=1, seed=0):
        rng = np.random.default_rng([seed, samples])
        shocks = rng.standard_normal((runs, samples)) * np.sqrt(1 - memory**2)
        x = np.empty((runs, samples))
        x[:, 0] = shocks[:, 0] / np.sqrt(1 - memory**2)
        for i in range(1, samples):
            x[:, i] = memory * x[:, i - 1] + shocks[:, i]
        return x

    return make


@pytest.fixture
def moving_average():
    """`moving_average(window, samples, runs, seed)` of white noise, as SB3's ep_rew_mean is."""

    def make(window, samples, runs=1, seed=0):
        rng = np.random.default_rng([seed, samples, window])
        sums = np.cumsum(rng.standard_normal((runs, samples + window)), axis=1)
        return (sums[:, window:] - sums[:, :-window]) / window

    return make
