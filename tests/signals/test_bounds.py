"""Where a cheap bound is asked first, the answers are those of the plain formula."""

import numpy as np
import pytest

from rlvitals.rules.outcome import environment_changed
from rlvitals.rules.pace import _after
from rlvitals.signals.finite import unscale
from rlvitals.signals.rolling import rolling_median
from rlvitals.signals.spike import spikes
from rlvitals.signals.spread import _middle

SEEDS = range(40)


def _heavy(seed: int, count: int = 300) -> np.ndarray:
    """Positive values with spikes, a jump in level, and ties."""
    draw = np.random.default_rng(seed)
    values = np.exp(draw.normal(0, 0.6, count)).round(2)
    values[draw.integers(0, count, 6)] *= 20
    values[draw.integers(50, count) :] *= draw.choice([1.0, 6.0, 0.1])
    return values - draw.choice([0.0, 0.0, 3.0])


@pytest.mark.parametrize("seed", SEEDS)
def test_spikes_are_those_above_every_baseline(seed: int) -> None:
    """By the median of the fifty values before each point."""
    values = _heavy(seed)
    before = np.concatenate(([np.nan], rolling_median(values, 50, min_count=5)[:-1]))
    expected = np.flatnonzero((values > 0.5) & (values > 4 * before))
    found = spikes(values, factor=4.0, floor=0.5)
    assert [s.index for s in found] == expected.tolist()
    assert [s.baseline for s in found] == before[expected].tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_breaks_of_a_critic_are_those_of_the_full_medians(seed: int) -> None:
    """Both ways a critic breaks, at every point."""
    past, within = environment_changed.RECENT_POINTS, environment_changed.BREAK_POINTS
    values = _heavy(seed)
    recent = np.concatenate(([np.nan], rolling_median(values, past, min_count=past // 2)[:-1]))
    largest = np.array(
        [values[i - past : i].max() if i >= past else np.inf for i in range(values.size)]
    )
    high = np.maximum(4.0 * recent, environment_changed.MIN_PEAK_FACTOR * largest)
    low = recent - environment_changed.MIN_EV_DROP
    lasts = environment_changed._lasts
    jumps = [
        i
        for i in range(values.size)
        if values[i] > high[i] and lasts(values[i : i + within] > high[i])
    ]
    drops = [
        i
        for i in range(values.size)
        if values[i] < low[i]
        and recent[i] > environment_changed.MIN_EV_DROP
        and lasts(values[i : i + within] < low[i])
    ]
    assert environment_changed._find_jumps(values, 4.0) == jumps
    assert environment_changed._drops(values) == drops


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_of_a_clock_begin_at_the_first_point_far_enough(seed: int) -> None:
    """Also where the sum and the difference of two times are rounded differently."""
    draw = np.random.default_rng(seed)
    clock = 1.7e9 + np.cumsum(draw.choice([0.0, 0.1, 0.3], 400))
    for edge, length in ((0, 0.3), (7, 0.1), (100, 2.0), (399, 0.1), (3, 1e9)):
        far = [i for i in range(edge + 1, 400) if clock[i] - clock[edge] >= length]
        assert _after(clock, edge, length) == (far[0] if far else 400)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 10, 255, 256])
def test_the_middle_is_the_median(count: int) -> None:
    """To the last bit, for odd and even counts."""
    values = np.random.default_rng(count).normal(size=count)
    assert _middle(values) == float(np.median(values))


def test_unscaled_numbers_beyond_the_range_are_infinite() -> None:
    """With their sign; NaN stays NaN."""
    assert unscale(0.75, 1025) == np.inf
    assert unscale(-0.75, 1025) == -np.inf
    assert unscale(0.75, 1024) == 0.75 * 2.0**1023 * 2
    assert np.isnan(unscale(float("nan"), 3))
