"""Exploration that goes on for ever, explodes or is lost, and what only looks like it."""

import math

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.exploration import entropy_collapse, exploration_explodes
from rlvitals.rules.exploration import exploration_never_ends as never_ends
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.width import dimensions, width
from rlvitals.types import Budget, Profile

LN2 = math.log(2)
CARTPOLE = {"env_id": "CartPole-v1"}
PENDULUM = {"env_id": "Pendulum-v1"}
ONE_DIMENSION = 0.5 * math.log(2 * math.pi * math.e)


def ask(module, *, budget=None, **given):
    from dataclasses import replace

    trace = made.trace(**given)
    return module.RULE.ask(replace(trace, budget=budget))


def uniform(count=100, share=0.99):
    return share * LN2 + 1e-4 * made.noise(count)


def test_uniform_to_the_end_without_progress_is_a_fault():
    found = ask(
        never_ends, settings=CARTPOLE, exploration__entropy=uniform(), outcome__return=made.flat()
    )
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


def test_high_entropy_beside_a_rising_return_is_healthy():
    given = {"settings": CARTPOLE, "exploration__entropy": uniform()}
    assert isinstance(ask(never_ends, outcome__return=made.rising(to=450), **given), Clear)


def test_where_nothing_is_ever_paid_entropy_says_nothing():
    sparse = ask(
        never_ends,
        settings={"env_id": "MountainCar-v0"},
        exploration__entropy=np.full(100, math.log(3)),
        outcome__return=np.full(100, -200.0),
    )
    assert isinstance(sparse, Undecided)


def test_entropy_that_still_falls_is_no_bonus():
    falling = np.linspace(0.96, 0.88, 100) * LN2
    stands = np.full(100, 0.93) * LN2
    for entropy, kind in ((falling, Clear), (stands, Finding)):
        found = ask(
            never_ends,
            settings=CARTPOLE,
            exploration__entropy=entropy,
            outcome__return=made.flat(),
        )
        assert isinstance(found, kind)


def test_the_first_tenth_of_a_budget_may_explore():
    given = {
        "settings": CARTPOLE,
        "exploration__entropy": uniform(),
        "outcome__return": made.flat(),
    }
    early = Budget(1_000_000, "the run's total_steps")
    assert isinstance(ask(never_ends, budget=early, **given), Undecided)
    late = Budget(110_000, "the run's total_steps")
    assert isinstance(ask(never_ends, budget=late, **given), Finding)


@pytest.mark.parametrize(
    ("epsilon", "severity"),
    [
        (np.ones(100), Severity.WARNING),
        (np.linspace(1.0, 0.6, 100), Severity.NOTE),
        (np.repeat([0.05, 1.0], 50), Severity.WARNING),
        (np.linspace(1.0, 0.05, 100), None),
    ],
)
def test_epsilon(epsilon, severity):
    found = ask(
        never_ends,
        profile=Profile.OFF_POLICY,
        settings=CARTPOLE,
        exploration__epsilon=epsilon,
        outcome__return=made.flat(),
    )
    assert getattr(found, "severity", None) is severity


def test_what_sets_in_after_the_outcome_was_lost_is_no_cause():
    lost = np.concatenate((np.linspace(20, 450, 40), np.full(60, 20.0))) + made.noise(100)
    back = np.concatenate((np.linspace(0.69, 0.3, 50), np.full(50, 0.69)))
    given = {"settings": CARTPOLE, "outcome__return": lost, "exploration__entropy": back}
    assert ask(exploration_explodes, **given).severity is Severity.NOTE
    assert ask(never_ends, **given).severity is Severity.NOTE


def test_entropy_that_comes_back_before_the_fall_is_the_cause():
    lost = np.concatenate((np.linspace(20, 450, 60), np.full(40, 20.0))) + made.noise(100)
    back = np.concatenate((np.linspace(0.69, 0.3, 50), np.full(50, 0.69)))
    found = ask(
        exploration_explodes, settings=CARTPOLE, outcome__return=lost, exploration__entropy=back
    )
    assert found.severity is Severity.WARNING
    assert found.began == 51 * made.STEP


def test_the_entropy_of_a_gaussian_is_read_as_its_width():
    log_std = np.linspace(0, 3, 100)
    run = made.trace(settings=PENDULUM, exploration__entropy=ONE_DIMENSION + log_std)
    assert width(run).series.values == pytest.approx(np.exp(log_std))
    two = made.trace(exploration__entropy=2 * ONE_DIMENSION + 2 * log_std)
    assert dimensions(two) == 2
    assert width(two).series.values == pytest.approx(np.exp(log_std))


