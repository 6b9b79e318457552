"""A value loss near 0 is what a perfect critic has, and what one with nothing to learn has."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.value import value_loss_vanishes
from rlvitals.types import Profile

RULE = value_loss_vanishes.RULE
CARTPOLE = {"env_id": "CartPole-v1"}
COUNT = 100


def vanishing(count=COUNT, start=0.5, end=1e-6):
    """Fall by a factor each point over the first fifth, then stay."""
    fall = np.geomspace(start, end, count // 5)
    return np.concatenate((fall, np.full(count - fall.size, end)))


def wandering(count=COUNT, level=20.0):
    """A return that varies by 5 % and gets nowhere."""
    return level * (1 + 0.05 * made.noise(count, 3))


def run(settings=None, **metrics):
    logged = {
        "value__loss": vanishing(),
        "value__explained_variance": np.full(COUNT, np.nan),
        "outcome__return": wandering(),
        **metrics,
    }
    settings = CARTPOLE if settings is None else settings
    return made.trace(settings=settings, **{k: v for k, v in logged.items() if v is not None})


def test_targets_without_variance_under_returns_that_vary_are_a_fault():
    found = RULE.judge(run())
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "0/0" in found.evidence[0]
    assert found.began <= 20 * made.STEP


@pytest.mark.parametrize("explained", [np.nan, -1e13, -2.55e14])
def test_an_explained_variance_of_0_by_0_is_evidence_however_it_is_logged(explained):
    found = RULE.judge(run(value__explained_variance=np.full(COUNT, explained)))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


def test_a_reward_that_never_arrives_is_named_before_the_critic():
    """The returns are the environment's own; a wrapper behind them pays 0."""
    dead = run(
        {**CARTPOLE, "gamma": 0.99},
        value__explained_variance=np.full(COUNT, -13.0),
        value__loss=np.where(np.arange(COUNT) < 3, 0.005, 4e-6),
    )
    first, *_ = diagnose(dead).cases
    assert first.rule is RULE
    assert first.finding.severity is Severity.WARNING
    assert "rewards of 0" in first.finding.causes[0]
    assert "critic-explains-nothing" in {symptom.rule.name for symptom in first.symptoms}


@pytest.mark.parametrize("explained", [-0.5, 0.0, 0.3])
def test_targets_that_vary_more_than_the_critic_errs_are_a_note(explained):
    narrow = run(value__explained_variance=np.full(COUNT, explained))
    assert RULE.judge(narrow).severity is Severity.NOTE


def test_trap_1_a_run_at_its_maximum_has_nothing_left_to_predict_and_is_well():
    returns = np.minimum(made.rising(COUNT, 900), 500.0)
    loss = np.where(returns < 500, 50.0, 5e-8)
    ev = np.where(returns < 500, 0.8, -43.0)
    at_the_top = run(value__explained_variance=ev, value__loss=loss, outcome__return=returns)
    assert isinstance(RULE.judge(at_the_top), Clear)


def test_trap_1_holds_where_the_task_is_unknown():
    returns = np.minimum(made.rising(COUNT, 900), 500.0)
    loss = np.where(returns < 500, 50.0, 5e-8)
    ev = np.where(returns < 500, 0.8, -43.0)
    unknown = run({}, value__explained_variance=ev, value__loss=loss, outcome__return=returns)
    assert isinstance(RULE.judge(unknown), Clear)


def test_a_critic_that_explains_the_returns_may_be_exact():
    exact = run(value__explained_variance=np.full(COUNT, 0.98))
    assert isinstance(RULE.judge(exact), Clear)


def test_a_loss_that_was_small_from_the_first_has_not_collapsed():
    assert isinstance(RULE.judge(run(value__loss=np.full(COUNT, 1e-6))), Clear)


def test_a_loss_that_is_not_small_beside_the_returns_has_not_collapsed():
    assert isinstance(RULE.judge(run(value__loss=vanishing(start=50.0, end=0.1))), Clear)


def test_a_rising_outcome_is_never_judged_by_its_critic():
    assert isinstance(RULE.judge(run(outcome__return=made.rising())), Clear)


