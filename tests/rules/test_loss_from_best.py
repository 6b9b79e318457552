"""A finished run that ends below its best, and other ends that prove that nothing was learned."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.course import loss_from_best
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import outcome, standing
from rlvitals.types import Lifecycle, Profile

COUNT = 400
GOOD = {Word.LEARNING, Word.CONVERGED, Word.PLATEAU}


def lost_third(count=COUNT, seed=5, sd=1.0):
    """Return a return that rises to 100, stays for half of a run and ends at 60: [count]."""
    course = np.interp(np.linspace(0, 1, count), [0, 0.2, 0.7, 0.8, 1], [0, 100, 100, 60, 60])
    return course + sd * made.noise(count, seed)


def ended(profile=Profile.OFF_POLICY, settings=None, live=False, how=None, **metrics):
    lifecycle = Lifecycle(ended=not live, live=live)
    return replace(made.trace(profile, settings, how, **metrics), lifecycle=lifecycle)


def judged(trace):
    found = diagnose(trace)
    return found.verdict.word, {rule.name: finding.severity for rule, finding in found.findings}


@pytest.mark.parametrize("offset", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_third_of_the_gain_is_lost_whatever_zero_and_unit_are(offset, scale):
    word, severities = judged(ended(outcome__return=scale * (lost_third() + offset)))
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] is Severity.WARNING


@pytest.mark.parametrize("every", [2, 5, 10, 20])
def test_fewer_rows_tell_the_same(every):
    assert judged(ended(outcome__return=lost_third(sd=0.3)[::every]))[0] is Word.COLLAPSED


def test_a_short_reward_that_lost_a_third_of_its_gain_is_a_finding():
    course = np.r_[0.0, np.linspace(1.7, 4.7, 12), np.full(29, 3.1)] + 0.1 * made.noise(42, 3)
    word, severities = judged(ended(Profile.UNKNOWN, outcome__reward=course))
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] is Severity.WARNING


@pytest.mark.parametrize("value", [-1e6, 1e6])
@pytest.mark.parametrize("row", [0, 150, COUNT - 1])
def test_one_outlier_tells_the_same(row, value):
    values = lost_third()
    values[row] = value
    trace = ended(outcome__return=values)
    assert loss_from_best(trace, *outcome(trace), standing(trace)) is not None


@pytest.mark.parametrize("seed", range(20))
def test_a_rise_that_levels_off_has_lost_nothing(seed):
    course = 100 * (1 - np.exp(-5 * np.linspace(0, 1, COUNT)))
    word, severities = judged(ended(outcome__return=course + 10 * made.noise(COUNT, seed)))
    assert word in GOOD
    assert severities.get("return-collapse") is None


def test_a_run_that_goes_on_may_come_back():
    assert judged(ended(live=True, outcome__return=lost_third()))[0] is not Word.COLLAPSED


def test_a_dip_in_the_last_rows_alone_is_no_loss():
    values = np.append(np.linspace(0, 100, COUNT), np.full(8, 40.0))
    trace = ended(outcome__return=values + made.noise(COUNT + 8, 2))
    assert loss_from_best(trace, *outcome(trace), standing(trace)) is None


def test_where_the_span_is_known_it_tells_how_good_the_end_is():
    trace = ended(settings={"env_id": "CartPole-v1"}, outcome__return=lost_third())
    assert loss_from_best(trace, *outcome(trace), standing(trace)) is None


@pytest.mark.parametrize("seed", range(20))
def test_noise_without_a_gain_has_lost_nothing(seed):
    trace = ended(outcome__return=made.noise(COUNT, seed))
    assert loss_from_best(trace, *outcome(trace), standing(trace)) is None


def test_a_level_that_holds_without_any_update_was_not_learned():
    unchanged = {"policy__approx_kl": np.full(300, 1e-9), "exploration__entropy": np.full(300, 5.7)}
    returns = np.append([-10.0, -9.5, -10.5], made.noise(297, 2))  # three unlucky rows at first
    word, severities = judged(ended(Profile.CONTROL_PPO, outcome__return=returns, **unchanged))
    assert word is Word.STALLED
    assert severities["no-learning"] is Severity.WARNING
    assert judged(ended(Profile.CONTROL_PPO, outcome__return=returns))[0] in GOOD


def test_a_policy_that_is_still_uniform_has_learned_nothing():
    returns = 1.1 + 0.05 * made.noise(13, 4)
    uniform = np.log(2) - 0.003 * np.abs(made.noise(13, 6))
    uniform[0] = np.log(2)
    trace = ended(Profile.CONTROL_PPO, outcome__return=returns, exploration__entropy=uniform)
    assert judged(trace)[0] is Word.STALLED
    decided = np.linspace(np.log(2), 0.3, 13)
    trace = ended(Profile.CONTROL_PPO, outcome__return=returns, exploration__entropy=decided)
    assert judged(trace)[0] is not Word.STALLED


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_few_returns_that_rise_in_order_are_learning(scale):
    rises = scale * np.array([-17.6, -12.1, -8.4, -6.0, -4.8, -4.3, -4.1, -4.0])
    assert judged(ended(outcome__return=rises))[0] is Word.LEARNING
    assert judged(ended(outcome__return=rises[[0, 4, 1, 7, 2, 6, 3, 5]]))[0] is Word.UNKNOWN
    assert judged(ended(outcome__return=rises[-7:]))[0] is Word.UNKNOWN


def test_a_rise_that_is_bounded_below_what_counts_is_flat():
    values = np.linspace(0, 0.2, 1000) + made.noise(1000, 0)
    assert judged(ended(outcome__return=values))[0] is Word.STALLED


def dipped(seed):
    """Return of an episode that dips in its first rows and ends well above its start: [106]."""
    course = np.interp(np.arange(106), [0, 5, 20, 80, 105], [-140, -215, -140, -60, 40])
    return course + 110 * made.noise(106, seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_start_that_scatters_as_much_as_was_gained_proves_no_flat_return(seed):
    trace = ended(Profile.UNKNOWN, {"env_id": "LunarLander-v3"}, outcome__return=dipped(seed))
    trend = standing(trace)
    assert trend.state != "flat" or trend.last - trend.first < trend.material


def test_a_smoothed_return_that_ends_far_above_its_start_is_not_flat():
    course = np.interp(np.arange(1000), [0, 250, 480, 1000], [-7100, -7100, -8600, -5000])
    swing = np.convolve(np.random.default_rng(3).normal(0, 2000, 1099), np.ones(100) / 100, "valid")
    how = {"outcome/return": "mean of the last 100 episodes"}
    word, severities = judged(ended(how=how, outcome__return=course + swing))
    assert word not in {Word.STALLED, Word.COLLAPSED}
    assert severities.get("no-learning", Severity.NOTE) is Severity.NOTE


def declining(order):
    """Return forty values that rise by 10 and lose 4.6 in unsteady blocks of two, in this order."""
    tail = (np.linspace(9.0, 5.0, 14) + 0.36 * (-1.0) ** np.arange(14))[order]
    return np.r_[np.linspace(0, 6, 8), 10.0, 10.0, 9.6, 9.4, np.repeat(tail, 2)]


def test_a_loss_by_blocks_in_order_needs_less_to_stand_out():
    in_order = ended(outcome__return=declining(np.arange(14)))
    assert loss_from_best(in_order, *outcome(in_order), standing(in_order)) is not None
    swinging = ended(outcome__return=declining(np.r_[9, 2, 6, 0, 11, 4, 8, 1, 10, 3, 7, 5, 12, 13]))
    assert loss_from_best(swinging, *outcome(swinging), standing(swinging)) is None


def falling(share_of_run, low=10.0, count=400):
    """Return returns that rise to 100, stay, and fall to `low` over the last share of the run."""
    course = np.interp(np.linspace(0, 1, count), [0, 0.3, 1 - share_of_run, 1], [0, 100, 100, low])
    return course + made.noise(count, 4)


def test_a_run_that_ends_in_its_fall_has_lost_its_best():
    word, severities = judged(ended(outcome__return=falling(0.15)))
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] >= Severity.WARNING
    for fall in (falling(0.02), falling(0.15, low=70.0)):
        assert judged(ended(outcome__return=fall))[0] in GOOD


def test_the_end_of_a_longer_run_that_rose_and_fell_has_lost_it():
    late = made.trace(Profile.OFF_POLICY, outcome__return=falling(0.15))
    series = {
        name: replace(logged, steps=logged.steps + 10_000_000)
        for name, logged in late.series.items()
    }
    late = replace(late, series=series, lifecycle=Lifecycle(ended=True))
    assert judged(late)[0] is Word.COLLAPSED
