"""Batches of a language model's training: flat, flat by construction, dead, and lost at once."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import learning_trend, verdict_trend
from rlvitals.rules.gains import early_loss, is_likely_flat, level_standing
from rlvitals.rules.optimiser import loss_not_decreasing
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.rules.standing import standing
from rlvitals.rules.untaught import dead, floor_share
from rlvitals.types import Budget, Lifecycle, Profile

COUNT = 200
STILL = -0.2 + 0.15 * made.noise(COUNT, 1)


def grpo(settings=None, **metrics):
    return made.trace(Profile.GRPO, settings, **metrics)


@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (1000, 1), (-3, 1e-3)])
def test_a_level_is_flat_wherever_zero_is(offset, scale):
    run = grpo(outcome__reward=offset + scale * STILL, reward__std=np.full(COUNT, 0.4 * scale))
    assert learning_trend(run).state == "flat"
    assert diagnose(run).verdict.word is Word.STALLED


def test_noise_is_mostly_flat_and_a_gain_never():
    states = [learning_trend(grpo(outcome__reward=made.noise(COUNT, n))).state for n in range(60)]
    assert states.count("flat") >= 36
    assert states.count("rising") + states.count("falling") <= 4
    for gain in (1.5, 2.0):  # standard deviations of a batch's mean
        rises = [
            learning_trend(
                grpo(outcome__reward=np.linspace(0, gain, COUNT) + made.noise(COUNT, n))
            ).state
            for n in range(60)
        ]
        assert "flat" not in rises


def test_a_noisy_level_that_excludes_a_large_gain_is_a_note():
    states = [
        learning_trend(grpo(outcome__reward=0.7 * made.noise(50, n), reward__std=np.full(50, 0.7)))
        for n in range(60)
    ]
    likely = [state for state in states if is_likely_flat(state)]
    assert len(likely) >= 6
    assert all(trend.state == "flat" and "shows no gain" in trend.why for trend in likely)
    for n in range(60):  # a large gain
        reward = np.linspace(0, 1.0, 50) + 0.4 * made.noise(50, n)
        assert not learning_trend(grpo(outcome__reward=reward, reward__std=np.ones(50))).stalls


def test_a_level_that_is_likely_raises_no_alarm():
    run = next(
        run
        for n in range(60)
        if is_likely_flat(
            learning_trend(
                run := grpo(outcome__reward=0.7 * made.noise(50, n), reward__std=np.full(50, 0.7))
            )
        )
    )
    diagnosis = diagnose(run)
    assert diagnosis.verdict.word is Word.STALLED
    findings = [finding for rule, finding in diagnosis.findings if rule.name == "no-learning"]
    assert [finding.severity for finding in findings] == [Severity.NOTE]


@pytest.mark.parametrize("count", [10, 12, 19])
def test_few_rows_of_many_batches_each_are_told_too(count):
    spread = {"reward__std": np.full(count, 1.0)}
    flat = grpo(outcome__reward=2.0 + 0.05 * made.noise(count), **spread)
    assert learning_trend(flat).state == "flat"
    at_once = np.r_[0.0, 0.1, np.full(count - 2, 1.0)] + 0.05 * made.noise(count)
    assert learning_trend(grpo(outcome__reward=at_once, **spread)).state in {
        "rising", "holding its best",
    }  # fmt: skip
    lost = at_once[::-1]
    assert learning_trend(grpo(outcome__reward=lost, **spread)).state not in {
        "rising", "holding its best",
    }  # fmt: skip


def test_right_answers_are_judged_in_the_unit_of_one_answer():
    # The reward's spread is that of another unit, in which any change of a share is small.
    share = np.clip(0.5 + np.linspace(-0.12, 0.12, 50) + 0.2 * made.noise(50, 3), 0, 1)
    run = grpo(outcome__accuracy=share, reward__std=np.full(50, 10.0))
    assert learning_trend(run).state != "flat"


def test_a_late_gain_is_not_flat():
    late = np.r_[np.zeros(150), np.linspace(0, 1.5, 50)] + 0.3 * made.noise(COUNT, 2)
    assert learning_trend(grpo(outcome__reward=late)).state != "flat"


def test_a_run_that_goes_on_is_not_flat_yet():
    run = grpo(outcome__reward=STILL)
    begun = replace(run, budget=Budget(10 * run.last_step, "said"))
    assert learning_trend(begun).state == "unknown"
    live = replace(run, lifecycle=Lifecycle(live=True))
    assert learning_trend(live).state == "unknown"


def test_what_earns_the_most_that_any_batch_did_is_not_flat():
    solved = np.where(np.arange(COUNT) % 9 == 3, 0.5 + 0.1 * made.noise(COUNT, 1), 1.0)
    now = replace(standing(grpo(outcome__reward=solved)), state="unknown")
    run = grpo(outcome__reward=solved)
    assert level_standing(run, now, run["outcome/reward"]).state == "unknown"


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm.filter_groups.enable": True},
        {"grpo/use_dynamic_sampling": "true"},
        {"data/difficulty_low": 0.2},
    ],
)
def test_batches_drawn_for_their_difficulty_are_level_by_construction(settings):
    run = grpo(settings, outcome__reward=STILL)
    now = learning_trend(run)
    assert now.state == "unknown"
    assert "by construction" in now.why
    assert diagnose(run).verdict.word is Word.UNKNOWN
    off = grpo(dict.fromkeys(settings, False), outcome__reward=STILL)
    assert learning_trend(off).state == "flat"


def test_several_batches_for_each_update_say_the_same():
    run = grpo(outcome__reward=STILL, language__generation_batches=np.full(COUNT, 3.0))
    assert learning_trend(run).state == "unknown"


def test_an_evaluation_outranks_a_level_by_construction():
    better = np.linspace(0.3, 0.6, COUNT) + 0.01 * made.noise(COUNT)
    run = grpo(
        {"algorithm.filter_groups.enable": True},
        outcome__reward=STILL,
        outcome__eval_accuracy=better,
    )
    assert learning_trend(run).state == "rising"
    assert diagnose(run).verdict.word is Word.LEARNING


def test_groups_without_contrast_throughout_teach_nothing():
    moves = np.linspace(0.85, 0.89, 60) + 0.004 * made.noise(60)
    alike = {"reward__group_zero_std": np.full(60, 0.99)}
    assert learning_trend(grpo(outcome__reward=moves)).improves
    assert learning_trend(grpo(outcome__reward=moves, **alike)).state == "flat"
    at_most = np.r_[moves[:3], np.full(57, moves.max())]
    assert not dead(grpo(outcome__reward=at_most, **alike))


def test_one_answer_cut_at_the_limit_is_dead_whatever_its_reward():
    half = COUNT // 2
    metrics = {
        "outcome__reward": np.r_[np.tile([-2.0, 0.5], 10), np.full(180, -1.2)],
        "language__truncated_share": np.full(COUNT, 1.0),
        "exploration__entropy": np.r_[np.linspace(0.9, 0.01, half), np.full(half, 0.001)],
        "policy__kl_to_reference_per_token": np.full(COUNT, 2.3),
    }
    assert dead(grpo(**metrics))
    for name, value in (
        ("language__truncated_share", 0.1),
        ("exploration__entropy", 0.3),
        ("policy__kl_to_reference_per_token", 0.01),
    ):
        assert not dead(grpo(**{**metrics, name: np.full(COUNT, value)}))
    solved = {**metrics, "outcome__reward": early(COUNT)}
    assert not dead(grpo(**solved))


def early(count):
    return np.r_[np.linspace(0.1, 0.9, 20), np.full(count - 20, 0.9)]


def test_right_answers_lost_within_the_first_evaluations():
    lost = np.r_[0.99, 0.7, np.full(19, 0.6)]
    run = made.trace(Profile.UNKNOWN, outcome__accuracy=lost)
    assert standing(run).state == "unknown"
    assert verdict_trend(run).state == "falling"
    assert diagnose(run).verdict.word is Word.STALLED
    for swings in (np.r_[0.9, 0.1 + 0.6 * (np.arange(20) % 2)], np.r_[0.6, np.full(20, 0.55)]):
        assert early_loss(swings) is None


def held_out_pairs(**changed):
    metrics = {
        "optimiser__eval_loss": [2.4, 1.9, 1.86, 1.75, 1.78, 1.8],
        "preference__eval_accuracy": [0.53, 0.59, 0.71, 0.71, 0.71, 0.71],
        "preference__eval_margin": [0.3, 0.9, 1.7, 2.2, 2.5, 2.4],
    } | changed
    return made.trace(Profile.SUPERVISED, **{name: np.array(v) for name, v in metrics.items()})


def test_few_evaluations_of_pairs_that_come_apart():
    run = held_out_pairs()
    assert verdict_trend(run).state == "rising"
    assert verdict_trend(run).metric == "preference/eval_accuracy"
    for overfit in (
        {"optimiser__eval_loss": [0.67, 0.64, 0.78, 1.1, 1.4, 1.3]},
        {"preference__eval_accuracy": [0.6, 0.62, 0.61, 0.6, 0.59, 0.6]},
        {"preference__eval_margin": [0.3, 1.9, 0.7, 2.2, 0.5, 2.4]},
    ):
        assert not verdict_trend(held_out_pairs(**overfit)).improves


def test_held_out_pairs_that_are_lost_are_no_gain_of_the_loss():
    rows = 40
    share = np.r_[np.linspace(0.6, 0.75, 10), np.linspace(0.75, 0.5, 30)]
    run = made.trace(
        Profile.SUPERVISED,
        optimiser__loss=np.linspace(0.69, 0.1, rows),
        preference__eval_accuracy=share + 0.005 * made.noise(rows),
    )
    assert not verdict_trend(run).improves
    assert diagnose(run).verdict.word in {Word.STALLED, Word.COLLAPSED}


def test_a_margin_that_rises_speaks_against_a_loss_that_does_not_fall():
    metrics = {"optimiser__loss": 0.75 + 0.02 * made.noise(300)}
    loss_alone = made.trace(Profile.SUPERVISED, **metrics)
    metrics["preference__margin"] = np.linspace(0.0, 0.16, 300) + 0.05 * made.noise(300, 2)
    assert isinstance(loss_not_decreasing.RULE.judge(loss_alone), Finding)
    assert loss_not_decreasing.RULE.judge(made.trace(Profile.SUPERVISED, **metrics)) == Clear()


def test_pairs_that_come_apart_are_learned_whatever_the_share_of_the_loss():
    count = 20
    margin = np.linspace(0.002, 0.03, count) + 0.001 * made.noise(count)
    loss = 0.693 - 0.5 * margin
    right = 0.7 + 0.1 * made.noise(count)
    metrics = {"preference__accuracy": right, "preference__margin": margin}
    run = made.trace(Profile.SUPERVISED, optimiser__loss=loss, **metrics)
    assert verdict_trend(run).metric == "preference/margin"
    assert diagnose(run).verdict.word is Word.LEARNING
    metrics["preference__margin"] = 0.002 + 0.001 * made.noise(count)
    still = made.trace(
        Profile.SUPERVISED, optimiser__loss=0.693 + 1e-4 * made.noise(count, 2), **metrics
    )
    assert not verdict_trend(still).improves


@pytest.mark.parametrize("floor", [0.0, -1.0])
def test_batches_that_mostly_earn_the_least_are_flat_however_the_others_scatter(floor):
    rng = np.random.default_rng(0)
    paid = np.where(rng.random(100) < 0.13, rng.random(100), 0.0)
    found = diagnose(replace(grpo(outcome__reward=floor + paid), lifecycle=Lifecycle(ended=True)))
    assert found.verdict.word is Word.STALLED
    (_, finding) = next(pair for pair in found.findings if pair[0].name == "no-learning")
    share = float((paid == 0).mean())
    assert f"{share:.0%} of the batches earn the least of all: they have no contrast" in (
        finding.evidence
    )


def test_batches_that_earn_the_least_less_and_less_are_not_flat():
    rng = np.random.default_rng(1)
    chance = np.linspace(0.02, 0.4, 100)  # of a batch with a right answer
    paid = np.where(rng.random(100) < chance, rng.random(100), 0.0)
    assert floor_share(grpo(outcome__reward=paid)) == 0
    assert verdict_trend(grpo(outcome__reward=paid)).state != "flat"
    control = made.trace(Profile.CONTROL_PPO, outcome__reward=np.where(paid > 0.9, paid, 0.0))
    assert floor_share(control) == 0, "no groups: a return of 0 teaches a critic"
