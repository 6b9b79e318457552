"""Two sluggish series are no evidence of each other: only their changes are compared."""

import numpy as np
import pytest

from rlvitals.signals.lagged import lag_correlation

RUNS = 60


def sluggish(rng, count, rho):
    values = rng.standard_normal(count + 300)
    for i in range(1, values.size):
        values[i] += rho * values[i - 1]
    return values[300:]


def smoothed(values, alpha=0.1):
    out = values.copy()
    for i in range(1, out.size):
        out[i] = (1 - alpha) * out[i - 1] + alpha * values[i]
    return out


def share_of_false_alarms(make, count, seed=0):
    rng = np.random.default_rng(seed)
    found = [lag_correlation(make(rng, count), make(rng, count)) for _ in range(RUNS)]
    return sum(one is not None and one.is_significant for one in found) / RUNS


@pytest.mark.parametrize("count", [60, 300])
@pytest.mark.parametrize(
    "make",
    [
        lambda rng, n: sluggish(rng, n, 0.98),
        lambda rng, n: sluggish(rng, n, 0.0),
        lambda rng, n: np.cumsum(rng.standard_normal(n)),
        lambda rng, n: smoothed(sluggish(rng, n, 0.98)),
        lambda rng, n: smoothed(smoothed(sluggish(rng, n, 0.98))),
    ],
    ids=["ar98", "white", "walk", "ema", "ema twice"],
)
def test_independent_series_are_not_related(make, count):
    # 1 % by design, over all 41 lags together; 4 of 60 happen by chance once in 300 such tests.
    assert share_of_false_alarms(make, count) <= 3 / RUNS


def test_two_lines_that_both_rise_are_not_related():
    rng = np.random.default_rng(1)
    x, y = (np.arange(300.0) + rng.standard_normal(300) for _ in range(2))
    assert np.corrcoef(x, y)[0, 1] > 0.99
    assert not lag_correlation(x, y).is_significant


@pytest.mark.parametrize("lag", [0, 1, 7, -7])
def test_the_lag_and_the_sign_are_found(lag):
    rng = np.random.default_rng(2)
    both = sluggish(rng, 340, 0.98)
    first = both[20:-20]
    second = -both[20 - lag : both.size - 20 - lag] + 0.1 * rng.standard_normal(first.size)
    found = lag_correlation(first, second)
    assert found.lag == lag
    assert found.correlation < -0.9
    assert found.is_significant


def test_scale_and_offset_do_not_matter():
    rng = np.random.default_rng(3)
    x = sluggish(rng, 100, 0.9)
    y = x + rng.standard_normal(100)
    one, other = lag_correlation(x, y), lag_correlation(1e300 * x, 5 - 1e-9 * y)
    assert other.lag == one.lag
    assert other.correlation == pytest.approx(-one.correlation, abs=1e-6)


def test_short_constant_or_unequal_series_have_no_answer():
    x = np.random.default_rng(4).standard_normal(100)
    assert lag_correlation(x[:49], x[:49]) is None
    assert lag_correlation(x, np.ones(100)) is None
    assert lag_correlation(x, np.arange(100.0)) is None
    assert lag_correlation(x, x[1:]) is None
