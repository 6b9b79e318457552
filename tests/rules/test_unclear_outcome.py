"""Whole runs whose trend is not proven: an early rise, a low end, a level, a late log."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.course import early_level
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import standing
from rlvitals.types import Lifecycle, Measured, Profile


def judged(profile=Profile.OFF_POLICY, key="episode_reward", window=1, **metrics):
    trace = made.trace(profile, **metrics)
    measured = {name: Measured("made", key, "", window=window) for name in trace.series}
    trace = replace(trace, measured=measured, lifecycle=Lifecycle(ended=True))
    diagnosis = diagnose(trace)
    findings = {rule.name: finding.severity for rule, finding in diagnosis.findings}
    return diagnosis.verdict.word, findings


def early(seed, count=200, rise=5.0):
    """Return single returns that rise within a sixteenth and drift down by a twelfth: [count]."""
    course = np.interp(np.linspace(0, 1, count), [0, 0.06, 0.3, 1], [0, rise, rise, rise - 0.4])
    return course + made.noise(count, seed)


@pytest.mark.parametrize("offset", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_what_rose_early_and_levelled_off_holds_its_best(offset, scale):
    for seed in (0, 1, 2, 6):
        word, findings = judged(outcome__reward=scale * (early(seed) + offset))
        assert word is Word.PLATEAU
        assert "no-learning" not in findings


def test_fewer_rows_of_it_are_no_loss():
    words = [judged(outcome__reward=early(seed, 150))[0] for seed in range(8)]
    assert not {Word.COLLAPSED, Word.UNSTABLE} & set(words)


def test_few_rows_of_a_reward_tell_an_early_rise():
    values = np.r_[np.full(3, -5900.0), np.full(47, -3200.0)] + 500 * made.noise(50, 2)
    assert judged(outcome__reward=values)[0] is Word.PLATEAU


def unclear(trace):
    return replace(standing(trace), state="unknown")


@pytest.mark.parametrize("window", [1, 100])
def test_a_mean_over_the_last_episodes_begins_far_from_its_level_by_chance(window):
    means = np.cumsum(made.noise(300, 8)) / np.arange(1, 301)
    trace = made.trace(outcome__reward=means)
    series = trace["outcome/reward"]
    assert early_level(trace, unclear(trace), series).state == "holding its best"
    measured = {"outcome/reward": Measured("made", "mean_reward", "", window=window)}
    named = replace(trace, measured=measured)
    assert early_level(named, unclear(named), series).state == "unknown"


def test_what_fell_at_first_and_ends_below_its_start_is_flat():
    course = np.interp(np.linspace(0, 1, 300), [0, 0.1, 0.2, 0.3, 1], [440, 300, -60, 295, 297])
    word, findings = judged(outcome__reward=course + 3 * made.noise(300, 3))
    assert word is Word.STALLED
    assert findings["no-learning"] is Severity.WARNING


@pytest.mark.parametrize("offset", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_evaluations_that_gain_nothing_are_flat_by_a_line(offset, scale):
    for seed in (4, 7, 12):
        word, findings = judged(outcome__eval_return=scale * (made.noise(30, seed) + offset))
        assert word is Word.STALLED
        assert findings["no-learning"] is Severity.NOTE  # its level may be a good one


@pytest.mark.parametrize("offset", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_evaluations_late_in_a_long_run_lost_their_first_level(offset, scale):
    values = np.r_[np.full(4, 790.0), np.full(11, 130.0)] + 20 * made.noise(15, 5)
    late = made.series(scale * (values + offset), 10**7 + 1000 * np.arange(15))
    word, findings = judged(outcome__eval_return=late)
    assert word is Word.COLLAPSED
    assert findings["return-collapse"] is Severity.WARNING
    # Training returns also fall where exploration begins anew.
    assert judged(outcome__return=late)[0] is Word.UNKNOWN


@pytest.mark.parametrize(("rise", "words"), [(1.6, ""), (3.0, "perhaps ")])
def test_a_proven_rise_that_is_small_is_said_to_be_one(rise, words):
    gains = 20 + 10 * made.noise(3000, 1) + np.linspace(0, rise, 3000)
    trend = standing(made.trace(Profile.OFF_POLICY, outcome__reward=gains))
    assert trend.state == "unknown"
    assert trend.low > 0
    assert trend.sentence.startswith(f"it improves, {words}by less than counts: ")
