"""Causes that a run shows by its own identities or by its known environment, each beside health.

Each trace is made by the mechanism that the rule rests on, with the fault and without it.
"""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

import rlvitals
from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.course import is_lost_before
from rlvitals.rules.data.impossible_value import RULE as IMPOSSIBLE
from rlvitals.rules.data.setting_out_of_range import RULE as OUT_OF_RANGE
from rlvitals.rules.outcome.sign_reversed import RULE as SIGN_REVERSED
from rlvitals.rules.policy.kl_spike import RULE as KL_SPIKE
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.throughput.ended_early import RULE as ENDED_EARLY
from rlvitals.rules.value.value_loss_explosion import RULE as VALUE_LOSS
from rlvitals.types import Lifecycle, Profile

ROWS = 60
CARTPOLE = {"env_id": "CartPole-v1"}
FALLS = np.maximum(np.linspace(22, -60, ROWS), 9.3) + 0.05 * made.noise(ROWS, 7)
SURER = np.maximum(np.linspace(0.69, -0.5, ROWS), 0.05)


def over(profile=Profile.CONTROL_PPO, settings=None, **metrics):
    return replace(made.trace(profile, settings, **metrics), lifecycle=Lifecycle(ended=True))


def severity(rule, trace):
    answer = rule.ask(trace)
    return answer.severity if isinstance(answer, Finding) else None


def warned(rule, trace):
    return (severity(rule, trace) or Severity.NOTE) >= Severity.WARNING


def backwards(returns=FALLS, entropy=SURER, env_id="CartPole-v1", **metrics):
    metrics = {"outcome__return": returns, "exploration__entropy": entropy, **metrics}
    return over(settings={"env_id": env_id}, **metrics)


def test_a_policy_that_is_sure_of_less_than_random_actions_earn_is_trained_the_wrong_way():
    trace = backwards()
    assert severity(SIGN_REVERSED, trace) is Severity.ERROR
    # A tenth of the way to a solved CartPole is 45 points, twice what could be lost.
    assert FALLS[0] - FALLS[-1] < 45
    assert str(diagnose(trace).verdict.word) == "stalled"


@pytest.mark.parametrize(
    "healthy",
    [
        {"returns": FALLS + 30},  # it ends above random actions
        {"entropy": np.linspace(0.69, 0.5, ROWS)},  # and is not sure yet
        {"entropy": 0.05 + 0.64 * np.exp(-np.arange(ROWS))},  # it became sure first
        {"policy__approx_kl": np.full(ROWS, 0.4)},  # steps too large
        {"returns": FALLS[::-1]},  # it rises
        {"returns": FALLS + 8 * made.noise(ROWS, 2)},  # the last third scatters as widely
    ],
)
def test_a_level_below_random_is_no_sign_error_without_the_rest(healthy):
    assert not warned(SIGN_REVERSED, backwards(**healthy))


def greedy(returns, settings=None):
    epsilon = np.maximum(np.linspace(1.0, -1.0, ROWS), 0.05)
    metrics = {"outcome__return": returns, "exploration__epsilon": epsilon}
    return over(Profile.OFF_POLICY, settings, **metrics)


def test_learned_actions_that_earn_less_than_random_ones_need_no_tenth_of_the_way():
    falls = 9.3 + 13 * np.exp(-np.arange(ROWS) / 6) + 0.05 * made.noise(ROWS, 7)
    assert warned(SIGN_REVERSED, greedy(falls, CARTPOLE))
    assert not warned(SIGN_REVERSED, greedy(falls + 30, CARTPOLE))
    assert not warned(SIGN_REVERSED, greedy(falls[::-1], CARTPOLE))


LENGTHS = np.linspace(22, 9, ROWS) + 0.2 * made.noise(ROWS, 4)


def episodes(returns, env_id, lengths=LENGTHS, **metrics):
    metrics = {"outcome__return": returns, "outcome__episode_length": lengths, **metrics}
    return over(settings={"env_id": env_id}, exploration__entropy=SURER, **metrics)


def test_returns_that_are_minus_what_the_steps_pay_show_the_sign_of_the_reward():
    for trace in (
        episodes(-LENGTHS, "CartPole-v1"),
        episodes(np.linspace(1240, 900, ROWS), "Pendulum-v1"),
        episodes(200 - 0.1 * np.arange(ROWS), "MountainCar-v0"),
    ):
        assert severity(SIGN_REVERSED, trace) is Severity.ERROR
        assert warned(IMPOSSIBLE, trace)
        assert diagnose(trace).cases[0].rule.name == "sign-reversed"


@pytest.mark.parametrize(
    ("returns", "env_id"),
    [
        (LENGTHS, "CartPole-v1"),  # the environment's own
        (-3.0 * LENGTHS, "CartPole-v1"),  # another reward than its own
        (-LENGTHS, ""),  # MountainCar's, where nothing names the task
        (np.linspace(-0.9, -0.2, ROWS), "FrozenLake-v1"),  # a price for each step
        (np.linspace(-0.9, 0.2, ROWS), "Blackjack-v1"),  # both signs are possible
    ],
)
def test_other_negative_returns_say_nothing_of_the_sign(returns, env_id):
    assert not warned(SIGN_REVERSED, episodes(returns, env_id, lengths=np.abs(LENGTHS)))


