import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlvitals.signals.spread import difference_sd, median, noise_sd, robust_sd

pytestmark = pytest.mark.filterwarnings("error")
VALUES = arrays(np.float64, st.integers(3, 60), elements=st.floats(-1e6, 1e6))


def test_by_hand():
    x = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    assert median(x) == 3
    assert robust_sd(x) == pytest.approx(1.4826)
    assert median(np.array([1.0, np.nan, 3.0])) == 2


def test_half_the_values_equal_fall_back_to_quartiles_then_to_the_mean():
    assert robust_sd(np.array([0.0] * 6 + [1.0] * 4)) == pytest.approx(1 / 1.349)
    assert robust_sd(np.array([0.0] * 9 + [1.0])) == pytest.approx(1.2533 * 0.1)


def test_both_are_the_sd_of_white_noise(noise):
    x = 3 * noise(0, 20_000)[0]
    assert robust_sd(x) == pytest.approx(3, rel=0.03)
    assert noise_sd(x) == pytest.approx(3, rel=0.03)


def test_noise_is_blind_to_trend_and_outliers(noise):
    x = noise(0, 2000)[0]
    curve = 500 * (1 - np.exp(-np.arange(2000) / 300))
    assert noise_sd(x + curve) == pytest.approx(1, rel=0.1)
    assert robust_sd(x + curve) > 20
    x[::100] += 1000
    assert noise_sd(x) == pytest.approx(1, rel=0.1)
    assert noise_sd(np.arange(50.0)) == pytest.approx(0, abs=1e-12)


def test_differences_count_games_that_are_won_or_lost_and_do_not_overflow():
    games = np.tile([1.0, -1.0, -1.0, 1.0], 500)  # each second difference is 0
    assert difference_sd(games) == pytest.approx(1.0, rel=0.01)
    assert difference_sd(1e308 * games) == pytest.approx(1e308, rel=0.01)
    assert difference_sd(np.zeros(9)) == 0.0


@pytest.mark.parametrize(("spread", "least"), [(median, 1), (robust_sd, 2), (noise_sd, 3)])
def test_too_few_are_undecided(spread, least):
    x = np.arange(5.0)
    assert spread(np.append(x[: least - 1], [np.nan, np.inf])) is None
    assert spread(x[:least]) is not None


@pytest.mark.parametrize("spread", [median, robust_sd, noise_sd])
def test_nothing_raises_or_warns(spread, edge_case):
    found = spread(edge_case)
    assert found is None or np.isfinite(found) or np.abs(edge_case).max() > 1e307


@given(VALUES, st.floats(-1e3, 1e3), st.sampled_from([0.5, 4.0]))
def test_shift_and_scale(x, shift, scale):
    slack = 1e-9 * (1 + float(np.abs(x).max()) + abs(shift)) * scale
    assert median(scale * (x + shift)) == pytest.approx(scale * (median(x) + shift), abs=slack)
    if robust_sd(x) > 1e-3:  # equal but for rounding after a shift is not equal
        moved = robust_sd(scale * (x + shift))
        assert moved == pytest.approx(scale * robust_sd(x), rel=1e-3, abs=slack)


@given(VALUES, st.randoms(use_true_random=False))
def test_order_does_not_matter_to_spread(x, random):
    mixed = x.copy()
    random.shuffle(mixed)
    assert robust_sd(mixed) == pytest.approx(robust_sd(x))
    assert median(mixed) == median(x)


@given(VALUES, st.integers(0, 60), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_values_that_are_no_numbers_change_nothing(x, place, hole):
    holed = np.insert(x, min(place, x.size), hole)
    assert (median(holed), robust_sd(holed), noise_sd(holed)) == (
        median(x),
        robust_sd(x),
        noise_sd(x),
    )