def test_discrete_entropies_have_no_width():
    for settings, actions in ((CARTPOLE, 2), ({}, 4), ({"n_actions": 5}, 5)):
        entropy = np.linspace(1, 0.4, 50) * math.log(actions)
        assert width(made.trace(settings=settings, exploration__entropy=entropy)) is None


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [
        (np.linspace(-1200, -200, 100), Severity.NOTE),
        (-1200 + made.noise(100), Severity.WARNING),
    ],
)
def test_a_wide_policy_is_weighed_by_the_outcome(outcome, severity):
    found = ask(
        exploration_explodes,
        settings=PENDULUM,
        exploration__std=np.geomspace(1, 200, 100),
        outcome__return=outcome,
    )
    assert found.severity is severity


def test_alpha_that_runs_away_is_found_and_one_that_settles_is_not():
    away = np.concatenate((np.geomspace(1, 0.1, 50), np.geomspace(0.1, 40, 50)))
    settles = np.concatenate((np.geomspace(1, 0.1, 50), np.geomspace(0.1, 0.3, 50)))
    for alpha, kind in ((away, Finding), (settles, Clear)):
        found = ask(
            exploration_explodes,
            profile=Profile.OFF_POLICY,
            settings=PENDULUM,
            exploration__entropy_coef=alpha,
            outcome__return=-1200 + made.noise(100),
        )
        assert isinstance(found, kind)


def test_tokens_grow_random():
    given = {"profile": Profile.GRPO, "outcome__reward": made.flat(100, 0.3) / 10}
    found = ask(exploration_explodes, exploration__entropy=np.geomspace(0.6, 5, 100), **given)
    assert isinstance(found, Finding)
    high = np.full(100, 2.4) + 0.01 * made.noise(100)  # a base model may start there
    assert isinstance(ask(exploration_explodes, exploration__entropy=high, **given), Clear)


def test_a_gaussian_that_narrows_as_it_should_has_not_collapsed():
    narrow = ONE_DIMENSION + np.linspace(0, -1.1, 100)  # std 0.33: entropy a quarter of its start
    stalled = {"settings": PENDULUM, "outcome__return": -1200 + made.noise(100)}
    assert isinstance(ask(entropy_collapse, exploration__entropy=narrow, **stalled), Clear)
    gone = ONE_DIMENSION + np.linspace(0, -4, 100)
    assert isinstance(ask(entropy_collapse, exploration__entropy=gone, **stalled), Finding)


def test_alpha_that_vanishes_ends_exploration():
    given = {"profile": Profile.OFF_POLICY, "settings": PENDULUM}
    for least, kind in ((1e-6, Finding), (0.01, Clear)):
        found = ask(
            entropy_collapse,
            exploration__entropy_coef=np.geomspace(0.8, least, 100),
            outcome__return=-1200 + made.noise(100),
            **given,
        )
        assert isinstance(found, kind)


def test_a_run_none_of_whose_actions_was_chosen_is_warned_though_the_outcome_is_noise():
    given = {
        "profile": Profile.OFF_POLICY,
        "outcome__return": 0.3 + 0.1 * made.noise(28, 5).cumsum() / 3,
    }
    random = ask(never_ends, exploration__epsilon=np.ones(28), **given)
    assert random.severity is Severity.WARNING
    chosen = np.r_[np.ones(27), 0.9]
    assert getattr(ask(never_ends, exploration__epsilon=chosen, **given), "severity", None) is None


@pytest.mark.parametrize(
    ("entropy", "outcome", "severity"),
    [
        (uniform(share=0.999), "noise", Severity.WARNING),
        (np.linspace(0.693, 0.66, 100), "noise", None),
        (uniform(share=0.999), "rising", None),
    ],
)
def test_a_uniform_policy_from_the_first_row_to_the_last_acts_at_random(entropy, outcome, severity):
    noise = 20.0 + made.noise(100, 5).cumsum()
    outcomes = {"noise": noise, "rising": made.rising()}
    given = {"exploration__entropy": entropy, "outcome__return": outcomes[outcome]}
    assert getattr(ask(never_ends, **given), "severity", None) is severity
