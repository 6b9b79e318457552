"""Wiring bugs of training code, each by a recorded run, beside a healthy run of the same task.

What must hold of the columns by construction where the bug is there, and cannot where it is not.
"""

from dataclasses import replace
from pathlib import Path

import made_traces as made
import numpy as np
import pytest

import rlvitals
from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.data.frozen_metric import RULE as FROZEN
from rlvitals.rules.exploration.exploration_never_ends import RULE as NEVER_ENDS
from rlvitals.rules.outcome.sign_reversed import RULE as SIGN_REVERSED
from rlvitals.rules.policy.updates_hardly_move import RULE as HARDLY_MOVE
from rlvitals.rules.reward.constant_reward import RULE as CONSTANT
from rlvitals.rules.rule import Finding, Severity
from rlvitals.types import Budget, Lifecycle, Profile

FOLDER = Path(__file__).parent / "wiring"
ROWS = 60
SURER = np.linspace(1.09, 0.6, ROWS)  # nats of three actions


def run(name):
    (trace,) = rlvitals.runs(FOLDER / f"{name}.csv")
    return trace


def warned(rule, trace):
    answer = rule.ask(trace)
    return isinstance(answer, Finding) and answer.severity >= Severity.WARNING


def over(profile=Profile.CONTROL_PPO, **metrics):
    return replace(made.trace(profile, **metrics), lifecycle=Lifecycle(ended=True))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("ratio-of-one", "frozen-metric"),
        ("one-rollout", "frozen-metric"),
        ("same-episodes", "frozen-metric"),
        ("no-gradient", "updates-hardly-move"),
        ("no-direction", "exploration-never-ends"),
        ("shuffled", "exploration-never-ends"),
        ("critic-untrained", "critic-explains-nothing"),
    ],
)
def test_a_wiring_bug_is_the_first_cause(name, cause):
    first = diagnose(run(name)).cases[0]
    assert (first.rule.name, first.severity) == (cause, Severity.WARNING)


@pytest.mark.parametrize("name", ["healthy", "reinforce-healthy", "critic-healthy"])
def test_a_healthy_run_of_the_same_task_has_no_warning(name):
    found = diagnose(run(name))
    assert found.verdict.word == "learning"
    assert not [rule.name for rule, finding in found.findings if finding.severity > Severity.NOTE]


def ratio_of_one(**metrics):
    loss = 3.0 + 0.123456 * made.noise(ROWS, 2)
    zero = np.zeros(ROWS)
    given = {"policy__approx_kl": zero, "exploration__entropy": SURER, "value__loss": loss}
    return over(outcome__return=made.rising(ROWS), **{**given, **metrics})


def test_a_ratio_of_one_is_a_fault_only_where_batches_are_used_more_than_once():
    assert not warned(FROZEN, ratio_of_one())  # a note: one step on each batch is on-policy
    assert isinstance(FROZEN.ask(ratio_of_one()), Finding)
    assert warned(FROZEN, ratio_of_one(optimiser__updates=4.0 * np.arange(ROWS)))
    assert warned(FROZEN, replace(ratio_of_one(), settings={"n_epochs": 10}))


@pytest.mark.parametrize(
    "healthy",
    [
        {"policy__clip_fraction": np.full(ROWS, 0.01)},
        {"exploration__entropy": np.full(ROWS, 1.09) - 1e-3 * np.abs(made.noise(ROWS))},
        {"value__loss": np.round(3.0 + made.noise(ROWS, 2), 1)},  # a log that rounds a KL to 0
    ],
)
def test_a_kl_of_zero_alone_is_no_ratio_of_one(healthy):
    trace = replace(ratio_of_one(**healthy), settings={"n_epochs": 10})
    assert not warned(FROZEN, trace)


def test_an_explained_variance_that_moves_once_is_of_more_than_one_rollout():
    explained = np.full(ROWS, 0.0204854)
    losses = {"value__loss": 1 + 0.1 * made.noise(ROWS, 3), "policy__loss": made.noise(ROWS, 4)}
    assert warned(FROZEN, over(value__explained_variance=explained, **losses))
    explained[:3] = 0.1, 0.2, 0.3
    assert not warned(FROZEN, over(value__explained_variance=explained, **losses))


