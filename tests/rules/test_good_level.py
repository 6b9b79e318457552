"""A level that never moved is not learning, unless the log has a sign that it may be a good one."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest
from effort import sampled

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.outcome_blocks import may_be_good
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import EVAL_OUTCOME
from rlvitals.types import Lifecycle, Profile

LEVEL = 19.4 + 0.2 * made.noise(60, 1)


def judged(settings=None, **metrics):
    trace = made.trace(Profile.UNKNOWN, settings=settings, **metrics)
    found = diagnose(replace(trace, lifecycle=Lifecycle(ended=True)))
    return found.verdict.word, {rule.name: finding for rule, finding in found.findings}


def test_a_flat_evaluation_is_stalled_and_says_what_speaks_against_it():
    word, findings = judged(outcome__eval_return=LEVEL)
    assert word is Word.STALLED
    assert findings["no-learning"].severity is Severity.NOTE
    assert findings["no-learning"].counter == (
        "its level may be a good one: --set env_id=... may tell",
    )


def test_a_flat_outcome_at_its_bound_may_be_a_good_one():
    bounded = np.minimum(19.6 + 0.2 * made.noise(60, 1), 19.7)
    word, findings = judged(outcome__eval_return=bounded)
    assert word is Word.UNKNOWN
    assert "no-learning" not in findings
    assert may_be_good(made.trace(outcome__eval_return=bounded), EVAL_OUTCOME)
    assert not may_be_good(made.trace(outcome__eval_return=-bounded), EVAL_OUTCOME)


def test_a_flat_outcome_of_a_policy_that_is_sure_at_first_may_be_a_good_one():
    sure = {"outcome__eval_return": LEVEL, "exploration__entropy": 0.2 + 0.01 * made.noise(60)}
    assert judged({"n_actions": 4}, **sure)[0] is Word.UNKNOWN
    uniform = sure | {"exploration__entropy": 1.38 + 0.002 * made.noise(60)}
    assert judged({"n_actions": 4}, **uniform)[0] is Word.STALLED


def test_a_flat_evaluation_beside_a_rising_training_may_be_a_good_one():
    training = np.linspace(-20, 10, 60) + 0.5 * made.noise(60)
    assert judged(outcome__eval_return=LEVEL - 15, outcome__return=training)[0] is not Word.STALLED


def test_a_few_flat_values_tell_nothing():
    word, findings = judged(outcome__eval_return=LEVEL[:15])
    assert word is Word.UNKNOWN
    assert "no-learning" not in findings


@pytest.mark.parametrize("offset", sampled([0.0, 1e3, -1e3], 3))
def test_a_short_noisy_return_without_any_gain_is_stalled(offset):
    words = [judged(outcome__return=offset + 20 * made.noise(60, seed))[0] for seed in range(20)]
    assert words.count(Word.STALLED) >= 8  # none without the test of a large gain
    assert not {Word.LEARNING, Word.CONVERGED, Word.PLATEAU} & set(words)


def test_a_short_noisy_return_that_gains_one_standard_deviation_is_rarely_stalled():
    rise = np.linspace(-0.25, 1.25, 60)  # from its first fifth to its last by 1.2
    runs = [judged(outcome__return=20 * (rise + made.noise(60, seed))) for seed in range(20)]
    stalled = [findings for word, findings in runs if word is Word.STALLED]
    assert len(stalled) <= 3
    assert all(f.severity is Severity.NOTE for findings in stalled for f in findings.values())


def test_a_mean_that_rose_and_fell_below_its_start_is_not_called_flat():
    course = np.r_[np.linspace(20, 220, 30), np.full(30, 9.4)] + 0.1 * made.noise(60)
    assert judged(outcome__return=course)[0] is Word.COLLAPSED


def swings(end):
    slow = 3 * np.sin(np.arange(200) / 9) + made.noise(200, 2)
    return np.interp(np.arange(200), [0, 60, 110, 150, 199], [0, 10, 10, 12, end]) + slow


def test_a_gain_that_is_mostly_gone_at_the_end_of_slow_swings_is_a_loss():
    word, findings = judged(outcome__return=swings(-2.0))
    assert word is Word.COLLAPSED
    assert findings["return-collapse"].severity >= Severity.WARNING
    word, findings = judged(outcome__return=swings(12.0))
    assert word in {Word.LEARNING, Word.PLATEAU, Word.UNKNOWN}
    assert not [f for f in findings.values() if f.severity >= Severity.WARNING]


def test_a_return_that_recovers_to_below_its_start_is_not_learning():
    course = np.interp(np.arange(400), [0, 60, 80, 90, 399], [0, 40, 40, -120, -25])
    assert judged(outcome__return=course + 3 * made.noise(400))[0] is not Word.LEARNING


def test_a_task_that_most_episodes_solve_is_no_failure():
    succeeds = (np.random.default_rng(3).random(774) < 0.83).astype(float)
    word, findings = judged(outcome__return=succeeds)
    assert word is not Word.STALLED
    assert "no-learning" not in findings
