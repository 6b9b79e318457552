"""The critic's rules: the traps they once fell into, and the bounds they keep."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals import api
from rlvitals.rules import CATALOGUE
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.value import (
    advantage_off_centre,
    critic_explains_nothing,
    value_clip_high,
    value_drifts_from_return,
    value_loss_explosion,
)
from rlvitals.types import Profile

ADVANTAGE = advantage_off_centre.RULE
CRITIC = critic_explains_nothing.RULE
EXPLOSION = value_loss_explosion.RULE
DRIFT = value_drifts_from_return.RULE
CLIP = value_clip_high.RULE
CARTPOLE = {"env_id": "CartPole-v1", "n_steps": 256, "n_envs": 4}


def low_ev(count=100, seed=1):
    return 0.02 * made.noise(count, seed)


# critic-explains-nothing


def test_trap_1_ev_minus_43_at_maximum_reward_is_convergence():
    returns = np.minimum(made.rising(100, 900), 500.0)
    loss = np.where(returns < 500, 50.0, 5e-8)
    ev = np.where(returns < 500, 0.8, -43.0)
    run = made.trace(
        settings=CARTPOLE, value__explained_variance=ev, value__loss=loss, outcome__return=returns
    )
    assert isinstance(CRITIC.judge(run), Clear)


def test_trap_1_ev_of_minus_3e13_where_returns_have_no_variance():
    run = made.trace(value__explained_variance=np.full(60, -3e13), outcome__return=made.flat(60))
    assert isinstance(CRITIC.judge(run), Undecided)


def test_trap_9_a2c_with_20_samples_an_estimate_learns_at_ev_0():
    run = made.trace(
        Profile.ON_POLICY,
        {"n_steps": 5, "n_envs": 4, **made.POOR},
        value__explained_variance=low_ev(),
        outcome__return=made.rising(),
    )
    assert isinstance(CRITIC.judge(run), Clear)


def test_few_samples_are_never_more_than_a_note():
    run = made.trace(
        Profile.ON_POLICY,
        {"n_steps": 5, "n_envs": 4, **made.POOR},
        value__explained_variance=low_ev(),
        outcome__return=made.flat(),
    )
    assert CRITIC.judge(run).severity is Severity.NOTE


@pytest.mark.parametrize(
    ("returns", "severity"),
    [
        (made.falling(), Severity.WARNING),
        (made.flat(), Severity.WARNING),
        (made.rising(), Severity.NOTE),
    ],
)
def test_the_outcome_decides_what_a_low_explained_variance_means(returns, severity):
    run = made.trace(
        settings=made.POOR, value__explained_variance=low_ev(), outcome__return=returns
    )
    found = CRITIC.judge(run)
    assert found.severity is severity
    assert bool(found.counter) == (severity is Severity.NOTE)


def test_explained_variance_alone_is_no_evidence():
    found = CRITIC.judge(made.trace(value__explained_variance=low_ev()))
    assert found.severity is Severity.NOTE


def test_a_critic_that_explains_more_after_a_tenth_of_the_run_is_clear():
    ev = np.concatenate((low_ev(10), np.full(90, 0.7)))
    run = made.trace(value__explained_variance=ev, outcome__return=made.flat())
    assert isinstance(CRITIC.judge(run), Clear)


def test_a_constant_outcome_leaves_nothing_to_explain():
    run = made.trace(value__explained_variance=low_ev(), outcome__return=np.zeros(100))
    assert isinstance(CRITIC.judge(run), Undecided)


def test_trl_s_squared_error_variant_is_judged_where_it_is_all_there_is():
    run = made.trace(
        Profile.RLHF_PPO,
        value__mse_explained_variance=low_ev(),
        outcome__score=made.falling(),
    )
    assert CRITIC.judge(run).metric == "value/mse_explained_variance"


# value-loss-explosion


def test_a_loss_that_grows_as_the_square_of_the_return_is_healthy():
    returns = 20 * 1.05 ** np.arange(100)
    loss = 0.01 * returns**2 * np.exp(0.2 * made.noise(100))
    run = made.trace(value__loss=loss, outcome__return=returns)
    assert isinstance(EXPLOSION.judge(run), Clear)


def test_a_value_loss_of_1e7_is_only_a_large_reward():
    loss = 1e7 * np.exp(0.2 * made.noise(100))
    run = made.trace(value__loss=loss, outcome__return=1e3 * made.rising())
    assert isinstance(EXPLOSION.judge(run), Clear)


def exploding(after):
    loss = np.concatenate((np.full(60, 10.0), np.full(40, 5000.0))) * np.exp(0.2 * made.noise(100))
    return made.trace(value__loss=loss, outcome__return=np.concatenate((made.rising(60), after)))


def test_an_explosion_that_takes_the_return_along_is_an_error():
    found = EXPLOSION.judge(exploding(10 + made.noise(40)))
    assert found.severity is Severity.ERROR
    assert found.began == 61 * made.STEP


def test_an_explosion_in_a_run_that_goes_on_rising_is_no_fault():
    answer = EXPLOSION.judge(exploding(np.linspace(200, 400, 40)))
    assert isinstance(answer, Clear) or answer.severity is Severity.NOTE


def test_the_first_failure_after_many_perfect_episodes_is_not_reported():
    loss = np.concatenate((np.full(40, 50.0), np.full(59, 1e-6), [30.0]))
    returns = np.concatenate((np.linspace(20, 500, 40), np.full(60, 500.0)))
    run = made.trace(value__loss=loss, outcome__return=returns)
    assert isinstance(EXPLOSION.judge(run), Clear)


def test_a_first_success_in_a_sparse_task_is_not_reported():
    returns = np.concatenate((np.full(50, -10.0), np.full(50, 90.0))) + made.noise(100)
    loss = np.concatenate((np.full(50, 1e-3), np.full(50, 40.0)))
    answer = EXPLOSION.judge(made.trace(value__loss=loss, outcome__return=returns))
    assert isinstance(answer, Clear) or answer.severity is Severity.NOTE


# value-drifts-from-return, value-clip-high


def drifting(gap, how="half the squared error"):
    returns = made.rising()
    return made.trace(
        settings=made.POOR,
        value__mean=returns - gap,
        value__return_mean=returns,
        value__loss=np.full(100, (gap * gap + 1.0) / 2),
        outcome__return=made.flat(),
        how={"value__loss": how},
    )


@pytest.mark.parametrize(("gap", "fires"), [(0.9, False), (1.1, True)])
def test_drift_counts_from_one_standard_deviation_of_the_errors(gap, fires):
    answer = DRIFT.judge(drifting(gap))
    assert isinstance(answer, Finding) is fires
    assert not fires or answer.severity is Severity.WARNING


def test_drift_is_undecided_where_nothing_tells_the_scatter():
    assert isinstance(DRIFT.judge(drifting(5.0, how="mean squared error")), Undecided)


def test_drift_uses_the_logged_variance_of_returns():
    run = drifting(1.1, how="")
    variance = {**run.series, "value/return_var": made.series(np.full(100, 4.0))}
    assert isinstance(DRIFT.judge(replace(run, series=variance)), Clear)


def test_value_clipping_is_never_more_than_a_note():
    run = made.trace(
        Profile.RLHF_PPO, value__clip_fraction=np.full(60, 0.8), outcome__score=made.falling(60)
    )
    assert CLIP.judge(run).severity is Severity.NOTE


# advantage-off-centre


def advantages(mean, std, outcome):
    return made.trace(
        settings=made.POOR,
        policy__advantage_mean=mean + 0.1 * std * made.noise(100),
        policy__advantage_std=np.full(100, std),
        outcome__return=outcome,
    )


def test_whitened_advantages_are_centred_by_construction_and_say_nothing():
    run = made.trace(policy__advantage_mean=np.zeros(60), policy__advantage_std=np.ones(60))
    assert isinstance(ADVANTAGE.judge(run), Undecided)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize(("offset", "fires"), [(0.3, False), (0.8, True), (-0.8, True)])
def test_advantages_count_from_half_their_own_deviation(scale, offset, fires):
    run = advantages(offset * scale, scale, made.flat())
    answer = ADVANTAGE.judge(run)
    assert isinstance(answer, Finding) is fires
    assert not fires or answer.severity is Severity.WARNING


def test_off_centre_advantages_are_usual_in_a_run_that_learns():
    assert isinstance(ADVANTAGE.judge(advantages(4.0, 1.0, made.rising())), Clear)


# other people's runs


@pytest.mark.real_logs
def test_the_collapsed_scheduler_s_critic_explains_nothing_while_the_reward_falls(real_logs):
    found = CRITIC.judge(api.trace(real_logs / "vidurrl-20250917_201326"))
    assert found.severity is Severity.WARNING
    assert "falling" in " ".join(found.evidence)


@pytest.mark.real_logs
@pytest.mark.parametrize("folder", ["sb3-monitor", "rllib"])
def test_nothing_of_the_critic_or_the_optimiser_is_wrong_in_healthy_runs(real_logs, folder):
    families = ("rlvitals.rules.value", "rlvitals.rules.optimiser")
    for run in sorted((real_logs / folder).iterdir()):
        trace = api.trace(run)
        for rule in CATALOGUE:
            if rule.check.__module__.startswith(families) and rule.applies(trace.profile):
                answer = rule.judge(trace)
                note = isinstance(answer, Finding) and answer.severity is Severity.NOTE
                assert note or not isinstance(answer, Finding), (run.name, rule.name, answer)