def test_a_loss_that_comes_back_has_not_vanished():
    loss = vanishing()
    loss[-30:] = 0.5
    assert isinstance(RULE.judge(run(value__loss=loss)), Clear)


def test_one_unforeseen_episode_does_not_hide_the_collapse():
    loss = vanishing()
    loss[[50, 80]] = 0.5
    assert isinstance(RULE.judge(run(value__loss=loss)), Finding)


def test_returns_that_are_all_alike_are_worth_a_note_only():
    """A sparse task in which nothing has succeeded yet looks like this."""
    failing = run(
        {"env_id": "MountainCar-v0"},
        value__loss=vanishing(start=200.0, end=1e-3),
        value__explained_variance=np.full(COUNT, 0.3),
        outcome__return=np.full(COUNT, -200.0),
    )
    found = RULE.judge(failing)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    assert found.counter


def test_a_constant_reward_is_the_cause_and_this_its_symptom():
    zero = run({}, outcome__return=np.zeros(COUNT))
    (case,) = [c for c in diagnose(zero).cases if c.rule.name == "constant-reward"]
    assert RULE.name in {symptom.rule.name for symptom in case.symptoms}


def test_without_explained_variance_it_is_a_note_unless_the_discount_is_0():
    silent = run(value__explained_variance=None)
    found = RULE.judge(silent)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    myopic = RULE.judge(replace(silent, settings={**CARTPOLE, "gamma": 0.0}))
    assert isinstance(myopic, Finding)
    assert myopic.severity is Severity.WARNING
    assert "gamma is 0" in myopic.evidence[0]


def test_an_outcome_that_cannot_be_told_makes_it_a_note_or_undecided():
    returns = 20 + 0.3 * np.cumsum(made.noise(COUNT, 8))
    unclear = run({}, outcome__return=returns)
    found = RULE.judge(unclear)
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    explained = replace(unclear, series={**unclear.series, **vague(0.2)})
    assert isinstance(RULE.judge(explained), Undecided)


def vague(explained):
    return {"value/explained_variance": made.series(np.full(COUNT, explained))}


def test_no_outcome_is_undecided():
    assert isinstance(RULE.judge(run(outcome__return=None)), Undecided)


def test_its_numbers_can_be_set():
    assert isinstance(
        RULE.judge(replace(run(), thresholds={"value-loss-vanishes.fall": 1e-9})), Clear
    )
    varied = RULE.judge(replace(run(), thresholds={"value-loss-vanishes.varies": 0.5}))
    assert isinstance(varied, Finding)
    assert varied.severity is Severity.NOTE
    strict = RULE.judge(replace(run(), thresholds={"value-loss-vanishes.small": 1e-12}))
    assert isinstance(strict, Clear)


def sinking():
    """A return of an unknown task that falls: no scale is needed to see it."""
    return wandering() + np.linspace(20.0, 0.0, COUNT)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_reward_s_scale_does_not_matter(factor):
    scaled = run({}, value__loss=vanishing() * factor**2, outcome__return=sinking() * factor)
    found = RULE.judge(scaled)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


def test_off_policy_losses_are_one_step_errors_and_not_judged():
    assert not RULE.applies(Profile.OFF_POLICY)


def switched(spike=30.0, left=1e-4, outcome=None):
    """A critic that was usual, errs for a moment and has nothing left: its targets changed."""
    loss = np.concatenate((np.full(60, 1.0), [spike, spike / 10, 0.1], np.full(37, left)))
    kept = np.concatenate((np.linspace(20, 300, 70), np.linspace(300, 100, 30)))
    returns = kept + made.noise(COUNT) if outcome is None else outcome
    explained = np.concatenate((np.full(60, 0.9), np.full(40, -3.0)))
    return run(value__loss=loss, outcome__return=returns, value__explained_variance=explained)


def test_targets_that_change_at_a_step_are_a_fault_once_the_outcome_follows():
    found = RULE.judge(switched())
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert 60 * made.STEP < found.began < 70 * made.STEP


@pytest.mark.parametrize(
    "changed", [{"spike": 1.0}, {"outcome": made.rising(to=450)}], ids=["no error", "it improves"]
)
def test_a_loss_that_is_gone_at_once_is_let_be(changed):
    assert not isinstance(RULE.judge(switched(**changed)), Finding)
