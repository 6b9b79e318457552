"""The optimiser's rules: the traps they once fell into, and the bounds they keep."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules import CATALOGUE
from rlvitals.rules.optimiser import (
    gradient_always_clipped,
    gradient_explosion,
    gradient_not_settling,
    learning_rate_jump,
    loss_not_decreasing,
    loss_oscillating,
    not_a_number,
    policy_loss_explosion,
    policy_loss_flat,
)
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Profile

NUMBER = not_a_number.RULE
EXPLOSION = gradient_explosion.RULE
BETTER_STILL = np.linspace(0.2, 0.9, 200) + 0.01 * made.noise(200, 3)
CLIPPED = gradient_always_clipped.RULE
SETTLING = gradient_not_settling.RULE
RATE = learning_rate_jump.RULE
FALLS = loss_not_decreasing.RULE
SWINGS = loss_oscillating.RULE
BIG = policy_loss_explosion.RULE
NOTHING = policy_loss_flat.RULE
VALUE = tuple(r for r in CATALOGUE if r.check.__module__.startswith("rlvitals.rules.value"))
ALL = (NUMBER, EXPLOSION, CLIPPED, SETTLING, RATE, FALLS, SWINGS, BIG, NOTHING)


def some(count=100, level=1.0, seed=3):
    return level * np.exp(0.3 * made.noise(count, seed))


def with_(values, at, what):
    values = np.array(values, dtype=np.float64)
    values[at] = what
    return values


# not-a-number


@pytest.mark.parametrize("metric", ["optimiser__loss", "policy__approx_kl", "value__loss"])
def test_a_loss_or_kl_that_is_nan_to_the_end_is_an_error(metric):
    found = NUMBER.judge(made.trace(**{metric: with_(some(), slice(60, None), np.nan)}))
    assert found.severity is Severity.ERROR
    assert found.began == 61 * made.STEP


def test_a_loss_that_is_nan_from_the_first_step_is_an_error_not_undecided():
    assert NUMBER.judge(made.trace(optimiser__loss=np.full(20, np.nan))).severity is Severity.ERROR


@pytest.mark.parametrize("count", [1, 5])
def test_infinite_gradients_now_and_then_are_a_scaler_that_skips(count):
    at = np.linspace(5, 80, count).astype(int)
    found = NUMBER.judge(made.trace(optimiser__grad_norm=with_(some(), at, np.inf)))
    assert found.severity is Severity.NOTE


def test_rllib_s_nan_return_without_a_finished_episode_is_healthy():
    run = made.trace(outcome__return=with_(made.rising(), slice(0, 15), np.nan), value__loss=some())
    assert isinstance(NUMBER.judge(run), Clear)


def test_returns_that_become_nan_while_episodes_end_are_an_error():
    returns = with_(made.rising(), slice(90, None), np.nan)
    found = NUMBER.judge(made.trace(outcome__return=returns, outcome__episode_length=some()))
    assert found.severity is Severity.ERROR
    assert found.began == 91 * made.STEP
    lengths = with_(some(), slice(90, None), np.nan)  # no episode ended: RLlib logs NaN for both
    run = made.trace(outcome__return=returns, outcome__episode_length=lengths, value__loss=some())
    assert isinstance(NUMBER.judge(run), Clear)


def test_metrics_none_of_which_ever_was_a_number_were_not_read():
    names = ("optimiser__loss", "optimiser__grad_norm", "outcome__return", "value__mean")
    never = dict.fromkeys(names, np.full(20, np.nan))
    assert NUMBER.judge(made.trace(**never)).severity is Severity.NOTE
    trained = {**never, "outcome__return": made.rising(20)}
    assert NUMBER.judge(made.trace(**trained)).severity is Severity.ERROR


def test_a_kl_that_is_never_computed_is_a_note():
    run = made.trace(policy__kl_to_reference=np.full(20, np.nan), optimiser__loss=some(20))
    assert NUMBER.judge(run).severity is Severity.NOTE


def test_entropy_missing_in_a_hundred_rows_is_healthy():
    run = made.trace(
        exploration__entropy=with_(some(300), slice(50, 150), np.nan), policy__loss=some(300)
    )
    assert isinstance(NUMBER.judge(run), Clear)


def test_explained_variance_that_is_nan_says_that_returns_had_no_variance():
    ev = with_(some(), slice(1, None), np.nan)
    found = NUMBER.judge(made.trace(value__loss=some(), value__explained_variance=ev))
    assert found.severity is Severity.NOTE
    assert "zero variance" in found.summary


def test_nothing_logged_is_undecided():
    assert isinstance(NUMBER.judge(made.trace(outcome__return=made.rising())), Undecided)


# gradients


def jumping(count, outcome, settings=None):
    norms = with_(some(), 60 + 3 * np.arange(count), 50.0)
    return made.trace(settings=settings, optimiser__grad_norm=norms, outcome__return=outcome)


@pytest.mark.parametrize(
    ("count", "outcome", "severity"),
    [
        (1, made.falling(), Severity.NOTE),
        (2, made.falling(), Severity.NOTE),
        (3, made.falling(), Severity.ERROR),
        (3, made.flat(), Severity.WARNING),
        (3, made.rising(), Severity.NOTE),
    ],
)
def test_how_often_gradients_jump_and_the_outcome_decide(count, outcome, severity):
    assert EXPLOSION.judge(jumping(count, outcome)).severity is severity


@pytest.mark.parametrize(
    ("peak", "count", "is_told"),
    [
        (40.0, 3, True),
        (40.0, 2, False),
        (6.0, 3, False),  # twice its first points
        (0.3, 20, False),  # many times what it had come down to
    ],
)
def test_a_supervised_loss_far_above_its_first_points_is_evidence(peak, count, is_told):
    loss = with_(np.geomspace(3.0, 0.01, 120), 60 + np.arange(count), peak)
    norms = with_(some(), 60 + 3 * np.arange(3), 50.0)
    run = made.trace(Profile.SUPERVISED, optimiser__grad_norm=norms, optimiser__loss=loss)
    sentence = "the loss reaches 40, from 2.73 in its first five points"
    assert (sentence in EXPLOSION.judge(run).evidence) is is_told


def test_gradients_below_the_clip_limit_do_not_explode():
    assert isinstance(EXPLOSION.judge(jumping(3, made.flat(), {"max_grad_norm": 60.0})), Clear)


@pytest.mark.parametrize(("peaks", "kind"), [(6.0, Clear), (30.0, Finding)])
def test_peaks_as_high_as_ever_above_a_median_that_fell_are_no_jumps(peaks, kind):
    norms = np.where(np.arange(200) % 5, 1.0, 8.0)
    norms[100:] = 0.1
    norms[120::20] = peaks
    solved = made.trace(Profile.PSR, optimiser__grad_norm=norms, outcome__accuracy=BETTER_STILL)
    assert isinstance(EXPLOSION.judge(solved), kind)
    worse = made.trace(
        Profile.PSR, optimiser__grad_norm=norms, outcome__accuracy=BETTER_STILL[::-1]
    )
    assert isinstance(EXPLOSION.judge(worse), Finding)


def test_solved_groups_without_a_gradient_are_no_baseline():
    norms = some()
    norms[::2] = 0.0
    norms[1::4] = 1e-12 * 0
    assert isinstance(EXPLOSION.judge(made.trace(optimiser__grad_norm=norms)), Clear)


def test_a_norm_that_creeps_up_explodes_as_well():
    norms = 1.04 ** np.arange(100) * some()
    found = EXPLOSION.judge(made.trace(optimiser__grad_norm=norms, outcome__return=made.flat()))
    assert found.severity is Severity.WARNING


def test_always_clipped_needs_the_limit_of_the_run():
    run = made.trace(optimiser__grad_norm=some(level=9.0), outcome__return=made.flat())
    answer = CLIPPED.judge(run)
    assert isinstance(answer, Undecided)
    assert answer.wants == ("max_grad_norm",)


@pytest.mark.parametrize(("outcome", "kind"), [(made.flat(), Finding), (made.rising(), Clear)])
def test_always_clipped_is_a_note_where_the_run_does_not_learn(outcome, kind):
    run = made.trace(
        settings={"max_grad_norm": 1.0},
        optimiser__grad_norm=some(level=9.0),
        outcome__return=outcome,
    )
    assert isinstance(CLIPPED.judge(run), kind)


def test_norms_logged_after_clipping_sit_at_their_limit():
    norms = np.minimum(some(level=90.0), 40.0)
    run = made.trace(optimiser__clipped_grad_norm=norms, outcome__return=made.flat())
    assert CLIPPED.judge(run).bound.value == 40.0


@pytest.mark.parametrize(("outcome", "kind"), [(made.flat(), Finding), (made.rising(), Clear)])
def test_growing_gradients_are_worth_a_note_where_nothing_is_gained(outcome, kind):
    norms = np.linspace(1, 3, 100) * some()
    run = made.trace(optimiser__grad_norm=norms, outcome__return=outcome)
    assert isinstance(SETTLING.judge(run), kind)


# learning-rate-jump


def test_a_rate_of_zero_in_every_update_is_a_warning_though_the_outcome_is_noise():
    found = RATE.judge(made.trace(optimiser__learning_rate=np.zeros(60), outcome__reward=some(60)))
    assert found.severity is Severity.WARNING
    late = np.concatenate((np.full(30, 1e-3), np.zeros(30)))
    found = RATE.judge(made.trace(optimiser__learning_rate=late, outcome__reward=some(60)))
    assert found.severity is Severity.NOTE


def test_a_warm_up_is_healthy_and_so_is_a_decay_to_the_last_step():
    rates = np.concatenate(([0.0, 1e-6], np.linspace(1e-5, 1e-3, 8), np.linspace(1e-3, 0, 90)))
    assert isinstance(RATE.judge(made.trace(optimiser__learning_rate=rates)), Clear)


def test_a_step_decay_by_a_hundred_is_healthy():
    rates = np.repeat([1e-2, 1e-4], 50)
    assert isinstance(RATE.judge(made.trace(optimiser__learning_rate=rates)), Clear)


@pytest.mark.parametrize(
    ("kl", "outcome", "severity"),
    [
        (some(level=0.01), made.flat(), Severity.NOTE),
        (with_(some(level=0.01), 55, 5.0), made.flat(), Severity.WARNING),
        (with_(some(level=0.01), 55, 5.0), made.rising(), Severity.NOTE),
        (with_(some(level=0.01), 85, 5.0), made.flat(), Severity.NOTE),
    ],
)
def test_a_jump_is_a_warning_only_beside_a_spike_and_a_stalled_outcome(kl, outcome, severity):
    run = made.trace(
        optimiser__learning_rate=np.repeat([1e-4, 1e-2], 50),
        policy__approx_kl=kl,
        outcome__return=outcome,
    )
    assert RATE.judge(run).severity is severity


def test_a_rate_that_is_steered_by_the_kl_does_not_jump():
    steered = made.trace(optimiser__learning_rate=1e-3 * 10.0 ** (1.5 * np.sign(made.noise(100))))
    assert isinstance(RATE.check(steered), Clear)
    once = np.where(np.arange(100) < 50, 1e-4, 1e-2)
    jump = made.trace(optimiser__learning_rate=once)
    assert isinstance(RATE.check(jump), Finding)
    aimed = made.trace(settings={"desired_kl": 0.01}, optimiser__learning_rate=once)
    assert isinstance(RATE.check(aimed), Clear)


def test_a_rate_of_zero_for_a_third_of_the_run_is_noted():
    rates = np.concatenate((np.linspace(1e-3, 0, 66), np.zeros(34)))
    found = RATE.judge(made.trace(optimiser__learning_rate=rates))
    assert found.severity is Severity.NOTE
    assert found.began == 66 * made.STEP


@pytest.mark.parametrize(
    ("level", "outcome", "severity"),
    [
        (0.01, made.flat(), Severity.WARNING),
        (0.01, made.rising(), Severity.NOTE),
        (0.0, made.flat(), Severity.NOTE),  # no KL is ever seen: its digits may be too few
    ],
)
def test_a_rate_and_a_kl_of_zero_for_a_third_of_the_run_are_no_rounding(level, outcome, severity):
    rates = np.concatenate((np.full(66, 1e-3), np.zeros(34)))
    kl = np.where(rates > 0, level, 0.0)
    run = made.trace(optimiser__learning_rate=rates, policy__approx_kl=kl, outcome__return=outcome)
    assert RATE.judge(run).severity is severity


# losses


@pytest.mark.parametrize(
    ("digits", "zeros", "severity"),
    [(9, 70, Severity.WARNING), (9, 40, Severity.NOTE), (1, 70, Severity.NOTE)],
)
def test_a_schedule_that_is_over_at_half_of_the_run_is_a_warning(digits, zeros, severity):
    falls = np.linspace(1.0, 0.05, 100 - zeros).round(digits)
    run = made.trace(
        optimiser__learning_rate=np.append(falls, np.zeros(zeros)),
        outcome__return=10 + made.noise(100, 3),
    )
    assert learning_rate_jump.RULE.judge(run).severity is severity


def test_trap_a_loss_of_both_signs_is_that_of_a_policy():
    for level, kind in ((0.0, Undecided), (3.9, Finding)):
        loss = level + 0.1 * made.noise(100)
        assert isinstance(FALLS.judge(made.trace(Profile.SUPERVISED, optimiser__loss=loss)), kind)


def test_a_supervised_loss_that_stays_is_a_warning_and_one_that_falls_is_clear():
    stays = made.trace(Profile.SUPERVISED, optimiser__loss=3.9 + 0.01 * made.noise(100))
    falls = made.trace(Profile.SUPERVISED, optimiser__loss=np.linspace(3.9, 3.0, 100))
    assert FALLS.judge(stays).severity is Severity.WARNING
    assert isinstance(FALLS.judge(falls), Clear)


def test_an_on_policy_loss_is_no_score():
    assert not FALLS.applies(Profile.GRPO)
    assert not FALLS.applies(Profile.CONTROL_PPO)
    run = made.trace(Profile.NSR, optimiser__loss=np.full(100, 0.5), outcome__reward=made.flat())
    assert FALLS.judge(run).severity is Severity.NOTE


def test_a_young_run_has_not_failed_to_lower_its_loss():
    run = made.trace(Profile.SUPERVISED, optimiser__loss=np.full(30, 3.9))
    assert isinstance(FALLS.judge(run), Undecided)


def test_a_loss_is_not_asked_to_fall_in_a_warm_up():
    loss = 0.69 + 0.01 * made.noise(100)
    rising = np.linspace(0.0, 2e-7, 100)
    reached = np.minimum(rising, 1e-7)
    young, old = (
        made.trace(Profile.SUPERVISED, optimiser__loss=loss, optimiser__learning_rate=rate)
        for rate in (rising, reached)
    )
    assert isinstance(FALLS.judge(young), Undecided)
    assert FALLS.judge(old).severity is Severity.WARNING


@pytest.mark.parametrize("seed", range(20))
def test_white_noise_does_not_oscillate(seed):
    run = made.trace(value__loss=some(200, 5.0, seed), outcome__return=made.flat(200))
    assert isinstance(SWINGS.judge(run), Clear)


def swinging():
    spread = np.concatenate((np.full(50, 0.05), np.full(50, 0.8)))
    return np.exp(spread * made.noise(100))


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [(made.flat(), Severity.NOTE), (made.falling(), Severity.WARNING), (made.rising(), None)],
)
def test_a_loss_that_grows_rougher_is_a_fault_only_where_the_run_stalls(outcome, severity):
    """Of 100 values of white noise whether they are flat cannot be told."""
    answer = SWINGS.judge(made.trace(value__loss=swinging(), outcome__return=outcome))
    if severity is None:
        assert isinstance(answer, Clear)
    else:
        assert isinstance(answer, Finding)
        assert answer.severity is severity


def test_policy_losses_are_noise_around_zero_and_not_looked_at():
    run = made.trace(policy__loss=swinging() - 1, outcome__return=made.flat())
    assert isinstance(SWINGS.judge(run), Undecided)


@pytest.mark.parametrize(
    ("settings", "kind"), [({}, Finding), ({"normalize_advantage": False}, Undecided)]
)
def test_a_policy_loss_of_3_is_an_explosion_only_with_normalised_advantages(settings, kind):
    loss = with_(0.01 * made.noise(100), [60, 63, 66], 3.0)
    run = made.trace(settings=settings, policy__loss=loss, outcome__return=made.falling())
    answer = BIG.judge(run)
    assert isinstance(answer, kind)
    assert kind is Undecided or answer.severity is Severity.ERROR
    assert not BIG.applies(Profile.ON_POLICY)


def test_on_policy_grpo_has_a_loss_of_0_by_construction():
    run = made.trace(
        Profile.GRPO,
        optimiser__loss=np.zeros(100),
        optimiser__grad_norm=some(),
        outcome__reward=made.flat(),
    )
    assert isinstance(NOTHING.judge(run), Clear)


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [
        (made.flat(), Severity.WARNING),
        (np.zeros(100), Severity.WARNING),
        (made.rising(), Severity.NOTE),
    ],
)
def test_groups_without_a_gradient_are_weighed_by_the_outcome(outcome, severity):
    run = made.trace(Profile.GRPO, optimiser__grad_norm=np.zeros(100), outcome__reward=outcome)
    assert NOTHING.judge(run).severity is severity


@pytest.mark.parametrize(
    ("kl", "kind"), [(np.zeros(100), Finding), (some(level=0.01), Clear), (None, Undecided)]
)
def test_a_flat_policy_loss_needs_a_second_sign(kl, kind):
    other = {} if kl is None else {"policy__approx_kl": kl}
    run = made.trace(policy__loss=np.full(100, 1e-9), outcome__return=made.flat(), **other)
    assert isinstance(NOTHING.judge(run), kind)


# every rule, on any data


AWKWARD = {
    "empty": [],
    "one": [1.0],
    "nan": np.full(60, np.nan),
    "inf": np.full(60, np.inf),
    "minus inf": np.full(60, -np.inf),
    "zeros": np.zeros(60),
    "huge": np.full(60, 1e308),
    "huge and back": np.tile([1e308, -1e308], 30),
    "tiny": np.full(60, 5e-324),
    "mixed": np.tile([np.nan, 1.0, np.inf, -1.0, 0.0, 1e308], 10),
}


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("outcome", ["nan", "zeros", "huge and back", "mixed"])
def test_no_data_makes_a_rule_raise(kind, outcome):
    names = [m for rule in ALL for m in (*rule.needs, *rule.needs_any)]
    names += [m for rule in VALUE for m in (*rule.needs, *rule.needs_any)]
    logged = {metric.name: made.series(AWKWARD[kind]) for metric in names}
    logged["value/return_var"] = made.series(AWKWARD[kind])
    logged["outcome/return"] = made.series(AWKWARD[outcome])
    for profile in Profile:
        run = made.trace(profile, how={"value/loss": "half"}, **logged)
        for rule in (*ALL, *VALUE):
            answer = rule.judge(run)
            assert kind != "nan" or rule is NUMBER or not isinstance(answer, Clear), rule.name
