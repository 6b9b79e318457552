"""What a language model's batch rewards show: gains that are small, early, done or not learned."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import learning_trend, verdict_trend
from rlvitals.rules.gains import gain
from rlvitals.rules.rule import Severity
from rlvitals.types import Profile


def grpo(**metrics):
    return made.trace(Profile.GRPO, **metrics)


def early(count, first, last, within, noise):
    """Return rewards that rise over the first points and stay level after."""
    rise = np.r_[np.linspace(first, last, within), np.full(count - within, last)]
    return rise + noise * made.noise(count, 3)


def severities(trace):
    return {rule.name: finding.severity for rule, finding in diagnose(trace).findings}


def test_noise_alone_is_rarely_a_gain():
    for count in (20, 45, 200):
        found = [gain(made.noise(count, seed)) for seed in range(500)]
        assert sum(one.proven for one in found) <= 3, count
        assert sum(one.falls for one in found) <= 5, count


def test_noise_with_a_memory_is_seldom_a_gain():
    walks = [np.cumsum(made.noise(200, seed)) for seed in range(100)]
    assert sum(gain(walk).proven for walk in walks) <= 40
    assert gain(np.arange(19.0)) is None


@pytest.mark.parametrize("count", [45, 90, 400])
def test_a_gain_that_came_early_and_stayed_is_no_failure_to_learn(count):
    run = grpo(
        outcome__reward=early(count, 0.72, 0.77, count // 6, 0.01), reward__std=[0.08] * count
    )
    assert diagnose(run).verdict.word in {Word.PLATEAU, Word.CONVERGED, Word.LEARNING}
    assert "no-learning" not in severities(run)


@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (1000, 1), (-3, 1), (0, 1e-3), (50, 20)])
def test_a_gain_is_told_wherever_zero_is(offset, scale):
    rewards = np.linspace(0.3, 0.6, 300) + 0.08 * made.noise(300)
    run = grpo(outcome__reward=offset + scale * rewards, reward__std=np.full(300, 0.4 * scale))
    assert learning_trend(run).state == "rising"
    still = 0.3 + 0.08 * made.noise(300)
    run = grpo(outcome__reward=offset + scale * still, reward__std=np.full(300, 0.4 * scale))
    assert not learning_trend(run).improves


def test_a_gain_that_is_lost_again_is_not_held():
    rewards = np.r_[np.linspace(0.2, 0.9, 60), np.linspace(0.9, 0.25, 60), np.full(40, 0.25)]
    run = grpo(outcome__reward=rewards + 0.05 * made.noise(160), reward__std=np.full(160, 0.4))
    assert diagnose(run).verdict.word is Word.COLLAPSED


def test_answers_that_are_right_from_the_start_are_solved():
    right = np.clip(0.92 + 0.03 * made.noise(200), 0, 1)
    run = grpo(
        outcome__reward=right,
        reward__component__correct=right,
        reward__std=np.zeros(200),
        reward__group_zero_std=np.full(200, 0.8),
    )
    assert diagnose(run).verdict.word is Word.CONVERGED
    assert max(severities(run).values()) is Severity.NOTE


@pytest.mark.parametrize(
    ("level", "low", "high", "word"),
    [
        (0.92, 0.0, 1.0, Word.CONVERGED),
        (0.72, 0.0, 1.0, Word.STALLED),  # a quarter is left to learn
        (0.92, 0.85, 1.0, Word.STALLED),  # no response earns less than 0.85
        (0.92, 0.0, 2.0, Word.STALLED),
    ],
)
def test_a_score_of_0_to_1_that_is_high_from_the_start_is_solved(level, low, high, word):
    run = grpo(
        outcome__score=np.clip(level + 0.02 * made.noise(200), 0, 0.999),
        reward__min=np.full(200, low),
        reward__max=np.full(200, high),
    )
    assert diagnose(run).verdict.word is word


def test_answers_that_are_wrong_throughout_are_not():
    run = grpo(
        outcome__reward=0.1 + 0.02 * made.noise(200),
        reward__component__correct=np.zeros(200),
        reward__group_zero_std=np.full(200, 0.95),
    )
    assert diagnose(run).verdict.word is Word.STALLED
    assert severities(run)["zero-variance-groups"] is Severity.ERROR


def test_a_part_that_pays_two_or_nothing_is_a_share():
    share = np.clip(0.93 + 0.03 * made.noise(200), 0, 0.999)
    paid = grpo(
        outcome__reward=2 * share,
        reward__component__correctness=2 * share,
        reward__component_std__correctness=2 * np.sqrt(share * (1 - share)),
    )
    now = verdict_trend(paid)
    assert now.state == "at its ceiling"
    assert now.last == pytest.approx(0.93, abs=0.02)
    graded = replace(
        paid,
        series={
            **paid.series,
            "reward/component_std/correctness": made.series(np.abs(made.noise(200))),
        },
    )
    assert verdict_trend(graded).metric == "outcome/reward"  # no single sum explains it


def dead(rewards, since=0):
    count = len(rewards)
    alive = np.arange(count) < since
    return grpo(
        outcome__reward=rewards,
        reward__std=np.where(alive, 0.3, 0.0),
        optimiser__grad_norm=np.where(alive, 0.5, 0.0),
        exploration__entropy=np.where(alive, 0.4, 0.001),
        policy__kl_to_reference_per_token=np.where(alive, 0.5, 3.2),
    )


@pytest.mark.parametrize(
    "rewards",
    [
        np.linspace(0.1, 0.3, 400) + 0.03 * made.noise(400),
        0.12 + 0.03 * made.noise(400),
        np.zeros(400),
    ],
    ids=["wanders upwards", "level", "zero"],
)
def test_without_gradient_and_contrast_nothing_was_learned(rewards):
    run = dead(rewards)
    assert diagnose(run).verdict.word in {Word.STALLED, Word.COLLAPSED}
    assert severities(run)["constant-reward"] is Severity.ERROR


def test_a_policy_that_died_on_the_way_up_is_stalled():
    run = dead(early(400, 0.1, 0.3, 60, 0.03), since=60)
    assert diagnose(run).verdict.word is Word.STALLED
    assert severities(run)["constant-reward"] is Severity.WARNING


def test_a_policy_that_earns_all_there_is_has_converged():
    rewards = np.minimum(early(400, 1.0, 10.6, 120, 0.05), 10.5)
    run = dead(rewards, since=150)
    assert diagnose(run).verdict.word in {Word.PLATEAU, Word.CONVERGED}
    assert severities(run)["constant-reward"] is Severity.NOTE


def test_responses_that_never_end_are_a_warning_even_while_the_reward_rises():
    run = grpo(
        outcome__reward=np.linspace(0.1, 0.6, 200) + 0.05 * made.noise(200),
        language__truncated_share=np.ones(200),
    )
    assert diagnose(run).verdict.word is Word.LEARNING
    assert severities(run)["responses-truncated"] is Severity.WARNING


@pytest.mark.parametrize("count", [30, 100])
def test_pairs_that_are_ordered_rightly_more_often_are_learned(count):
    run = made.trace(
        Profile.SUPERVISED,
        optimiser__loss=0.68 + 0.06 * made.noise(count),
        preference__accuracy=np.clip(
            np.linspace(0.4, 0.79, count) + 0.06 * made.noise(count, 5), 0, 1
        ),
    )
    assert diagnose(run).verdict.word is Word.LEARNING
    assert not {"no-learning", "loss-not-decreasing"} & set(severities(run))


def test_pairs_that_are_guessed_are_not():
    run = made.trace(
        Profile.SUPERVISED,
        optimiser__loss=0.693 + 0.003 * made.noise(100),
        preference__accuracy=0.5 + 0.06 * made.noise(100, 5),
    )
    assert diagnose(run).verdict.word is Word.STALLED


def test_held_out_answers_tell_where_batches_are_drawn_for_their_difficulty():
    level = 0.5 + 0.05 * made.noise(200)
    held = np.linspace(0.4, 0.7, 20) + 0.01 * made.noise(20, 6)
    run = grpo(outcome__reward=level, outcome__eval_accuracy=held)
    assert verdict_trend(run).metric == "outcome/eval_accuracy"
    assert diagnose(run).verdict.word is Word.LEARNING
    assert "no-learning" not in severities(run)


def test_the_best_of_several_held_out_answers_tells_nothing():
    level = 0.5 + 0.05 * made.noise(200)
    held = np.linspace(0.4, 0.7, 20)
    run = grpo(
        outcome__reward=level, **{"outcome__eval_task__math__acc__best@8__mean": held.copy()}
    )
    assert not verdict_trend(run).improves


def test_a_mean_whose_spread_is_logged_is_a_batch_of_an_unknown_kind_too():
    course = np.linspace(0.45, 0.487, 400) + 0.02 * made.noise(400)
    run = made.trace(Profile.UNKNOWN, outcome__reward=course, reward__std=np.full(400, 0.1))
    assert verdict_trend(run).improves
    assert diagnose(run).verdict.word is Word.LEARNING


@pytest.mark.parametrize("unit", [1.0, 1e-3, 0.1, 1e6])
def test_the_rounding_of_equal_values_is_no_gain(unit):
    change = gain(unit * np.array([0.265625, *([-1.0] * 99)]))
    assert not change.proven
    assert not change.goes_on