def without_gradient(returns, entropy):
    return over(
        Profile.UNKNOWN,
        outcome__return=returns,
        exploration__entropy=entropy,
        optimiser__grad_norm=np.zeros(ROWS),
    )


def test_a_gradient_of_zero_is_a_fault_where_returns_differ_and_the_policy_stands_still():
    noisy, still = 20 + 4 * made.noise(ROWS, 5), 1.09 + 3e-4 * made.noise(ROWS, 6)
    assert warned(HARDLY_MOVE, without_gradient(noisy, still))
    assert not warned(HARDLY_MOVE, without_gradient(np.full(ROWS, 1.0), still))
    assert not warned(HARDLY_MOVE, without_gradient(noisy, SURER))
    assert not warned(HARDLY_MOVE, without_gradient(made.rising(ROWS), still))


def wandering(kl, outcome):
    entropy = 1.09 - 0.02 * np.abs(made.noise(ROWS, 9))
    return over(outcome__return=outcome, exploration__entropy=entropy, policy__approx_kl=kl)


def test_updates_that_lead_nowhere_are_told_by_the_way_that_they_went():
    noisy, large = 20 + 4 * made.noise(ROWS, 5), np.full(ROWS, 0.01)
    assert warned(NEVER_ENDS, wandering(large, noisy))
    assert not warned(NEVER_ENDS, wandering(large, made.rising(ROWS)))
    assert not warned(NEVER_ENDS, wandering(large / 1000, noisy))


def flat_start(budget, level=-200.0, before=()):
    returns = np.concatenate((before, np.full(ROWS, level)))
    trace = made.trace(outcome__return=returns, value__loss=1 + 0.1 * made.noise(len(returns)))
    return replace(trace, budget=Budget(budget, "test"))


def test_a_flat_start_is_no_constant_reward_until_enough_of_the_budget_is_spent():
    steps = made.STEP * ROWS
    assert not warned(CONSTANT, flat_start(10 * steps))
    assert warned(CONSTANT, flat_start(2 * steps))
    fell = np.linspace(-100, -150, 20)
    assert warned(CONSTANT, flat_start(10 * steps, before=fell))  # it stood higher once
    goes_on = replace(flat_start(10 * steps), budget=None, lifecycle=Lifecycle(live=True))
    assert not warned(CONSTANT, goes_on)


def learning_backwards(entropy, outcome, kl=0.01):
    return over(
        outcome__return=outcome,
        exploration__entropy=entropy,
        policy__approx_kl=np.full(ROWS, kl),
    )


def test_a_return_that_falls_before_entropy_does_is_trained_the_wrong_way_round():
    falls = np.maximum(np.linspace(30, -26, ROWS), 2) + 0.3 * made.noise(ROWS, 7)
    assert warned(SIGN_REVERSED, learning_backwards(SURER, falls))
    assert not warned(SIGN_REVERSED, learning_backwards(SURER, falls, kl=0.4))  # steps too large
    assert not warned(SIGN_REVERSED, learning_backwards(SURER[::-1], falls))  # it explores more
    certain = 0.05 + np.exp(-np.arange(ROWS) / 3.0)  # it became certain first
    assert not warned(SIGN_REVERSED, learning_backwards(certain, falls))
    assert not warned(SIGN_REVERSED, learning_backwards(SURER, made.rising(ROWS)))
    assert not warned(SIGN_REVERSED, learning_backwards(SURER, made.flat(ROWS)))


def test_a_fall_within_the_first_twentieth_of_the_episodes_is_held_against_the_untrained_policy():
    at = np.arange(1, 50 * ROWS + 1) * (made.STEP // 50)  # fifty episodes an update
    falls = 9.3 + 25 * np.exp(-at / made.STEP) + 1.5 * made.noise(at.size, 3)
    # The policy is open at its first update, and sure within five.
    entropy = 0.02 + 0.67 * np.exp(-np.arange(ROWS) / 3.0)
    assert warned(SIGN_REVERSED, learning_backwards(entropy, made.series(falls, at)))
    level = 9.3 + 1.5 * made.noise(at.size, 3)
    assert not warned(SIGN_REVERSED, learning_backwards(entropy, made.series(level, at)))
