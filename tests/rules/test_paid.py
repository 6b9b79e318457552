"""What steps paid: the return is known from the episode length where every step pays the same."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.data import impossible_value
from rlvitals.rules.outcome import episodes_never_end
from rlvitals.rules.paid import step_reward
from rlvitals.rules.reward import constant_reward
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.types import Trace

COUNT, HALF = 100, 50
AT = made.STEP * (HALF + 1)
GROWN = np.linspace(20.0, 400.0, COUNT)
HELD = np.ones(HALF)


def run(returns, lengths=GROWN, env="CartPole-v1"):
    return made.trace(
        settings={"env_id": env}, outcome__return=returns, outcome__episode_length=lengths
    )


def share(later):
    """Returns that fit for half of the run, and come to this share of what was due by its end."""
    return np.concatenate((HELD, np.linspace(1.0, later, HALF)))


@pytest.mark.parametrize(
    "returns",
    [
        GROWN,
        100.0 * GROWN,
        GROWN - 10.0,
        GROWN * np.linspace(0.7, 0.9, COUNT),
        GROWN * (1.0 + 0.03 * made.noise(COUNT)),
    ],
    ids=["as it is", "scaled", "a price for the fall", "shaped", "shaped a little"],
)
def test_rewards_that_were_chosen_are_let_be(returns):
    found = step_reward(run(returns))
    assert found is not None
    assert found.broke is None
    assert found.scatters is None
    assert not found.endless


def test_rewards_are_scaled_only_where_every_early_return_agrees():
    returns = 2.0 * GROWN
    assert np.allclose(step_reward(run(returns)).share.values, 1.0)
    returns[0] /= 10.0
    assert np.median(step_reward(run(returns)).share.values) == 2.0


def test_noise_in_the_reward_shows_to_both_sides():
    found = impossible_value.RULE.ask(run(GROWN * (1.0 + 0.5 * made.noise(COUNT))))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "do not fit the episode lengths" in found.summary


@pytest.mark.parametrize("later", [0.5, 1.5])
def test_what_fitted_and_no_longer_does_is_a_change(later):
    lengths = 100.0 + 5.0 * made.noise(COUNT)
    found = impossible_value.RULE.ask(run(lengths * share(later), lengths))
    assert isinstance(found, Finding)
    assert AT <= found.began <= AT + 3 * made.STEP


def test_without_lengths_or_a_known_reward_nothing_is_said():
    noisy = GROWN * (1.0 + 0.5 * made.noise(COUNT)) + 200.0
    assert (
        step_reward(made.trace(settings={"env_id": "CartPole-v1"}, outcome__return=noisy)) is None
    )
    assert step_reward(run(noisy, env="LunarLander-v3")) is None
    assert isinstance(impossible_value.RULE.ask(run(noisy, env="LunarLander-v3")), Clear)


def test_a_reward_that_no_longer_arrives_is_no_success():
    lengths = np.full(COUNT, 90.0)
    returns = -lengths * np.repeat([1.0, 0.0], HALF)
    broken: Trace = run(returns, lengths, "Acrobot-v1")
    found = constant_reward.RULE.ask(broken)
    assert (found.severity, found.began) == (Severity.ERROR, AT)
    assert isinstance(impossible_value.RULE.ask(broken), Clear)


def test_returns_at_the_floor_wait_for_a_first_success():
    lengths = np.full(COUNT, 500.0)
    found = constant_reward.RULE.ask(run(-lengths, lengths, "Acrobot-v1"))
    assert found.severity is Severity.NOTE
    assert "nothing has succeeded yet" in found.counter[-1]
    assert "in 100 values in a row" in found.summary
    later = np.where(np.arange(COUNT) < HALF, 500.0, np.linspace(500.0, 100.0, COUNT))
    found = constant_reward.RULE.ask(run(-later, later, "Acrobot-v1"))
    assert "nothing had succeeded until then" in found.counter[-1]


def test_episodes_that_get_longer_and_pay_for_fewer_steps_went_on_after_their_end():
    lengths = np.concatenate((np.full(HALF, 90.0), np.linspace(90.0, 500.0, HALF)))
    returns = -lengths * share(0.8)
    endless = run(returns, lengths, "Acrobot-v1")
    found = episodes_never_end.RULE.ask(endless)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert found.began > HALF * made.STEP
    assert isinstance(impossible_value.RULE.ask(endless), Clear)


def test_episodes_at_the_limit_that_come_to_pay_less_went_on_after_their_end():
    lengths = np.full(COUNT, 500.0)
    returns = -lengths * share(0.8)
    assert isinstance(episodes_never_end.RULE.ask(run(returns, lengths, "Acrobot-v1")), Finding)
    assert isinstance(episodes_never_end.RULE.ask(run(-lengths, lengths, "Acrobot-v1")), Clear)


def test_of_short_episodes_rounding_hides_what_is_off():
    lengths = np.full(COUNT, 4.0)
    found = step_reward(run(0.85 * lengths, lengths))
    assert found is not None
    assert found.broke is None
    assert not found.endless
