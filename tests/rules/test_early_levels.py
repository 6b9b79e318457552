"""What the start of a log says: a gain at once, a fall from the start, learning before it."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Severity
from rlvitals.types import Budget, Lifecycle, Profile

LANDER = {"env_id": "LunarLander-v2"}
DIP = np.interp(np.arange(200), [0, 10, 30, 80, 199], [-340, -340, -480, -330, -330])


def diagnosis(profile=Profile.ON_POLICY, *, settings=None, budget=None, **metrics):
    trace = made.trace(profile, settings=settings, **metrics)
    trace = replace(trace, lifecycle=Lifecycle(ended=True), budget=budget)
    found = diagnose(trace)
    return found.verdict.word, {rule.name: finding.severity for rule, finding in found.findings}


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_a_return_that_falls_first_and_ends_where_it_began_is_not_learning(scale):
    word, severities = diagnosis(outcome__return=scale * (DIP + 20 * made.noise(200)))
    assert word is Word.UNKNOWN
    assert "no-learning" not in severities  # it may be a curriculum


def test_the_same_return_is_stalled_where_the_task_is_known():
    values = 2 * DIP + 20 * made.noise(200)
    word, severities = diagnosis(outcome__return=values, settings=LANDER)
    assert word is Word.STALLED
    assert severities["no-learning"] is Severity.WARNING


def test_a_return_that_ends_well_above_its_start_is_learning_whatever_it_fell_before():
    values = DIP + np.interp(np.arange(200), [0, 100, 199], [0, 100, 300]) + 20 * made.noise(200)
    assert diagnosis(outcome__return=values)[0] is Word.LEARNING


def storm(early):
    """Return the metrics of a return that rises in its first fiftieth, beside a storm of KL."""
    rise = np.interp(np.arange(1000), [0, 20, 350, 450, 999], [40, 150, 154, 145, 146])
    rise = rise if early else np.full(1000, 145.0)
    kl = 0.05 + 0.01 * np.abs(made.noise(1000, 1))
    kl[100::30] = 5.0
    return {
        "outcome__return": rise + made.noise(1000),
        "policy__approx_kl": kl,
        "policy__clip_fraction": 0.8 + 0.01 * made.noise(1000, 2),
    }


def test_a_gain_of_the_first_rows_is_held_whatever_drifts_afterwards():
    word, severities = diagnosis(Profile.CONTROL_PPO, **storm(early=True))
    assert word is Word.PLATEAU
    assert set(severities.values()) <= {Severity.NOTE}


def test_a_gain_of_the_first_rows_that_is_lost_is_not_held():
    metrics = storm(early=True)
    metrics["outcome__return"][500:] = 60.0 + made.noise(500, 3)
    assert diagnosis(Profile.CONTROL_PPO, **metrics)[0] is Word.COLLAPSED


def test_the_same_storm_of_kl_beside_a_level_return_is_a_warning():
    severities = diagnosis(Profile.CONTROL_PPO, **storm(early=False))[1]
    assert severities["clip-fraction-high"] >= Severity.WARNING


def test_single_returns_that_begin_far_below_the_rest_are_a_plateau():
    slope = np.interp(np.arange(6000), [0, 500, 3000, 5999], [-300, -210, -175, -172])
    values = slope + 110 * made.noise(6000)
    assert diagnosis(outcome__return=values)[0] in {Word.PLATEAU, Word.LEARNING}


def test_a_return_that_only_fell_from_its_start_is_falling_not_fallen_back():
    course = np.interp(np.arange(1500), [0, 75, 300, 1499], [-1200, -1350, -1620, -1600])
    now = verdict_trend(
        made.trace(Profile.ON_POLICY, outcome__return=course + 25 * made.noise(1500))
    )
    assert now.state in {"falling", "flat"}
    word, severities = diagnosis(outcome__return=course + 25 * made.noise(1500))
    assert word is Word.STALLED
    assert severities["no-learning"] >= Severity.WARNING


def test_a_resumed_run_is_not_called_flat():
    swings = 3500 + 1000 * np.sin(np.arange(300) / 12) + np.linspace(0, 600, 300)
    late = made.series(swings + 300 * made.noise(300), 10**7 + 1000 * np.arange(300))
    assert diagnosis(outcome__return=late)[0] is not Word.STALLED


def test_evaluations_are_not_good_because_exploration_is_taken_back():
    level = -5 + 0.7 * made.noise(70, 4)
    training = np.linspace(-20, -6, 70) + 0.2 * made.noise(70, 1)
    metrics = {"outcome__eval_return": level, "outcome__return": training}
    assert diagnosis(Profile.OFF_POLICY, **metrics)[0] is Word.PLATEAU
    metrics["exploration__epsilon"] = np.linspace(1.0, 0.4, 70)
    assert diagnosis(Profile.OFF_POLICY, **metrics)[0] is Word.STALLED


@pytest.mark.parametrize(("over", "warned"), [(True, True), (False, False)])
def test_a_flat_run_that_ended_early_is_warned_and_one_that_goes_on_is_not(over, warned):
    values = -1960 + 80 * made.noise(276)
    trace = made.trace(Profile.CONTROL_PPO, outcome__return=values)
    cycle = Lifecycle(ended=True) if over else Lifecycle(live=True)
    budget = Budget(15 * trace.last_step, "")
    found = diagnose(replace(trace, lifecycle=cycle, budget=budget))
    assert ("no-learning" in {rule.name for rule, _ in found.findings}) is warned
