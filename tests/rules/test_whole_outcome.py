"""What a whole run's outcome says of its verdict and of the symptoms beside it."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.verdict import Word
from rlvitals.rules.rule import Severity
from rlvitals.types import Lifecycle, Profile

WARNED = Severity.WARNING


def judged(profile=Profile.OFF_POLICY, **metrics):
    """Return the verdict of a finished run, and the severity of each finding."""
    trace = replace(made.trace(profile, **metrics), lifecycle=Lifecycle(ended=True))
    found = diagnose(trace)
    return found.verdict.word, {rule.name: finding.severity for rule, finding in found.findings}


def peak(count=100):
    """Return evaluations that climb, stay up for a fifth of the run and are lost: [count]."""
    course = np.interp(
        np.arange(count), [0, 0.4, 0.5, 0.7, 0.75, 1] * np.array(count), [0, 0, 10, 10, 1, 1]
    )
    return course + 2.0 * made.noise(count, 3)


@pytest.mark.parametrize("offset", [-50.0, 0.0, 50.0])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e3])
def test_evaluations_that_lost_their_best_for_a_fifth_of_the_run_have_collapsed(offset, scale):
    word, severities = judged(outcome__eval_return=scale * (peak() + offset))
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] is Severity.ERROR


def test_evaluations_that_keep_their_best_have_not():
    keeps = np.interp(np.arange(100), [0, 40, 50, 99], [0, 0, 10, 10]) + 2.0 * made.noise(100, 3)
    word, severities = judged(outcome__eval_return=keeps)
    assert word in {Word.LEARNING, Word.PLATEAU}
    assert "return-collapse" not in severities


def test_one_outlier_or_every_second_evaluation_changes_no_collapse():
    values = peak(200)
    outlier = values.copy()
    outlier[30] = 1e4
    for changed in (values, values[::2], outlier):
        assert judged(outcome__eval_return=changed)[0] is Word.COLLAPSED


def test_a_collapse_in_evaluations_alone_is_found_beside_a_steady_training():
    evaluations = np.r_[np.full(20, -80.0), np.full(20, -40.0), np.full(20, -80.0)]
    word, severities = judged(
        Profile.CONTROL_PPO,
        outcome__return=made.flat(60, -70.0),
        outcome__eval_return=evaluations + made.noise(60),
    )
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] is Severity.ERROR


def test_a_return_that_is_won_and_lost_again_and_again_is_unstable_wherever_it_ends():
    swings = np.tile(np.r_[np.full(14, -80.0), np.full(14, -40.0)], 4) + made.noise(112)
    word, severities = judged(outcome__return=swings)
    assert word is Word.UNSTABLE
    assert severities["return-oscillates"] is WARNED


def test_single_low_rows_of_a_small_batch_are_not_instability():
    # Rewards of a few answers a row: an unlucky row is followed by an ordinary one.
    rewards = 0.9 + 0.04 * made.noise(50, 2)
    rewards[[5, 15, 25, 35, 44]] = 0.1
    severities = judged(Profile.GRPO, outcome__reward=rewards)[1]
    assert severities.get("return-oscillates", Severity.NOTE) < WARNED


def test_single_lucky_rows_of_a_dead_policy_are_not_won_and_lost():
    rewards = -6.54 - 0.04 * (made.noise(50, 2) > 0.6)
    rewards[[15, 22, 31]] = -5.92
    word, severities = judged(Profile.UNKNOWN, outcome__reward=rewards)
    assert word is not Word.UNSTABLE
    assert severities.get("return-oscillates", Severity.NOTE) < WARNED


@pytest.mark.parametrize("count", [50, 100, 400])
def test_games_that_are_won_or_lost_by_chance_are_not_unstable(count):
    # Of two values, the median of differences says nothing of the scatter.
    for seed in range(20):
        luck = np.random.default_rng(seed).random(count) < 0.5
        values = np.where(luck, -10.0, 10.0) + made.noise(count, seed)
        severities = judged(Profile.OFF_POLICY, outcome__return=values)[1]
        assert severities.get("return-oscillates", Severity.NOTE) < WARNED


def test_a_rise_with_dips_on_its_way_is_not_unstable():
    dips = np.linspace(0, 100, 120) + 8.0 * np.sin(np.arange(120) / 3) + made.noise(120)
    word, severities = judged(outcome__return=dips)
    assert word is Word.LEARNING
    assert severities.get("return-oscillates", Severity.NOTE) < WARNED


def test_a_rise_within_the_scatter_of_single_values_is_no_learning():
    # Twice its standard error, a third of the standard deviation of one evaluation.
    values = 900 + np.linspace(-40, 40, 250) + 220 * made.noise(250, 3)
    assert judged(outcome__eval_return=values)[0] is Word.STALLED


def test_the_same_rise_is_learning_once_it_is_proven():
    values = 900 + np.linspace(-40, 40, 4000) + 220 * made.noise(4000, 5)
    assert judged(outcome__eval_return=values)[0] in {Word.LEARNING, Word.PLATEAU}


def test_a_reward_that_wanders_without_a_trend_is_stalled():
    wide = 2800 + 500 * made.noise(101, 3)
    word, severities = judged(Profile.UNKNOWN, outcome__reward=wide)
    assert word is Word.STALLED
    assert severities["no-learning"] is WARNED


def test_a_return_whose_success_does_not_follow_is_not_learning():
    word, severities = judged(
        outcome__return=made.rising(60, 60.0),
        outcome__success_rate=np.clip(0.01 + 0.01 * made.noise(60), 0, 1),
    )
    assert severities["return-up-success-flat"] is WARNED
    assert word is Word.STALLED


def test_a_storm_of_kl_did_no_harm_where_the_run_holds_what_it_gained():
    kl = np.full(100, 0.01)
    kl[[60, 63, 66, 69, 72]] = 0.4
    held = np.r_[np.linspace(-1200, -200, 50), np.full(50, -200.0)]
    severities = judged(
        Profile.CONTROL_PPO,
        outcome__return=held + 20 * made.noise(100),
        policy__approx_kl=kl,
    )[1]
    assert severities["kl-spike"] is Severity.NOTE


def test_low_entropy_is_no_collapse_where_the_whole_run_rose():
    # A mean of few first episodes is high by luck; the rise from what they fell to is real.
    course = np.r_[np.linspace(6, -27, 25), np.full(15, -27.0), np.linspace(-27, 0.6, 20)]
    entropy = np.r_[np.full(45, 1.9), np.linspace(1.9, 0.04, 15), np.full(40, 0.04)]
    severities = judged(
        Profile.CONTROL_PPO,
        outcome__return=np.r_[course, np.full(40, 0.6)] + 0.05 * made.noise(100),
        exploration__entropy=entropy,
    )[1]
    assert severities.get("entropy-collapse", Severity.NOTE) < WARNED


def test_a_training_return_that_is_one_number_is_a_note_beside_evaluations_that_rise():
    rises = np.linspace(-150, -20, 50) + made.noise(50)
    severities = judged(outcome__return=np.full(50, -150.0), outcome__eval_return=rises)[1]
    assert severities.get("constant-reward", Severity.NOTE) < WARNED


def test_a_value_loss_that_jumps_once_without_a_fall_is_a_note():
    loss = np.full(200, 1e-4)
    loss[70] = 0.02
    wanders = 0.15 + 0.04 * np.sin(np.arange(200) / 12) + 0.01 * made.noise(200)
    severities = judged(Profile.CONTROL_PPO, outcome__return=wanders, value__loss=loss)[1]
    assert severities.get("value-loss-explosion", Severity.NOTE) < WARNED


def test_a_mean_over_the_first_episodes_does_not_collapse():
    # One success among the first eight episodes: the mean over all of them falls as 1 / n.
    mean = np.r_[0.0, 0.0, 0.0, 0.0, 1.2 * 8 / np.arange(8, 34)]
    trace = made.trace(
        Profile.OFF_POLICY,
        outcome__return=made.series(mean, np.arange(1, 31)),
        outcome__episode_length=made.series(np.full(30, 1.4), np.arange(1, 31)),
    )
    told = replace(trace.measured["outcome/return"], window=100)
    trace = replace(trace, measured={**trace.measured, "outcome/return": told})
    found = diagnose(replace(trace, lifecycle=Lifecycle(ended=True)))
    assert "return-collapse" not in {rule.name for rule, _ in found.findings}


@pytest.mark.parametrize(("late", "severity"), [(0.8, Severity.NOTE), (0.3, WARNED)])
def test_a_critic_that_explains_much_at_the_end_is_a_note(late, severity):
    explained = np.r_[np.full(60, 0.02), np.full(40, late)] + 0.01 * made.noise(100)
    severities = judged(
        Profile.CONTROL_PPO,
        outcome__return=made.flat(100, 20.0) - np.linspace(0, 9, 100),
        value__explained_variance=explained,
        value__loss=np.linspace(10, 1, 100),
    )[1]
    assert severities["critic-explains-nothing"] is severity


def test_one_outlier_is_no_best_that_was_lost():
    values = np.r_[np.linspace(1, 7, 100), np.full(92, 7.0)] + 0.3 * made.noise(192)
    values[170] = 210.0
    word, severities = judged(Profile.CONTROL_PPO, outcome__return=values)
    assert word in {Word.LEARNING, Word.PLATEAU}
    assert "return-collapse" not in severities


@pytest.mark.parametrize("offset", [-2000.0, -200.0, 0.0, 200.0])
def test_an_offset_hides_no_collapse_of_a_return(offset):
    course = np.interp(np.arange(200), [0, 80, 130, 140, 199], [0, 15, 15, 0, 0])
    word, severities = judged(outcome__return=course + made.noise(200) + offset)
    assert word is Word.COLLAPSED
    assert severities["return-collapse"] is Severity.ERROR


def test_a_flat_outcome_is_stalled_however_the_optimiser_shakes():
    loss = 1.0 + 0.05 * made.noise(4000, 2)
    loss[[1500, 2000, 2500, 3000, 3500]] = 1e4
    word, severities = judged(
        Profile.CONTROL_PPO, outcome__return=made.flat(4000), value__loss=loss
    )
    assert "no-learning" in severities
    assert word is Word.STALLED


def test_evaluations_where_training_rose_to_hold_their_best():
    trained = np.r_[np.linspace(0, 19, 60), np.full(140, 19.4)] + 0.3 * made.noise(200)
    tests = 19.4 + 0.1 * made.noise(200, 3)
    assert judged(outcome__return=trained, outcome__eval_return=tests)[0] is Word.PLATEAU


def mean_of_last(values, window=100):
    """Return the mean over the last `window` episodes after each of them, as SB3 logs it."""
    sums = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


@pytest.mark.parametrize("seed", [10, 13, 18, 42, 55])  # collapses, without a known window
def test_the_slow_swings_of_a_mean_over_a_hundred_episodes_are_no_collapse(seed):
    episodes = 24.0 * made.noise(150, seed) - 45.0
    found = made.trace(
        Profile.OFF_POLICY,
        outcome__return=mean_of_last(episodes),
        outcome__episode_length=np.full(150, float(made.STEP)),
    )
    measured = {"outcome/return": replace(found.measured["outcome/return"], window=100)}
    trace = replace(found, measured=measured, lifecycle=Lifecycle(ended=True))
    assert diagnose(trace).verdict.word is not Word.COLLAPSED


def test_forty_returns_far_below_the_first_ones_are_stalled():
    course = -154.0 - 1000.0 * (1 - np.exp(-np.arange(40) / 3.0)) - 4.0 * np.arange(40)
    word, severities = judged(outcome__return=course + 12.0 * made.noise(40))
    assert word is Word.STALLED
    assert severities["no-learning"] is WARNED


def test_a_return_that_is_full_from_the_first_row_on_is_not_stalled():
    full = np.where(made.noise(40) > 0, 30.0, 29.9)
    metrics = {"outcome__return": full, "value__explained_variance": -np.ones(40)}
    lengths = np.full(40, 30.0)
    word, severities = judged(Profile.ON_POLICY, **metrics, outcome__episode_length=lengths)
    assert word is Word.PLATEAU
    assert all(severity is Severity.NOTE for severity in severities.values())
    for less in (full - 4.0, np.full(40, 30.0)):  # no whole number a step; never varies
        metrics["outcome__return"] = less
        word, _ = judged(Profile.ON_POLICY, **metrics, outcome__episode_length=lengths)
        assert word is not Word.PLATEAU


def test_a_few_values_that_end_at_exactly_their_best_are_a_plateau():
    rise = np.linspace(-960.0, -110.0, 9)
    stuck = np.r_[rise, -100.0, -100.0, -100.0, -110.0, -100.0, -100.0, -100.0]
    assert judged(outcome__return=stuck)[0] is Word.PLATEAU
    assert judged(outcome__return=np.r_[rise, np.linspace(-100, -90, 7)])[0] is Word.LEARNING


def risen(end, count=120, noise=0.3, seed=3):
    """Return returns that climb from 0 to 10 in a fifth of the run and go to `end` in the rest."""
    course = np.interp(np.arange(count), [0, count // 5, count - 1], [0, 10, end])
    return course + noise * made.noise(count, seed)


def test_a_steady_decline_since_the_best_is_noted_and_not_praised():
    trace = replace(
        made.trace(Profile.CONTROL_PPO, outcome__return=risen(7.5)), lifecycle=Lifecycle(ended=True)
    )
    diagnosis = diagnose(trace)
    (decline,) = (f for rule, f in diagnosis.findings if rule.name == "return-collapse")
    assert decline.severity is Severity.NOTE
    assert decline.began in range(20_000, 40_000), "since the best"
    assert diagnosis.verdict.word is Word.LEARNING
    sentence = diagnosis.tldr[0]
    assert sentence.sign == "neutral"
    assert "of what was gained is lost" in sentence.text
    assert "works" not in sentence.text


def test_a_level_that_is_held_has_no_decline():
    noted = [
        seed
        for seed in range(60)
        if "return-collapse"
        in judged(Profile.CONTROL_PPO, outcome__return=risen(10, noise=1.0, seed=seed))[1]
    ]
    assert len(noted) <= 1


@pytest.mark.parametrize(("end", "is_learning"), [(-17.7, True), (-19.5, False)])
def test_a_small_part_of_a_known_way_is_learned_while_it_goes_on(end, is_learning):
    course = np.interp(np.arange(300), [0, 180, 299], [-20.5, -20.5, end])
    trace = made.trace(
        Profile.OFF_POLICY,
        {"env_id": "PongNoFrameskip-v4"},
        outcome__return=course + made.noise(300, 3),
    )
    diagnosis = diagnose(replace(trace, lifecycle=Lifecycle(ended=True)))
    assert (diagnosis.verdict.word is Word.LEARNING) is is_learning
