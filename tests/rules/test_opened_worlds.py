"""Mechanisms found by reading the opened worlds, each beside what is healthy."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.diagnosis.engine import diagnose
from rlvitals.diagnosis.root_cause import flat, group_by_cause
from rlvitals.diagnosis.verdict import Word
from rlvitals.metrics.metric import Bound
from rlvitals.rules.data.frozen_metric import RULE as FROZEN
from rlvitals.rules.outcome.return_collapse import RULE as COLLAPSE
from rlvitals.rules.outcome.sign_reversed import RULE as SIGN
from rlvitals.rules.policy.updates_hardly_move import RULE as HARDLY_MOVE
from rlvitals.rules.rule import Finding, Severity
from rlvitals.rules.value.value_loss_explosion import RULE as VALUE_LOSS
from rlvitals.types import Lifecycle, Measured, Profile

ROWS = 60


def warned(rule, trace):
    answer = rule.ask(trace)
    return isinstance(answer, Finding) and answer.severity >= Severity.WARNING


def over(profile=Profile.CONTROL_PPO, settings=(), **metrics):
    trace = made.trace(profile, **metrics)
    measured = {name: Measured("made", name, "") for name in trace.series}
    return replace(
        trace, measured=measured, lifecycle=Lifecycle(ended=True), settings=dict(settings)
    )


def starved(**changes):
    """PPO whose rewards are 1,000 times too large: the value loss takes the gradient's norm."""
    given_metrics = {
        "outcome__return": 100.0 * made.rising(ROWS),
        "policy__approx_kl": 8e-6 * (1 + 0.3 * made.noise(ROWS, 1)),
        "policy__clip_fraction": np.zeros(ROWS),
        "value__loss": 3e7 * (1 + 0.2 * made.noise(ROWS, 2)),
        "value__explained_variance": 2e-4 * made.noise(ROWS, 3),
    }
    return over(**{**given_metrics, **changes})


def test_a_value_loss_that_leaves_the_policy_no_gradient_is_a_warning_although_returns_rise():
    answer = HARDLY_MOVE.ask(starved())
    assert isinstance(answer, Finding)
    assert answer.severity is Severity.WARNING
    assert "if slowly" in answer.counter[0]


@pytest.mark.parametrize(
    "healthy",
    [
        {"value__explained_variance": np.linspace(0.0, 0.8, ROWS)},  # the critic gets there
        {"value__loss": np.full(ROWS, 4e4)},  # returns of -1,300 that healthy runs have
        {"policy__clip_fraction": np.full(ROWS, 0.02)},
        {"policy__approx_kl": np.full(ROWS, 6e-4)},
    ],
)
def test_large_returns_alone_starve_no_policy(healthy):
    assert not warned(HARDLY_MOVE, starved(**healthy))


def stopped(rest_kl=0.0):
    """A policy that learns, and whose learning rate is 0 from the first sixth on."""
    learning = np.arange(ROWS) < ROWS // 6
    level = np.where(learning, np.linspace(20, 380 * 6, ROWS).clip(max=180), 180.0)
    return over(
        outcome__return=level + 30.0 * made.noise(ROWS, 4),
        optimiser__learning_rate=np.where(learning, 1e-3, 0.0),
        policy__approx_kl=np.where(learning, 0.01, rest_kl),
        exploration__entropy=np.where(learning, np.linspace(1.1, 0.5, ROWS), 1.0),
    )


def test_what_was_gained_before_the_updates_ended_is_a_plateau():
    assert diagnose(stopped()).verdict.word is Word.PLATEAU
    # A rate that a console rounds to 0 still moves the policy.
    finding = next((c for c in diagnose(stopped(0.005)).every if c.rule.name == "plateau"), None)
    assert finding is None


def surer(returns, last_entropy=0.95):
    """REINFORCE on four actions whose policy gets surer; `returns` are close to the least."""
    entropy = (
        np.linspace(1.38, last_entropy, len(returns)) - 0.002 * made.noise(len(returns), 6) ** 2
    )
    return over(outcome__return=returns, exploration__entropy=entropy)


@given(st.floats(-50.0, 50.0), st.floats(0.1, 100.0))
def test_a_small_fall_in_order_beside_a_surer_policy_is_a_wrong_sign(offset, scale):
    fall = -4.0 + 1.2 * np.exp(-np.arange(ROWS) / 12.0) + 0.08 * made.noise(ROWS, 9)
    assert warned(SIGN, surer(offset + scale * fall))
    assert not warned(SIGN, surer(offset - scale * fall))


def test_a_flat_return_beside_a_surer_policy_is_no_wrong_sign():
    flagged = [warned(SIGN, surer(-4.0 + 0.3 * made.noise(ROWS, seed))) for seed in range(200)]
    assert sum(flagged) <= 2
    fall = -4.0 + 1.2 * np.exp(-np.arange(ROWS) / 12.0) + 0.08 * made.noise(ROWS, 9)
    assert not warned(SIGN, surer(fall, last_entropy=1.37))  # it is as random as at first


