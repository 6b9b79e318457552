"""Language runs that log no outcome: the returns of a critic, and the loss of pairs alone."""

import math

import made_traces as made
import numpy as np
import pytest

import rlvitals
from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.rule import Severity
from rlvitals.types import Budget, Profile, Trace

GUESS = math.log(2)
RISING = np.linspace(-0.8, 0.2, 10) + 0.08 * made.noise(10, 2)
LEVEL = np.array([0.5, 0.3, 0.6, 0.4, 0.5, 0.4, 0.5, 0.3, 0.4, 0.4])
KL = np.full(10, 25.0)
PARTING = np.linspace(0.0, 0.8, 9)  # margins


def old_ppo(returns, kl=None, **metrics):
    kl = np.full(len(returns), 25.0) if kl is None else kl
    return made.trace(
        Profile.RLHF_PPO, value__return_mean=returns, policy__kl_to_reference=kl, **metrics
    )


def pairs(losses, held_out=None, settings=None, **metrics):
    settings = {"algorithm": "dpo"} if settings is None else settings
    held_out = {} if held_out is None else {"optimiser__eval_loss": held_out}
    metrics = {"optimiser__loss": losses, **held_out, **metrics}
    return made.trace(Profile.SUPERVISED, settings, **metrics)


def word(run: Trace):
    return diagnose(run).verdict.word


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        (RISING, Word.LEARNING),
        (LEVEL, Word.STALLED),
        (np.linspace(0, 1, 200) + 0.3 * made.noise(200, 1), Word.LEARNING),
        (0.3 * made.noise(200, 1), Word.STALLED),
        (RISING[:9], Word.UNKNOWN),
    ],
)
def test_returns_are_the_outcome_of_a_ppo_that_logs_no_reward(returns, verdict):
    assert word(old_ppo(returns)) is verdict


@pytest.mark.parametrize("kl", [-KL, np.linspace(5, -20, 10), np.linspace(20, -8, 10)])
def test_trap_a_return_that_a_negative_kl_lifts_was_not_learned(kl):
    assert word(old_ppo(RISING, kl)) is Word.UNKNOWN


def test_trap_a_return_without_a_kl_is_not_judged():
    assert word(made.trace(Profile.RLHF_PPO, value__return_mean=RISING)) is Word.UNKNOWN


def test_trap_a_return_that_stays_while_the_kl_grows_is_not_flat():
    assert word(old_ppo(LEVEL, np.linspace(1, 20, 10))) is Word.UNKNOWN


def test_a_reward_is_asked_before_the_returns():
    run = old_ppo(np.linspace(0, 1, 40), outcome__reward=0.5 + 0.1 * made.noise(40, 4))
    assert verdict_trend(run).metric == "outcome/reward"


def test_noise_in_ten_returns_is_seldom_called_learning():
    words = [verdict_trend(old_ppo(made.noise(10, n))).state for n in range(300)]
    assert words.count("rising") <= 6


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        (0.69 - 0.25 * np.linspace(0, 1, 13) + 0.06 * made.noise(13, 3), Word.LEARNING),
        (np.array([0.68, 0.60, 0.52, 0.50, 0.49, 0.48]), Word.LEARNING),
        (GUESS + np.array([0.002, 0.0, 0.001]), Word.STALLED),
        (GUESS + 0.3 * made.noise(13, 4), Word.UNKNOWN),
        (np.array([0.5, 0.6]), Word.UNKNOWN),
    ],
)
def test_a_loss_of_pairs_is_judged_by_its_distance_from_a_guess(losses, verdict):
    assert word(pairs(losses)) is verdict


def test_noise_about_a_guess_is_seldom_called_learning():
    runs = (pairs(np.abs(GUESS + 0.15 * made.noise(13, n))) for n in range(300))
    assert sum(verdict_trend(run).state == "rising" for run in runs) <= 6


@pytest.mark.parametrize(
    ("held_out", "verdict"),
    [
        (np.array([0.64, 0.61, 0.60, 0.600, 0.601, 0.600]), Word.CONVERGED),
        (np.array([0.66, 0.63, 0.60, 0.57, 0.54]), Word.LEARNING),
        (np.array([0.64, 0.60, 0.66, 0.75, 0.90]), Word.UNKNOWN),  # learned by heart
        (GUESS + np.array([0.001, 0.002, 0.0, 0.001]), Word.STALLED),
    ],
)
def test_held_out_pairs_are_asked_before_those_trained_on(held_out, verdict):
    losses = np.linspace(0.7, 0.4, len(held_out))
    assert word(pairs(losses, held_out)) is verdict


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "dpo", "loss_type": "ipo"},
        {"algorithm": "dpo", "rpo_alpha": 1.0},
        {"algorithm": "sft"},
        {},
    ],
)
def test_trap_another_loss_below_ln_2_says_nothing(settings):
    losses = np.array([0.61, 0.60, 0.52, 0.53, 0.49, 0.50])
    assert word(pairs(losses, settings=settings)) is Word.UNKNOWN


