"""What of a long series is kept."""

import numpy as np
import pytest

from rlvitals.signals.spread import noise_sd, robust_sd
from rlvitals.signals.thin import MAX_THIN_POINTS, POINTS_PER_EXTREME, thin

LONG = 100_000


def noise(count=LONG, seed=0):
    return np.random.default_rng(seed).standard_normal(count)


@pytest.mark.parametrize("count", [0, 1, MAX_THIN_POINTS])
def test_a_short_series_is_kept_whole(count):
    assert thin(noise(count)).tolist() == list(range(count))


@pytest.mark.parametrize(
    "count", [MAX_THIN_POINTS + 1, 2 * MAX_THIN_POINTS, 2 * MAX_THIN_POINTS + 1, LONG]
)
def test_the_number_of_points_is_bounded(count):
    kept = thin(noise(count))
    assert MAX_THIN_POINTS / 2 <= kept.size <= MAX_THIN_POINTS * (1 + 3 / POINTS_PER_EXTREME) + 4
    assert (np.diff(kept) > 0).all()
    assert (kept[0], kept[-1]) == (0, count - 1)


@pytest.mark.parametrize("at", [3, 4_321, LONG - 2])
@pytest.mark.parametrize("value", [50.0, -50.0, np.nan, np.inf, -np.inf])
def test_no_spike_and_no_nan_is_lost(at, value):
    values = noise()
    values[at] = value
    assert at in thin(values)


@pytest.mark.parametrize("count", [1_000_000, 1_048_577])
def test_a_long_series_is_thinned_in_batches_as_at_once(count):
    values = noise(count)
    values[[3, count // 2, -2]] = 1e6, np.nan, -1e6
    at_once = thin(values, batch_points=count)
    assert thin(values, batch_points=1 << 15).tolist() == at_once.tolist()


def test_the_kept_points_scatter_as_all_do():
    values = noise()
    kept = values[thin(values)]
    for spread in (robust_sd, noise_sd, np.std):
        assert spread(kept) == pytest.approx(spread(values), rel=0.05)


def test_a_share_beyond_a_limit_stays_that_share():
    """Kept extremes must not make one point in a hundred look like half of them."""
    values = np.where(np.random.default_rng(1).random(LONG) < 0.01, 100.0, noise())
    assert (values[thin(values)] > 50).mean() < 0.05


def test_a_series_that_grows_keeps_what_it_kept():
    values = noise()
    for count in (20_000, 33_000, 60_000):
        before, after = thin(values[:count]), thin(values[: 2 * count - 7])
        still = [i for i in after if i < count]
        assert set(still) <= set(before)


def test_nothing_but_nan_is_kept_as_nan():
    values = np.full(LONG, np.nan)
    assert np.isnan(values[thin(values)]).all()
