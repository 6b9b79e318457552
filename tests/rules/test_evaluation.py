"""evaluation-falls: training gets better, and what is held out does not."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.summary import tldr
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.curves import rises
from rlvitals.rules.outcome import plateau
from rlvitals.rules.outcome.evaluation_falls import RULE
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Profile


def share(low, high, count, spread=0.02, seed=3):
    return np.clip(np.linspace(low, high, count) + spread * made.noise(count, seed), 0, 1)


def sized(count, samples):
    """The columns by which a trainer says how large its evaluation is."""
    return {
        "throughput__eval_elapsed": np.full(count, 2.0),
        "throughput__eval_samples_per_second": np.full(count, samples / 2.0),
    }


def run(evaluated, profile=Profile.GRPO, **more):
    trained = share(0.2, 0.8, 150)
    return made.trace(profile, outcome__reward=trained, outcome__eval_reward=evaluated, **more)


def test_both_rise_and_nothing_is_said():
    assert isinstance(RULE.judge(run(share(0.2, 0.6, 40))), Clear)


def test_training_that_rises_over_a_falling_evaluation_is_an_error_where_it_is_proven():
    found = RULE.judge(run(share(0.6, 0.2, 60, seed=5)))
    assert found.severity is Severity.ERROR
    assert found.metric == "outcome/eval_reward"


def test_what_evaluation_had_gained_and_lost_is_a_warning_while_it_is_above_its_start():
    gained = np.concatenate((np.linspace(0.2, 0.6, 30), np.linspace(0.6, 0.35, 30)))
    found = RULE.judge(run(gained + 0.01 * made.noise(60)))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert 25 < found.began / made.STEP < 35


def test_trap_a_fall_within_the_binomial_error_of_a_small_evaluation_is_none():
    for seed in range(40):
        seen = np.random.default_rng(seed).binomial(30, 0.3, 40) / 30
        judged = RULE.judge(run(seen, **sized(40, 30)))
        assert getattr(judged, "severity", None) in {None, Severity.NOTE}, seed


def test_trap_a_flat_evaluation_of_another_set_is_no_fault():
    trained = share(0.2, 0.8, 150)
    aime = 0.1 + 0.02 * made.noise(40)
    judged = RULE.judge(
        made.trace(
            Profile.GRPO,
            outcome__reward=trained,
            **{"outcome/eval_task/aime/mean@8": np.clip(aime, 0, 1)},
        )
    )
    assert not isinstance(judged, Finding)


def test_trap_the_best_of_many_tries_may_fall_while_single_answers_get_better():
    judged = RULE.judge(
        made.trace(
            Profile.GRPO,
            outcome__reward=share(0.2, 0.8, 150),
            **{"outcome/eval_task/math/best@32": share(0.9, 0.6, 60)},
        )
    )
    assert isinstance(judged, Undecided)


@pytest.mark.parametrize(
    ("evaluated", "says"),
    [
        ({"aime/mean@8": 0.1 + 0.01 * made.noise(40)}, "held-out aime/mean@8 does not follow: "),
        (
            {"math/mean@8": share(0.2, 0.5, 60), "math/best@8": share(0.9, 0.6, 60)},
            "; held-out math/best@8 falls: ",
        ),
        ({"math/mean@8": share(0.2, 0.5, 60), "aime/mean@8": 0.1 + 0.01 * made.noise(40)}, ""),
    ],
)
def test_what_evaluations_do_beside_a_training_that_rises_is_said(evaluated, says):
    sets = {f"outcome/eval_task/{name}": values for name, values in evaluated.items()}
    run = made.trace(Profile.GRPO, outcome__reward=share(0.2, 0.8, 150), **sets)
    (reward,) = [s for s in tldr(run) if s.topic == "reward"]
    assert says in reward.text
    assert ("held-out" in reward.text, "Learning works" in reward.text) == (bool(says), not says)


def test_the_same_quantity_proven_flat_below_training_is_a_note():
    found = RULE.judge(run(0.2 + 0.01 * made.noise(100, 6)))
    assert found.severity is Severity.NOTE
    assert "does not follow" in found.summary


@pytest.mark.parametrize(("last", "fires"), [(0.40, True), (0.58, False)])
def test_a_few_evaluations_are_enough_where_their_size_is_known(last, fires):
    few = np.array([0.5, 0.6, 0.6, 0.5, last, last])
    judged = RULE.judge(run(few, **sized(6, 1000)))
    assert isinstance(judged, Finding) is fires
    assert not isinstance(RULE.judge(run(few)), Finding)


def test_kl_that_rises_beside_it_says_over_optimisation_first():
    found = RULE.judge(
        run(
            share(0.6, 0.2, 60, seed=5),
            policy__kl_to_reference_per_token=np.linspace(0.001, 0.3, 150),
        )
    )
    assert "over-optimisation" in found.causes[0]


def test_a_held_out_loss_that_rises_while_the_loss_falls_is_overfitting():
    found = RULE.judge(
        made.trace(
            Profile.SUPERVISED,
            optimiser__loss=np.linspace(2.0, 0.2, 200) + 0.05 * made.noise(200),
            optimiser__eval_loss=np.linspace(1.5, 2.5, 60) + 0.03 * made.noise(60),
        )
    )
    assert found.metric == "optimiser/eval_loss"
    assert found.severity is Severity.ERROR
    assert "held-out loss rises" in found.summary


def test_trap_a_grpo_evaluation_loss_is_no_score():
    judged = RULE.judge(
        made.trace(
            Profile.GRPO,
            outcome__reward=share(0.2, 0.8, 150),
            optimiser__eval_loss=np.linspace(-0.1, 0.4, 60) + 0.01 * made.noise(60),
        )
    )
    assert not isinstance(judged, Finding)


def test_trap_a_simulators_evaluation_that_swings_is_no_fall():
    swings = 200 + 60 * np.sin(np.arange(40) / 3) + 20 * made.noise(40)
    judged = RULE.judge(
        made.trace(outcome__return=made.rising(150), outcome__eval_return=swings[::-1])
    )
    assert not isinstance(judged, Finding)


def test_a_reward_that_jumps_where_the_data_begin_again_is_noted():
    epochs = np.linspace(0.01, 2.0, 200)
    jumps = np.where(epochs <= 1.0, 0.3, 0.6) + 0.03 * made.noise(200)
    found = RULE.judge(made.trace(Profile.GRPO, outcome__reward=jumps, progress__epoch=epochs))
    assert found.severity is Severity.NOTE
    assert abs(found.began / made.STEP - 101) <= 3
    steady = share(0.3, 0.6, 200)
    judged = RULE.judge(made.trace(Profile.GRPO, outcome__reward=steady, progress__epoch=epochs))
    assert isinstance(judged, Undecided)


def test_nothing_is_said_of_training_that_did_not_get_better():
    flat = made.trace(
        Profile.GRPO,
        outcome__reward=0.5 + 0.01 * made.noise(150),
        outcome__eval_reward=share(0.6, 0.2, 60),
    )
    assert not isinstance(RULE.judge(flat), Finding)


# -- what a run is judged by ----------------------------------------------------------------------


def scattered(seed=0, count=300):
    """A return that rises by as much as one stretch of arrivals differs from the next."""
    slow = np.convolve(made.noise(count + 40, seed), np.ones(40) / 40, "valid")[:count]
    return np.linspace(-200, -185, count) + 80 * slow + 5 * made.noise(count, seed + 1)


def test_a_run_whose_return_cannot_tell_is_judged_by_its_evaluation():
    evaluated = np.linspace(-80, -60, 25) + 0.5 * made.noise(25)
    for seed, state in ((0, "flat"), (4, "unknown")):
        trained = scattered(seed)
        assert verdict_trend(made.trace(outcome__return=trained)).state == state
        found = diagnose(made.trace(outcome__return=trained, outcome__eval_return=evaluated))
        assert found.verdict.word is Word.LEARNING
        assert found.verdict.why.startswith("eval return is rising: -")
        assert not found.findings


def test_a_short_bent_evaluation_is_seen_to_rise_and_noise_is_not():
    curve = -70 - 20 * np.exp(-np.arange(21) / 2)
    for seed in range(40):
        told = made.trace(outcome__eval_return=curve + made.noise(21, seed))
        assert verdict_trend(told).state == "rising", seed
        noise = -75 + 12 * made.noise(21, seed)
        assert not rises(noise, gain=0.0, low=-1.0, material=7.5, plain=7.5, anew=True), seed


def test_an_evaluation_outranks_a_return_that_rises_where_it_is_proven_flat():
    evaluated = np.full(60, 20.0)
    both = made.trace(outcome__return=made.rising(), outcome__eval_return=evaluated)
    assert verdict_trend(both).metric == "outcome/eval_return"
    assert verdict_trend(both).state == "flat"


@pytest.mark.parametrize(
    "evaluated", [np.linspace(20, 0, 8), 20 + 15 * made.noise(12)], ids=["few", "noisy"]
)
def test_an_evaluation_that_tells_nothing_leaves_the_word_to_the_return(evaluated):
    both = made.trace(outcome__return=made.rising(), outcome__eval_return=evaluated)
    assert verdict_trend(both).metric == "outcome/return"
    assert verdict_trend(both).state == "rising"


def test_a_return_that_stands_still_is_no_plateau_while_the_evaluation_rises():
    trained = np.concatenate((np.linspace(20, 100, 50), 100 + made.noise(150)))
    evaluated = np.linspace(20, 200, 40) + made.noise(40)
    assert isinstance(plateau.RULE.judge(made.trace(outcome__return=trained)), Finding)
    both = made.trace(outcome__return=trained, outcome__eval_return=evaluated)
    assert isinstance(plateau.RULE.judge(both), Clear)


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (20 + 5 * made.noise(30, 2), Severity.WARNING),  # the greedy policy stays where it was
        (np.linspace(20, 90, 30), Severity.NOTE),
        (np.linspace(20, 190, 30), None),
        (np.linspace(20, 190, 30) - 150, None),  # apart from the start on: another unit
    ],
    ids=["flat", "behind", "beside", "offset"],
)
def test_a_return_that_rises_away_from_its_evaluation_disagrees_with_it(level, severity):
    steps = 3 * made.STEP * (1 + np.arange(30))
    run = made.trace(outcome__return=made.rising(), outcome__eval_return=made.series(level, steps))
    found = RULE.judge(run)
    assert getattr(found, "severity", None) is severity
    assert severity is None or "training and evaluation disagree" in found.summary