def test_a_loss_that_begins_at_ln_2_is_one_of_pairs_whatever_the_settings_lack():
    losses = np.array([0.6931, 0.60, 0.52, 0.50, 0.49, 0.48])
    assert word(pairs(losses, settings={})) is Word.LEARNING


def test_a_loss_that_has_not_moved_early_in_a_run_is_not_flat():
    run = pairs(GUESS + np.array([0.002, 0.0, 0.001]))
    early = Trace(run.series, run.measured, run.settings, run.profile, Budget(90_000, "a setting"))
    assert word(early) is Word.UNKNOWN


def grpo(rewards, **metrics):
    return made.trace(Profile.GRPO, outcome__reward=rewards, **metrics)


@pytest.mark.parametrize("count", [10, 18, 24])
def test_a_few_rows_that_end_no_higher_than_they_began_are_flat_without_an_alarm(count):
    steps, rows = np.arange(count), 0.3 * made.noise(count, 5)
    rows -= np.polyval(np.polyfit(steps, rows, 1), steps) + 0.01 * steps
    diagnosis = diagnose(grpo(rows))
    assert diagnosis.verdict.word is Word.STALLED
    assert all(finding.severity < Severity.WARNING for _, finding in diagnosis.findings)
    first, _, last = (float(third.mean()) for third in np.array_split(rows, 3))
    assert f"shows no gain: {first:.4g} to {last:.4g}" in diagnosis.verdict.why


def test_more_rows_that_end_no_higher_are_flat_where_no_scatter_of_responses_is_logged():
    rows = 0.3 * made.noise(40, 3)
    rows -= np.polyval(np.polyfit(np.arange(40), rows, 1), np.arange(40)) + 0.002 * np.arange(40)
    assert word(grpo(rows)) is Word.STALLED
    scattered = grpo(rows, reward__std=np.full(40, 0.1))  # by more than its responses explain
    assert verdict_trend(scattered).state == "unknown"
    verdict = diagnose(scattered).verdict
    assert verdict.word is Word.STALLED
    assert "probably does not improve" in verdict.why


@pytest.mark.parametrize(
    ("margins", "losses", "accuracies", "verdict"),
    [
        (PARTING, np.linspace(0.69, 0.6, 9), np.linspace(0.5, 1.0, 9), Word.LEARNING),
        (PARTING, np.linspace(0.69, 0.6, 9), np.full(9, 0.5), Word.UNKNOWN),
        (0.1 * made.noise(9, 4), 0.6 + 0.1 * made.noise(9, 2), np.full(9, 0.7), Word.UNKNOWN),
    ],
)
def test_few_rows_of_pairs_are_told_by_the_order_of_their_margins(
    margins, losses, accuracies, verdict
):
    metrics = {"preference__margin": margins, "preference__accuracy": accuracies}
    run = pairs(losses, settings={}, **metrics)
    assert word(run) is verdict


def held_out(losses, margins=None, accuracies=None):
    columns = {"preference__eval_margin": margins, "preference__eval_accuracy": accuracies}
    logged = {name: values for name, values in columns.items() if values is not None}
    return pairs(np.linspace(0.6, 0.1, len(losses)), losses, {}, **logged)


def test_margins_of_held_out_pairs_are_told_by_their_order_where_no_share_is_logged():
    count = np.arange(15)
    margins = 0.06 * count + 0.08 * (-1.0) ** count
    falling = 0.5 - 0.006 * count + 0.008 * (-1.0) ** count
    level = pairs(np.full(15, 0.5), falling, {}, preference__eval_margin=margins)
    assert word(level) is Word.LEARNING
    assert "eval margin rises over 15 evaluations: 0.08 to 0.92" in diagnose(level).verdict.why
    rising = pairs(np.full(15, 0.5), falling[::-1], {}, preference__eval_margin=margins)
    assert word(rising) is not Word.LEARNING


@pytest.mark.parametrize(
    ("count", "last", "verb"),
    [
        (7, 0.55, "falls"),
        (7, 0.645, "does not rise"),
        (15, 0.645, "does not improve"),
        (15, 0.55, ""),
    ],
)
def test_a_held_out_loss_that_rises_is_no_learning_whatever_the_training_loss(count, last, verb):
    run = held_out(np.linspace(0.67, 1.05, count), accuracies=np.linspace(0.64, last, count))
    verdict = diagnose(run).verdict
    assert verdict.word is Word.STALLED
    assert verb in verdict.why