def poor(variance, explained=0.0, lengths=None, pay=1.0, ends=14.0):
    """PPO on short episodes that pay each step; `variance` is that of the critic's targets."""
    lengths = ends + 2 * made.noise(ROWS, 6) if lengths is None else lengths
    explained = np.full(ROWS, explained) + 0.005 * made.noise(ROWS, 8)
    return over(
        outcome__return=pay * lengths,
        outcome__episode_length=lengths,
        value__explained_variance=explained,
        value__loss=variance * (1 - explained),
    )


def test_targets_that_are_one_number_do_not_see_the_ends_of_episodes():
    fades = np.geomspace(160, 0.05, ROWS)
    trace = poor(fades)
    assert warned(VALUE_LOSS, trace)
    assert "done mask" in VALUE_LOSS.ask(trace).causes[0]
    assert not warned(VALUE_LOSS, poor(np.linspace(160, 20, ROWS)))  # a step near the end has less
    assert not warned(VALUE_LOSS, poor(fades, explained=0.9))  # the critic knows the end
    assert not warned(VALUE_LOSS, poor(np.full(ROWS, 0.05)))  # rewards normalised for the learner
    assert not warned(VALUE_LOSS, poor(fades, lengths=np.full(ROWS, 20.0)))  # a time limit
    assert not warned(VALUE_LOSS, poor(fades, ends=200.0))  # longer than the critic looks ahead
    assert not warned(VALUE_LOSS, poor(fades, pay=1 + 0.3 * made.noise(ROWS, 9)))


def test_one_bad_episode_at_its_end_has_not_lost_an_outcome():
    values = np.concatenate((np.linspace(0, 100, 40), np.full(20, 100.0)))
    values += 2 * made.noise(ROWS, 5)
    values[-1] = 0.0
    assert is_lost_before(over(outcome__return=values), made.STEP * ROWS) is False
    values[-10:] = 0.0
    assert is_lost_before(over(outcome__return=values), made.STEP * ROWS) is True


def destroyed(jumps, level=-370.0):
    """Single episodes of -160 that are lost from the second of two jumps of KL on."""
    returns = np.concatenate((np.linspace(-300, -160, 30), np.full(30, level)))
    kl = np.full(ROWS, 0.003) + 0.001 * np.abs(made.noise(ROWS, 3))
    kl[list(jumps)] = 0.2, 0.4
    return over(
        outcome__return=returns + 10 * made.noise(ROWS, 4),
        policy__approx_kl=kl,
        exploration__entropy=np.where(np.arange(ROWS) < 30, 1.0, 0.03),
        policy__clip_fraction=np.where(kl > 0.1, 0.5, 0.001),
    )


def test_a_loss_that_shows_between_two_jumps_belongs_to_them():
    # A row of episodes ends before the update that is logged beside it.
    assert warned(KL_SPIKE, destroyed((29, 31)))
    assert not warned(KL_SPIKE, destroyed((29, 31), level=-150.0))
    assert not warned(KL_SPIKE, destroyed((10, 45)))


def cut(steps, returns, **cycle):
    cycle = Lifecycle(**{"live": False, "live_by": "the user", **cycle})
    trace = replace(made.trace(outcome__return=returns), lifecycle=cycle)
    return rlvitals.diagnose(trace, settings={"total_timesteps": steps})


def test_a_run_that_is_over_early_and_shows_nothing_yet_has_failed():
    short = [20.0, 25.0, 30.0, 28.0]
    diagnosis = cut(12_000, short)
    assert str(diagnosis.verdict.word) == "failed"
    assert "33% of its budget" in diagnosis.verdict.why
    for healthy in (
        cut(4_400, short),  # all but what no row is written for
        cut(6_000, short),  # less than two rows are missing
        cut(12_000, short, live=True),
        cut(12_000, short, ended=True, reason="stopped by the user"),
        cut(200_000, made.rising()),  # it got somewhere: it may have been enough
    ):
        findings = [f for r, f in healthy.findings if r.name == ENDED_EARLY.name]
        assert all(f.severity is Severity.NOTE for f in findings)
        assert str(healthy.verdict.word) != "failed"


def test_settings_given_to_a_trace_state_its_budget():
    trace = made.trace(Profile.OFF_POLICY, outcome__return=made.flat())
    settings = {"total_timesteps": 100_000, "target_update_interval": 10**9}
    diagnosis = rlvitals.diagnose(trace, settings=settings)
    assert diagnosis.trace.budget.steps == 100_000
    assert warned(OUT_OF_RANGE, diagnosis.trace)
    assert "not updated within this run" in OUT_OF_RANGE.ask(diagnosis.trace).summary
    followed = rlvitals.diagnose(trace, settings={**settings, "target_update_interval": 500})
    assert not warned(OUT_OF_RANGE, followed.trace)
    # A table of episodes is not 0 % of so many environment steps.
    table = replace(trace, step_unit="episodes")
    assert rlvitals.diagnose(table, settings=settings).trace.budget is None
    assert warned(OUT_OF_RANGE, rlvitals.diagnose(table, settings=settings).trace)