def test_a_reward_that_is_constant_since_a_collapse_is_its_consequence():
    rng = np.random.default_rng(0)
    lost = np.where(np.arange(300) < 60, rng.random(300) < np.arange(300) / 60, 1.0)
    lost[200:260] = rng.random(60) < 0.3
    lost[260:] = 0.0
    cases = diagnose(over(Profile.OFF_POLICY, outcome__return=lost)).cases
    assert cases[0].rule.name == "return-collapse"
    assert "constant-reward" in {c.rule.name for c in cases[0].symptoms}


def finding(began, known, severity=Severity.WARNING):
    return Finding("x", severity, "outcome/return", began, 100, 0.0, Bound(0.0, "x"), known=known)


def rule(name, *explained_by):
    return replace(SIGN, name=name, explained_by=explained_by)


def test_no_finding_is_lost_where_three_explain_each_other_in_a_ring():
    ring = (
        (rule("return-collapse", "policy-loss-flat", "constant-reward"), finding(10, 50)),
        (rule("policy-loss-flat", "constant-reward"), finding(40, 90)),
        (rule("constant-reward", "return-collapse"), finding(60, 70)),
    )
    cases = group_by_cause(ring)
    names = [case.rule.name for root in cases for case in flat(root)]
    assert sorted(names) == sorted(rule.name for rule, _ in ring)


def test_a_useless_critic_is_as_grave_as_the_fall_that_follows_it():
    trace = over(
        Profile.OFF_POLICY,
        outcome__return=np.linspace(-50, -60, ROWS) + 0.2 * made.noise(ROWS, 2),
        outcome__episode_length=np.full(ROWS, 30.0),
        value__loss=14.0 + made.noise(ROWS, 3),
        value__q_mean=np.linspace(0.5, 0.0, ROWS),
    )
    diagnosis = diagnose(trace)
    assert diagnosis.cases[0].rule.name == "critic-explains-nothing"
    assert "no-learning" in {case.rule.name for case in diagnosis.cases[0].symptoms}


def stale(**changes):
    """PPO that trains on its first rollout again and again: the KL is the distance from it."""
    metrics = {
        "outcome__return": made.flat(ROWS),
        "policy__approx_kl": np.linspace(0.01, 0.015, ROWS) * (1 + 0.03 * made.noise(ROWS, 1)),
        "value__loss": 6.0 * (1 + 0.03 * made.noise(ROWS, 2)),
        "value__explained_variance": 0.001 + 3e-4 * made.noise(ROWS, 3),
        "exploration__entropy": np.linspace(0.688, 0.678, ROWS),
    }
    return over(**{**metrics, **changes})


@pytest.mark.parametrize("returns", [made.flat(ROWS), made.rising(ROWS, 36.0)])
def test_a_kl_that_grows_in_order_while_the_policy_stays_is_of_one_rollout(returns):
    assert warned(FROZEN, stale(outcome__return=returns))


@pytest.mark.parametrize(
    "healthy",
    [
        {"policy__approx_kl": 0.01 * np.exp(0.4 * made.noise(ROWS, 4))},
        {"value__loss": 6.0 * np.exp(0.4 * made.noise(ROWS, 5))},
        {"exploration__entropy": np.linspace(0.688, 0.5, ROWS)},
        {"policy__approx_kl": 0.01 * (1 + 0.03 * made.noise(ROWS, 1))},  # it does not grow
    ],
)
def test_fresh_rollouts_scatter_or_move_the_policy(healthy):
    assert not warned(FROZEN, stale(**healthy))


@pytest.mark.parametrize(("value_began", "first"), [(60, "return-collapse"), (40, "value-loss")])
def test_a_value_loss_that_jumps_after_the_return_fell_is_its_consequence(value_began, first):
    found = (
        (COLLAPSE, finding(50, 70, Severity.ERROR)),
        (VALUE_LOSS, finding(value_began, 80, Severity.ERROR)),
    )
    cases = group_by_cause(found, slack=5)
    assert cases[0].rule.name.startswith(first)
    assert len(cases) == 1


def gainless(losses, framework="skrl", returns=None):
    returns = 16.0 + 5.0 * made.noise(ROWS, 3) if returns is None else returns
    trace = over(outcome__return=returns, policy__loss=losses)
    measured = {"policy/loss": Measured(framework, "Loss / Policy loss", "")}
    return replace(trace, measured=measured)


def test_a_mean_policy_loss_of_zero_is_a_policy_that_hardly_moves():
    zero = 3e-5 * made.noise(ROWS, 1)
    assert warned(HARDLY_MOVE, gainless(zero))
    assert not warned(HARDLY_MOVE, gainless(zero, returns=made.rising(ROWS)))
    assert not warned(HARDLY_MOVE, gainless(100 * zero))
    # Spinning Up logs the loss before the first step.
    assert not warned(HARDLY_MOVE, gainless(zero, "spinning-up"))
    # A deterministic policy gains nothing either, after it moved.
    assert not warned(HARDLY_MOVE, gainless(np.concatenate(([0.38], zero[1:]))))
