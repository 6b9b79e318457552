"""Mechanisms that rang on healthy runs of other trainers, and what tells them from broken ones."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.exploration import entropy_collapse
from rlvitals.rules.optimiser import learning_starts_late
from rlvitals.rules.outcome import no_learning, return_collapse, sign_reversed
from rlvitals.rules.paid import longer_way
from rlvitals.rules.policy import updates_hardly_move
from rlvitals.rules.reward import constant_reward
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.types import Lifecycle, Profile

LIVE = Lifecycle(live=True, live_by="it was watched", silence=0.0)


# ------------------------------------------------------- a return whose first episodes were short


def sparse(early_share):
    """Return 0 or 1 an episode: a share of the first 80 succeed, all later ones do."""
    early = (np.random.default_rng(0).random(80) < early_share).astype(float)
    early[0] = 1.0  # the first episode to end is a short one
    return made.trace(outcome__return=np.r_[early, np.ones(1500)])


def test_a_solved_sparse_task_that_begins_with_a_success_has_converged():
    run = sparse(0.3)
    assert isinstance(constant_reward.RULE.ask(run), Clear)
    assert standing(run).state == "at its ceiling"


def test_a_return_that_is_always_the_same_is_no_ceiling():
    always = made.trace(outcome__return=np.ones(1580))
    assert isinstance(constant_reward.RULE.ask(always), Finding)
    assert standing(always).state != "at its ceiling"


@pytest.mark.parametrize(("higher", "warns"), [(1, False), (12, True)])
def test_failures_at_the_end_count_against_the_successes_before(higher, warns):
    start = np.zeros(16)
    start[:higher] = 1.0
    run = made.trace(outcome__return=np.r_[start, np.zeros(20)])
    answer = constant_reward.RULE.ask(replace(run, lifecycle=LIVE))
    assert (isinstance(answer, Finding) and answer.severity is Severity.WARNING) is warns


# ------------------------------------------------------- a small rise that is proven


def episodes(gain, count=5000):
    """Return -1 or 1 an episode, with a mean that rises by `gain` in the first third."""
    mean = np.interp(np.arange(count), [0, count / 3], [-0.4, -0.4 + gain])
    return np.where(np.random.default_rng(1).random(count) < (1 + mean) / 2, 1.0, -1.0)


def test_a_small_rise_that_is_proven_is_no_flat_line():
    run = made.trace(Profile.OFF_POLICY, outcome__return=episodes(0.3))
    assert verdict_trend(run).state not in {"flat", "falling"}
    assert not isinstance(no_learning.RULE.ask(run), Finding)


def test_a_return_without_any_rise_stays_a_warning():
    run = made.trace(Profile.OFF_POLICY, outcome__return=episodes(0.0))
    assert isinstance(no_learning.RULE.ask(run), Finding)


# ------------------------------------------------------- a curriculum


def curriculum(*, fails=0.0, entropy=0.002):
    """Return 10 at the goal and -0.5 a step; the goal is farther away after each third."""
    rows = 48
    length = np.repeat([5.0, 10.0, 17.5], rows // 3) + 0.2 * made.noise(rows, 3)
    length[:4] = [40.0, 25.0, 12.0, 7.0]
    share = np.linspace(0, fails, rows)
    length_logged = (1 - share) * length + share * 60
    paid = (1 - share) * (10 - 0.5 * (length - 1)) - share * 30
    nats = np.r_[np.linspace(0.69, entropy, 8), np.full(rows - 8, entropy)]
    nothing = np.r_[np.full(8, 0.02), np.full(rows - 8, 1e-8)]
    return made.trace(
        outcome__return=paid,
        outcome__episode_length=length_logged,
        exploration__entropy=nats,
        policy__approx_kl=nothing,
        policy__clip_fraction=nothing,
    )


def test_episodes_that_only_take_longer_have_lost_nothing():
    run = curriculum()
    assert longer_way(run, "outcome/return")
    assert not longer_way(run, "outcome/reward")
    for rule in (return_collapse, no_learning, entropy_collapse, updates_hardly_move):
        answer = rule.RULE.ask(run)
        assert not (isinstance(answer, Finding) and answer.severity > Severity.NOTE), rule


@pytest.mark.parametrize("changes", [{"fails": 0.6}, {"entropy": 0.3}])
def test_failures_and_a_policy_that_is_not_certain_leave_the_line(changes):
    assert not longer_way(curriculum(**changes), "outcome/return")


def test_a_return_that_is_the_cost_of_its_steps_alone_tells_of_no_end():
    run = curriculum()
    length = run["outcome/episode_length"]
    paid = replace(length, values=-length.values)
    run = replace(run, series={**run.series, "outcome/return": paid})
    assert not longer_way(run, "outcome/return")


# ------------------------------------------------------- runs that go on


def late_start(**changes):
    run = made.trace(
        Profile.OFF_POLICY,
        outcome__return=made.flat(60),
        value__loss=made.series(np.ones(10), steps=1000 * np.arange(51, 61)),
    )
    return replace(run, **changes)


def test_the_share_before_the_first_update_is_not_known_of_a_run_that_goes_on():
    assert isinstance(learning_starts_late.RULE.ask(late_start()), Finding)
    assert isinstance(learning_starts_late.RULE.ask(late_start(lifecycle=LIVE)), Undecided)


def test_small_updates_are_a_warning_only_once_they_stood_for_a_quarter_of_a_run():
    still = np.full(40, 1e-6)
    run = made.trace(
        outcome__return=made.flat(40, -200.0),
        policy__approx_kl=np.r_[np.full(26, 0.02), still[:14]],
        policy__clip_fraction=np.r_[np.full(26, 0.1), still[:14]],
        settings={"env_id": "MountainCar-v0"},
    )
    over = updates_hardly_move.RULE.ask(run)
    goes_on = updates_hardly_move.RULE.ask(replace(run, lifecycle=LIVE))
    assert (over.severity, goes_on.severity) == (Severity.WARNING, Severity.NOTE)


# ------------------------------------------------------- what is learned is worse than random


def q_learner(returns, first=1.0, last=0.05):
    epsilon = np.linspace(first, last, len(returns))
    return made.trace(
        Profile.OFF_POLICY, outcome__return=np.asarray(returns), exploration__epsilon=epsilon
    )


def test_a_return_that_falls_with_epsilon_is_worse_than_random():
    found = sign_reversed.RULE.ask(q_learner([-880, -1200, -1480, -1780, -1920, -1940]))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "less than random actions" in found.summary


@pytest.mark.parametrize(
    "run",
    [
        q_learner([-880, -700, -480, -280, -220, -210]),
        q_learner([-880, -1200, -1480, -1780, -1920, -1940], first=0.05),
        q_learner([-880, -1200, -1480, -1780, -1920, -1940], last=0.9),
        q_learner(made.flat(60)),
        q_learner([-880, -1200, -1480, -700, -500, -400]),
    ],
    ids=["rises", "never explored", "still explores", "flat", "recovers"],
)
def test_a_return_that_rises_or_does_not_fall_with_epsilon_is_not(run):
    assert not isinstance(sign_reversed.RULE.ask(run), Finding)


def test_the_answer_does_not_depend_on_an_offset():
    for shift in (-1e4, 1e4):
        values = np.array([-880, -1200, -1480, -1780, -1920, -1940]) + shift
        assert isinstance(sign_reversed.RULE.ask(q_learner(values)), Finding)
