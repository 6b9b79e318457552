"""What the shape of a curve says, where no test of the outcome tells."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.api import diagnose
from rlvitals.diagnosis.verdict import Word, proven_verdict
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.likely_outcome import WEIGHTS, likely_answer, likely_outcome
from rlvitals.rules.rule import Severity
from rlvitals.signals.curve_shape import SHAPE
from rlvitals.types import Profile


def judged(**columns):
    return diagnose(made.trace(**columns), live=False)


def noisy(points, seed, sd=20.0):
    return sd * made.noise(points, seed)


def find_open(curve, words):
    """Return the diagnoses of the noisy runs that the tests of the outcome leave open."""
    found = [judged(outcome__return=curve + noisy(len(curve), seed)) for seed in range(30)]
    return [d for d in found if str(proven_verdict(d.trace, d.findings).word) in words]


def test_the_table_has_a_row_for_each_number_of_a_shape():
    assert tuple(WEIGHTS) == SHAPE
    assert all(len(row) == 5 and row[1] > 0 for row in WEIGHTS.values())
    # Coefficients of a class less those of another decide: their sum is free.
    assert np.abs([sum(row[2:]) for row in WEIGHTS.values()]).max() < 0.01


def test_probabilities_sum_to_one_and_do_not_depend_on_offset_or_scale():
    curve = np.linspace(0, 15, 60) + noisy(60, 3)
    base = likely_outcome(judged(outcome__return=curve).trace)
    assert base.improved + base.flat + base.lost == pytest.approx(1.0)
    for offset, scale in ((1e4, 1.0), (-1e4, 1.0), (0.0, 1e-3), (7.0, 1e3)):
        moved = likely_outcome(judged(outcome__return=offset + scale * curve).trace)
        assert (moved.improved, moved.flat) == pytest.approx((base.improved, base.flat), abs=1e-6)


def test_a_noisy_outcome_without_a_gain_is_probably_flat_and_no_alarm():
    left_open = find_open(np.zeros(45), {"unknown"})
    stalled = [d for d in left_open if d.verdict.word is Word.STALLED]
    assert len(stalled) >= len(left_open) / 3 > 0
    for diagnosis in stalled:
        assert "probably does not improve" in diagnosis.verdict.why
        assert not diagnosis.can_tell
        assert max(f.severity for _, f in diagnosis.findings) is Severity.NOTE


def test_a_gain_of_which_half_is_left_is_not_said_to_be_none():
    course = np.r_[np.linspace(5, 44, 60), np.linspace(44, 22.6, 40), np.linspace(22.6, 28.6, 60)]
    diagnosis = diagnose(made.trace(outcome__return=course + 2 * made.noise(160, 4)))
    ((_, finding),) = [(r, f) for r, f in diagnosis.findings if r.name == "no-learning"]
    assert "probably did not keep what it gained" in finding.summary == diagnosis.verdict.why
    assert finding.began > 55 * made.STEP
    assert finding.bound.value > 35


def test_what_is_learned_within_the_first_rows_is_not_called_flat():
    level = 9962 + 3 * made.noise(1600, 2)
    level[300:530] -= 250 * (made.noise(230, 52) > 1)  # a stretch in which some episodes are lost
    trace = made.trace(outcome__reward=np.r_[-5550.0, -20000.0, 9905.0, level])
    lengths = np.r_[2, 2, 558, np.random.default_rng(6).integers(500, 640, 1600)]
    rewards = replace(trace["outcome/reward"], steps=np.cumsum(lengths))
    run = replace(trace, series={**trace.series, "outcome/reward": rewards})
    assert diagnose(run, live=False).verdict.word is not Word.STALLED


def test_a_gain_that_is_gone_is_probably_lost():
    curve = np.r_[np.linspace(0, 60, 15), np.linspace(60, -40, 30)]
    left_open = find_open(curve, {"unknown", "stalled"})
    assert left_open
    lost = [d for d in left_open if d.verdict.word is Word.COLLAPSED]
    assert len(lost) >= len(left_open) / 2
    for diagnosis in lost:
        assert " was " in diagnosis.verdict.why
        severities = {rule.name: f.severity for rule, f in diagnosis.findings}
        assert severities["return-collapse"] is Severity.NOTE
        assert not diagnosis.can_tell


@pytest.mark.soak
def test_nothing_is_called_improved_by_its_shape():
    for curve in (
        np.linspace(0, 30, 45),
        np.linspace(0, 60, 45),
        np.r_[np.zeros(20), np.full(25, 20.0)],
    ):
        for diagnosis in find_open(curve, {"unknown"}):
            assert diagnosis.verdict.word in {Word.UNKNOWN, Word.STALLED}


def test_the_shape_is_not_asked_of_a_run_that_goes_on_or_is_judged_otherwise():
    flat = noisy(45, 1)
    going = diagnose(made.trace(outcome__return=flat), live=True)
    assert likely_outcome(going.trace) is None
    rising = judged(outcome__return=np.linspace(0, 400, 200) + noisy(200, 2))
    assert likely_answer(rising.trace) == ""
    assert rising.verdict.word is Word.LEARNING
    short = judged(outcome__return=flat[:7])
    assert likely_outcome(short.trace) is None


@pytest.mark.soak
def test_a_muted_rule_says_nothing_by_the_verdict_either():
    curve = np.r_[np.linspace(0, 60, 15), np.linspace(60, -40, 30)]
    diagnosis = next(
        d for d in find_open(curve, {"unknown", "stalled"}) if d.verdict.word is Word.COLLAPSED
    )
    others = tuple(pair for pair in diagnosis.findings if pair[0].name != "return-collapse")
    assert proven_verdict(diagnosis.trace, others).word is not Word.COLLAPSED


def batches(rows, settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, outcome__reward=rows, **metrics)


def test_batches_of_a_language_model_without_a_gain_are_probably_flat():
    runs = [batches(0.5 + 0.3 * made.noise(40, seed)) for seed in range(30)]
    left_open = [run for run in runs if verdict_trend(run).state == "unknown"]
    stalled = [run for run in left_open if likely_answer(run) == "flat"]
    assert len(stalled) >= len(left_open) / 3 > 0
    for run in stalled:
        diagnosis = diagnose(run, live=False)
        assert diagnosis.verdict.word is Word.STALLED
        assert not diagnosis.can_tell
        assert "evaluate on fixed prompts" in str(diagnosis.findings)
        selected = replace(run, settings={"dynamic_sampling": True})
        assert likely_answer(selected) == ""


def test_batches_of_a_language_model_that_fall_are_never_probably_lost():
    curve = np.r_[np.linspace(0, 1, 15), np.linspace(1, 0.2, 30)]
    runs = [batches(curve + 0.4 * made.noise(45, seed)) for seed in range(30)]
    assert {likely_answer(run) for run in runs} <= {"", "flat"}


def test_a_part_of_the_reward_for_right_answers_is_judged_where_no_total_is_logged():
    answered = {"reward__component__accuracy": (made.noise(34, 3) > 0.4).astype(float)}
    run = made.trace(Profile.GRPO, **answered)
    diagnosis = diagnose(run, live=False)
    assert any(
        rule.name == "no-learning" for rule, _ in (*diagnosis.findings, *diagnosis.undecided)
    )
    assert diagnosis.verdict.word in {Word.STALLED, Word.UNKNOWN}


@pytest.mark.parametrize("seed", [35, 37])
def test_a_last_level_far_above_the_first_is_not_said_to_be_flat(seed):
    rng = np.random.default_rng(seed)
    levels = np.repeat([-183.0, -160.0, -240.0, -110.0, -180.0, -60.0], 45)
    returns = levels + 30 * rng.normal(size=270)
    diagnosis = judged(outcome__return=returns - 600 * (rng.random(270) < 0.06))
    assert likely_outcome(diagnosis.trace).improved < 0.4
    assert diagnosis.verdict.word is Word.UNKNOWN
