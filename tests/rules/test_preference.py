"""chosen-likelihood-falls: what preference training does to the responses people preferred."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.language.chosen_likelihood_falls import RULE
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.types import Profile


def course(first, last, count=200, spread=0.5, seed=3):
    return np.linspace(first, last, count) + spread * made.noise(count, seed)


def run(chosen, margin=(0.0, 2.0), **more):
    return made.trace(
        Profile.SUPERVISED,
        optimiser__loss=course(0.69, 0.2, spread=0.02),
        preference__chosen_logp=chosen,
        preference__rejected_logp=course(-60, -120, seed=4),
        preference__margin=course(*margin, spread=0.1, seed=5),
        **more,
    )


def test_a_policy_that_no_longer_predicts_the_tokens_it_was_shown_is_a_warning():
    finding = RULE.judge(run(course(-50, -80), outcome__accuracy=course(0.9, 0.5, spread=0.02)))
    assert finding.severity is Severity.WARNING
    assert any(e.startswith("token accuracy goes from 0.9") for e in finding.evidence)


@pytest.mark.parametrize(
    "accuracy",
    [
        course(0.9, 0.7, spread=0.02),  # a fifth less
        course(0.9, 0.9, spread=0.3),  # noise alone
        course(0.5, 0.9, spread=0.02),
    ],
)
def test_trap_a_token_accuracy_that_falls_a_little_or_scatters_is_none(accuracy):
    assert RULE.judge(run(course(-50, -80), outcome__accuracy=accuracy)).severity is Severity.NOTE


def test_chosen_responses_of_several_times_their_nats_are_a_warning():
    finding = RULE.judge(run(course(-5, -60)))
    assert finding.severity is Severity.WARNING
    assert any(e.startswith("a chosen response takes 5") for e in finding.evidence)


def test_two_witnesses_are_an_error_and_a_rising_margin_is_no_learning():
    accuracy = course(0.9, 0.3, spread=0.02)
    lost = run(course(-5, -60), preference__accuracy=course(0.6, 0.95, spread=0.02))
    lost_twice = replace(
        lost, series=lost.series | run(course(-5, -60), outcome__accuracy=accuracy).series
    )
    assert RULE.judge(lost).severity is Severity.WARNING
    assert RULE.judge(lost_twice).severity is Severity.ERROR
    assert diagnose(lost).verdict.word in {Word.LEARNING, Word.CONVERGED}
    assert diagnose(lost_twice).verdict.word is Word.COLLAPSED


def test_a_policy_that_is_lost_within_the_first_updates_is_a_warning_whatever_the_margin_does():
    chosen = np.r_[-5.0, -5.5, -5.2, course(-60, -60, 197)]
    finding = RULE.judge(run(chosen, margin=(0.0, 0.0)))
    assert finding.severity is Severity.WARNING
    assert finding.summary.startswith("the policy no longer writes")
    assert finding.observed == pytest.approx(-60, rel=0.02)


def test_trap_responses_whose_length_differs_by_batch_are_none():
    lengths = np.exp(made.noise(200, 9))
    lengths[:3] = 0.3
    assert RULE.judge(run(course(-5, -20) * lengths)).severity is Severity.NOTE


def test_trap_a_chosen_likelihood_that_falls_is_a_note_where_no_evaluation_does():
    found = RULE.judge(run(course(-50, -80)))
    assert found.severity is Severity.NOTE
    assert found.counter


@pytest.mark.parametrize(
    "worse",
    [
        {"preference__eval_accuracy": course(0.7, 0.5, 40, 0.01)},
        {"optimiser__eval_loss": course(0.6, 0.9, 40, 0.01)},
        {"preference__eval_margin": course(0.5, -0.5, 40, 0.05)},
        {"preference__accuracy": course(0.8, 0.6, 200, 0.03)},
    ],
)
def test_an_evaluation_that_gets_worse_makes_it_a_warning(worse):
    found = RULE.judge(run(course(-50, -80), **worse))
    assert found.severity is Severity.WARNING
    assert any("worse" in words or "fall" in words for words in found.evidence)


def test_an_evaluation_that_gets_better_leaves_it_a_note():
    better = {"preference__eval_accuracy": course(0.5, 0.8, 40, 0.01)}
    assert RULE.judge(run(course(-50, -80), **better)).severity is Severity.NOTE


@pytest.mark.parametrize("last", [-45, -52])
def test_chosen_responses_that_hold_their_likelihood_are_fine(last):
    assert isinstance(RULE.judge(run(course(-50, last))), Clear)


def test_noise_between_batches_is_no_fall():
    for seed in range(20):
        judged = RULE.judge(run(course(-50, -50, spread=15, seed=seed)))
        assert isinstance(judged, Clear), seed


def test_a_margin_that_does_not_rise_is_another_fault():
    assert isinstance(RULE.judge(run(course(-50, -80), margin=(0.0, 0.0))), Clear)


def test_held_out_responses_are_asked_before_those_trained_on():
    found = RULE.judge(run(course(-50, -45), preference__eval_chosen_logp=course(-50, -90, 40)))
    assert isinstance(found, Finding)
    assert found.metric == "preference/eval_chosen_logp"
