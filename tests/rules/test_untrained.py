"""A critic that is at the end of a run what it was at first, and what only looks like one."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.untrained import BLIND_CAUSE, UNTRAINED_CAUSES
from rlvitals.rules.value import critic_explains_nothing
from rlvitals.types import Budget, Profile

COUNT = 100
BUDGET = Budget(made.STEP * COUNT, "total_steps")
RULE = critic_explains_nothing.RULE
FLAT_LOSS = 17.0 + made.noise(COUNT, 2)
LEARNED = np.geomspace(17.0, 0.5, COUNT)
UNTOLD = 20.0 + 60.0 * np.abs(np.sin(np.arange(COUNT) / 15.0))  # up and down: no trend


def critic(explained=None, loss=FLAT_LOSS, outcome=None, env="CartPole-v1", **settings):
    explained = 0.02 * made.noise(COUNT) if explained is None else explained
    run = made.trace(
        settings={"env_id": env, "n_steps": 32, "n_envs": 8, **settings},
        value__explained_variance=explained,
        value__loss=loss,
        outcome__return=made.rising() if outcome is None else outcome,
    )
    return RULE.ask(replace(run, budget=BUDGET))


@pytest.mark.parametrize("outcome", [made.flat(), UNTOLD, made.rising(to=150)])
def test_a_critic_that_never_learned_is_a_warning_far_from_solved(outcome):
    found = critic(outcome=outcome)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "has learned nothing" in found.summary
    assert found.causes[0] == UNTRAINED_CAUSES[0]


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({"clip_vloss": True, "clip_range": 0.02}, Severity.NOTE),
        ({"clip_range_value": 0.02}, Severity.NOTE),
        ({"clip_vloss": True, "clip_range": 0.2}, Severity.WARNING),  # 20 in 100 updates
        ({"clip_vloss": False, "clip_range": 0.02}, Severity.WARNING),
    ],
)
def test_clipped_values_may_not_have_come_to_the_returns_yet(settings, severity):
    """CleanRL clips them by 0.2 an update: a first try of a few thousand steps is too short."""
    found = critic(outcome=made.flat(), **settings)
    assert found.severity is severity
    assert any("100 updates move them by 2 at most" in text for text in found.counter) is (
        severity is Severity.NOTE
    )


def test_a_critic_that_explained_much_for_a_while_is_not_said_to_have_learned_nothing_at_all():
    found = critic(
        explained=np.where(np.abs(np.arange(COUNT) - 45) < 4, 0.8, 0.02 * made.noise(COUNT)),
        outcome=made.rising(to=150),
    )
    assert found.severity is Severity.WARNING
    assert "has learned nothing that lasts: " in found.summary
    assert "in the last after 0.8 at best" in found.summary


def test_a_critic_that_predicts_one_number_sees_nothing():
    found = critic(explained=1e-7 * made.noise(COUNT), outcome=made.flat())
    assert found.causes[0] == BLIND_CAUSE


@pytest.mark.parametrize(
    "changed",
    [
        {"loss": LEARNED},
        {"explained": np.linspace(0.0, 0.5, COUNT)},
        {"outcome": made.rising(to=490)},
        {"env": "Own-v0"},
        {
            "explained": np.linspace(0.0, 0.09, COUNT) + 0.02 * made.noise(COUNT),
            "outcome": made.rising(to=150),
        },
    ],
    ids=[
        "learned the mean",
        "explains in the end",
        "nearly solved",
        "what can be earned unknown",
        "learns slowly, and the policy with it",
    ],
)
def test_what_only_looks_like_it_is_a_note_at_most(changed):
    found = critic(**changed)
    assert isinstance(found, Clear | Undecided) or found.severity is Severity.NOTE


def test_what_still_rises_half_way_or_has_no_budget_is_given_time():
    run = made.trace(
        settings={"env_id": "CartPole-v1"},
        value__explained_variance=0.02 * made.noise(COUNT),
        value__loss=FLAT_LOSS,
        outcome__return=made.rising(to=150),
    )
    assert RULE.ask(replace(run, budget=BUDGET)).severity is Severity.WARNING
    for budget in (None, Budget(2 * BUDGET.steps, "total_steps")):
        answer = RULE.ask(replace(run, budget=budget))
        assert getattr(answer, "severity", Severity.NOTE) is Severity.NOTE


def learner(loss, outcome=None, steps=200.0):
    run = made.trace(
        Profile.OFF_POLICY,
        settings={"env_id": "Pendulum-v1"},
        value__loss=loss,
        outcome__return=-1200.0 + 30.0 * made.noise(COUNT, 4) if outcome is None else outcome,
        outcome__episode_length=np.full(COUNT, steps),
    )
    return RULE.ask(replace(run, budget=BUDGET))


NOISY = 2500.0 * np.exp(0.2 * made.noise(COUNT, 6))


def test_an_error_that_stays_far_beyond_what_a_step_pays_is_noise():
    found = learner(NOISY)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert found.observed == pytest.approx(50.0, rel=0.1)


@pytest.mark.parametrize(
    "loss",
    [0.01 * NOISY, NOISY * np.geomspace(1.0, 0.1, COUNT), NOISY * np.geomspace(1.0, 10.0, COUNT)],
    ids=["within what a step pays", "it settles", "it grows"],
)
def test_a_q_learner_that_is_let_be(loss):
    assert isinstance(learner(loss), Clear)


def test_a_q_learner_that_solves_its_task_all_the_same():
    assert isinstance(learner(NOISY, np.linspace(-1300.0, -150.0, COUNT)), Clear)


def test_a_q_learner_whose_rewards_are_not_known_cannot_be_judged():
    run = made.trace(Profile.OFF_POLICY, value__loss=NOISY, outcome__return=made.flat())
    assert isinstance(RULE.ask(run), Undecided)


def test_an_actor_without_an_estimate_cannot_be_judged():
    run = made.trace(value__loss=FLAT_LOSS, outcome__return=made.flat())
    assert isinstance(RULE.ask(run), Undecided)


def test_a_policy_that_rose_by_half_of_the_way_has_a_small_budget():
    """CleanRL's PPO, cut to 60,000 steps, whose clipped value loss hardly falls so early."""
    little = 0.03 + 0.01 * made.noise(COUNT)
    assert critic(explained=little, outcome=made.rising(to=241)).severity is Severity.NOTE
    assert critic(explained=little, outcome=made.flat()).severity is Severity.WARNING
    nothing = 0.03 * made.noise(COUNT)
    assert critic(explained=nothing, outcome=made.rising(to=241)).severity is Severity.WARNING
