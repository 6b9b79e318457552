"""What an outcome gained and lost by its end, whatever its zero and its unit."""

import numpy as np
import pytest

from rlvitals.signals.outcome_course import LateLoss, late_loss

COUNT = 400


def curve(levels, sd=0.0, count=COUNT, seed=0):
    course = np.interp(np.linspace(0, 1, count), np.linspace(0, 1, len(levels)), levels)
    return course + sd * np.random.default_rng(seed).normal(size=count)


@pytest.mark.parametrize("count", [20, 39, 60, 400, 5000])
def test_a_third_of_the_gain_is_lost(count):
    late = late_loss(curve([0, 0, 90, 90, 90, 90, 60, 60], count=count))
    assert late.best == pytest.approx(90, abs=1)
    assert late.last == pytest.approx(60, abs=1)
    assert late.share == pytest.approx(1 / 3, abs=0.03)
    assert late.lasts


def test_a_rise_loses_nothing_and_a_fall_from_the_start_gained_nothing():
    rise, fall = late_loss(curve([0, 1])), late_loss(curve([1, 0]))
    assert (rise.loss, rise.share) == (0.0, 0.0)
    assert fall.peak == 0.0
    assert fall.loss > 0.9
    assert fall.gain < 0.1


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-3), (-1e5, 1.0), (1e5, 1e4)])
def test_neither_zero_nor_unit_changes_the_shares(offset, scale):
    values = curve([0, 80, 100, 50], sd=3.0)
    plain, other = late_loss(values), late_loss(scale * (values + offset))
    assert other.share == pytest.approx(plain.share, rel=1e-6)
    for name in ("error", "swing", "gain", "loss"):
        assert getattr(other, name) == pytest.approx(scale * getattr(plain, name), rel=1e-6)
    assert (other.peak, other.lasts) == (plain.peak, plain.lasts)


def test_the_errors_are_those_of_the_loss_in_white_noise():
    losses = []
    for seed in range(200):
        late: LateLoss = late_loss(curve([0, 0], sd=1.0, seed=seed))
        losses.append(late.last)
    # The last tenth holds 40 values; a difference of two such levels scatters sqrt(2) wider.
    assert np.std(losses) * np.sqrt(2) == pytest.approx(late.error, rel=0.2)
    assert np.median([late_loss(curve([0, 0], 1.0, seed=s)).swing for s in range(50)]) == (
        pytest.approx(late.error, rel=0.25)
    )


def test_a_dip_that_the_newest_values_have_left_does_not_last():
    assert not late_loss(np.append(curve([0, 100, 100, 20]), np.full(10, 98.0))).lasts