def test_a_held_out_loss_that_rises_while_more_pairs_are_ordered_rightly_is_left_to_others():
    run = held_out(np.linspace(0.67, 1.05, 15), accuracies=np.linspace(0.64, 0.8, 15))
    assert word(run) is Word.LEARNING


def test_a_margin_that_soon_left_0_and_stays_holds_its_best():
    margin = 0.5 * (1 - np.exp(-np.arange(200) / 12)) + 0.3 * made.noise(200, 3)
    losses = GUESS - 0.02 * margin + 0.02 * made.noise(200, 4)
    losses[0], margin[0] = GUESS, 0.0
    run = pairs(losses, settings={}, preference__margin=margin)
    assert word(run) is Word.PLATEAU
    assert "margin rises early and stays" in diagnose(run).verdict.why
    level = pairs(losses, settings={}, preference__margin=0.5 + 0.3 * made.noise(200, 3))
    assert "rises early" not in diagnose(level).verdict.why


@pytest.mark.parametrize(
    ("losses", "held_out_losses", "verdict"),
    [
        ([1.07, 0.96, 0.9, 0.85, 0.8], None, Word.LEARNING),
        ([1.07, 0.96, 0.9, 0.85], None, Word.UNKNOWN),
        ([1.07, 0.96, 1.2, 0.85, 0.8], None, Word.UNKNOWN),
        ([1.07, 1.06, 1.055, 1.054, 1.053], None, Word.UNKNOWN),
        ([1.07, 0.96, 0.9, 0.85, 0.8], [0.9, 0.85, 0.84, 0.9, 0.95], Word.UNKNOWN),
        ([1.07, 0.96, 0.9, 0.85, 0.8], [0.9, 0.8, 0.7, 0.6, 0.5], Word.LEARNING),
    ],
)
def test_few_losses_of_epochs_are_told_by_their_order(losses, held_out_losses, verdict):
    columns = {"optimiser__loss": losses}
    if held_out_losses is not None:
        columns["optimiser__eval_loss"] = held_out_losses
    run = made.trace(Profile.SUPERVISED, {"algorithm": "sft"}, **columns)
    assert rlvitals.diagnose(run, live=False).verdict.word is verdict
    assert word(run) is Word.UNKNOWN  # they may be the start of a run that goes on


def test_trap_few_rows_that_rise_at_once_are_not_flat():
    rows = np.concatenate([[-3.0, -3.2], np.linspace(0.3, -0.3, 10)])
    assert verdict_trend(grpo(rows)).state != "flat"


def test_noise_that_rises_by_two_of_its_scatters_is_seldom_called_flat():
    runs = (grpo(made.noise(20, n) + np.linspace(0, 2, 20)) for n in range(300))
    assert sum(verdict_trend(run).state == "flat" for run in runs) <= 8


def test_a_steep_line_tells_of_few_rows():
    early, late = [1.0, 1.05, 1.35, 1.25, 1.5, 1.4, 0.95], [1.2, 1.75, 1.35, 1.9, 1.7, 1.8, 1.75]
    assert word(grpo(np.array([*early, *late, 1.6]))) is Word.LEARNING


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ([0.88, 0.94, 0.86, 0.81, 0.79, 0.75, 0.76, 0.755], Word.LEARNING),
        ([0.88, 0.94, 0.86, 0.91, 0.79, 0.85, 0.76, 0.855], Word.UNKNOWN),
    ],
)
def test_few_evaluations_are_told_by_the_order_of_held_out_losses(losses, verdict):
    shares = np.array([0.57, 0.55, 0.63, 0.62, 0.64, 0.63, 0.64, 0.64])
    margins = np.array([0.2, 0.3, 1.0, 0.8, 1.0, 0.8, 0.9, 0.9])
    evaluated = {"preference__eval_accuracy": shares, "preference__eval_margin": margins}
    run = pairs(np.full(8, 0.8), np.array(losses), settings={}, **evaluated)
    assert word(run) is verdict


def test_a_margin_tells_where_a_scattered_loss_does_not_contradict_it():
    scatter = np.where(np.arange(300) % 2, 1.0, -1.0) * 0.5
    margin = np.linspace(0, 0.15, 300) + 0.05 * made.noise(300, 6)
    hidden = 0.75 + scatter + 0.2 * made.noise(300, 7)
    loss_rises = GUESS + np.linspace(0, 0.4, 300) + 0.02 * made.noise(300, 8)
    assert word(pairs(hidden, settings={}, preference__margin=margin)) is Word.LEARNING
    assert word(pairs(loss_rises, settings={}, preference__margin=margin)) is not Word.LEARNING
