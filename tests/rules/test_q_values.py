"""Q values and their errors, beside what returns can be."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.optimiser import learning_rate_too_high, learning_starts_late
from rlvitals.rules.policy import updates_hardly_move
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.rules.value import critic_target_frozen, q_divergence
from rlvitals.types import Profile

STALLED = -1200 + made.noise(100)
OFF = {"profile": Profile.OFF_POLICY, "settings": {"env_id": "Pendulum-v1", "gamma": 0.99}}


def q(values, outcome=STALLED, **more):
    return q_divergence.RULE.ask(
        made.trace(value__q_mean=values, outcome__return=outcome, **{**OFF, **more})
    )


def test_q_beyond_every_return_diverges():
    found = q(np.geomspace(10, 1e6, 100))
    assert found.severity is Severity.ERROR
    assert found.bound.value == pytest.approx(3 * np.abs(STALLED).max(), rel=0.01)


def test_short_episodes_that_go_on_allow_more_than_their_return():
    # -50 over 50 steps is -1 a step: -100 for ever at gamma 0.99, and up to 300 is let pass.
    short = {"outcome__episode_length": np.full(100, 50.0), "settings": {"gamma": 0.99}}
    flat = -50 + 0.1 * made.noise(100)
    assert isinstance(q(np.linspace(-10, -280, 100), flat, **short), Clear)
    assert isinstance(q(np.linspace(-10, -400, 100), flat, **short), Finding)


def test_an_entropy_bonus_is_allowed_for():
    values = np.linspace(0, 9000, 100)
    assert isinstance(q(values), Finding)
    bonus = {"exploration__entropy_coef": np.full(100, 50.0)}  # 50 ln 2 / (1 - gamma) = 3,466
    assert isinstance(q(values, **bonus), Clear)


def test_optimism_that_shrinks_in_a_run_that_learns_is_how_it_starts():
    values = np.concatenate((np.geomspace(10, 2e4, 40), np.geomspace(2e4, 8e3, 60)))
    assert isinstance(q(values, np.linspace(-1200, -200, 100)), Clear)
    assert isinstance(q(values), Finding)


def test_errors_as_large_as_returns_are_found_where_no_q_is_logged():
    given = {
        "profile": Profile.OFF_POLICY,
        "settings": made.POOR,
        "outcome__return": made.flat(100, 10.0),
        "how": {"optimiser__loss": "Huber loss, mean of the gradient steps"},
    }
    diverging = q_divergence.RULE.ask(made.trace(optimiser__loss=np.linspace(0.5, 8, 100), **given))
    assert isinstance(diverging, Finding)
    always = made.trace(optimiser__loss=np.full(100, 8.0), **given)  # large, but no larger
    assert isinstance(q_divergence.RULE.ask(always), Clear)
    small = made.trace(optimiser__loss=np.linspace(0.01, 0.6, 100), **given)
    assert isinstance(q_divergence.RULE.ask(small), Clear)


def frozen(outcome=STALLED, **more):
    given = {
        **OFF,
        "value__loss": np.geomspace(1, 1e-4, 100),
        "value__q_mean": -6 + 0.1 * made.noise(100),
        "outcome__episode_length": np.full(100, 200.0),
        **more,
    }
    return critic_target_frozen.RULE.ask(made.trace(outcome__return=outcome, **given))


@pytest.mark.parametrize(("error", "kind"), [(0.85, Finding), (0.3, Clear)])
def test_errors_beyond_those_of_a_q_of_zero_diverge_from_the_first_update_on(error, kind):
    sparse = (np.random.default_rng(1).random(120) < 0.05).astype(float)
    loss = np.r_[
        np.zeros(5), (error * np.exp(0.2 * made.noise(115))) ** 2
    ]  # 0: nothing trained yet
    run = made.trace(Profile.OFF_POLICY, optimiser__loss=loss, outcome__return=sparse)
    assert isinstance(q_divergence.RULE.ask(run), kind)


def test_targets_that_never_follow_are_told_from_a_critic_that_fits():
    assert isinstance(frozen(), Finding)
    assert isinstance(frozen(value__q_mean=-500 + made.noise(100)), Clear)
    assert isinstance(frozen(outcome=np.linspace(-1200, -200, 100)), Clear)
    assert isinstance(frozen(settings={"gamma": 0.0}), Clear)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(STALLED, Finding), (np.linspace(-1200, -200, 100), Clear), (np.full(5, 1.0), Undecided)],
)
def test_a_learning_rate_is_too_high_only_where_nothing_is_learned(outcome, kind):
    run = made.trace(optimiser__learning_rate=np.full(100, 0.1), outcome__return=outcome, **OFF)
    assert isinstance(learning_rate_too_high.RULE.ask(run), kind)


def test_the_highest_rate_in_use_is_not_too_high():
    run = made.trace(optimiser__learning_rate=np.full(100, 0.01), outcome__return=STALLED, **OFF)
    assert isinstance(learning_rate_too_high.RULE.ask(run), Clear)


def test_a_rate_that_moves_nothing_is_found_without_kl():
    low = made.trace(
        optimiser__learning_rate=np.linspace(1e-7, 0, 100), outcome__return=STALLED, **OFF
    )
    assert isinstance(updates_hardly_move.RULE.ask(low), Finding)
    usual = made.trace(optimiser__learning_rate=np.full(100, 1e-3), outcome__return=STALLED, **OFF)
    assert isinstance(updates_hardly_move.RULE.ask(usual), Undecided)


def test_an_entropy_that_never_changes_is_a_policy_that_is_not_trained():
    given = {
        "profile": Profile.ON_POLICY,
        "settings": made.POOR,
        "outcome__return": made.flat(),
    }
    still = made.trace(exploration__entropy=0.6931 - 1e-6 * np.arange(100), **given)
    assert isinstance(updates_hardly_move.RULE.ask(still), Finding)
    moves = made.trace(exploration__entropy=0.69 - 1e-4 * np.arange(100), **given)
    assert isinstance(updates_hardly_move.RULE.ask(moves), Clear)


@pytest.mark.parametrize(("first", "kind"), [(90, Finding), (5, Clear)])
def test_when_learning_starts(first, kind):
    steps = made.STEP * (1 + np.arange(100))
    updates = made.series(np.arange(100 - first), steps[first:])
    run = made.trace(optimiser__updates=updates, outcome__return=STALLED, **OFF)
    assert isinstance(learning_starts_late.RULE.ask(run), kind)


def test_what_was_had_before_anything_was_learned_is_no_success():
    steps = made.STEP * (1 + np.arange(100))
    updates = made.series(np.arange(10.0), steps[90:])
    lucky = np.concatenate((np.full(3, -1500.0), np.full(97, -1250.0) + made.noise(97)))
    run = made.trace(optimiser__updates=updates, outcome__return=lucky, **OFF)
    assert standing(run).state == "holding its best"
    assert learning_starts_late.RULE.ask(run).severity is Severity.WARNING
    solved = made.trace(optimiser__updates=updates, outcome__return=0.1 * lucky, **OFF)
    assert learning_starts_late.RULE.ask(solved).severity is Severity.NOTE
