"""Unequal replicas should be loaded unequally: what is known of their speed is the yardstick."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules import workload
from rlvitals.rules.policy import action_collapse
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.rules.scheduler import imbalance_unresolved
from rlvitals.types import Profile

COLLAPSE = action_collapse.RULE
IMBALANCE = imbalance_unresolved.RULE
COUNT = 2000


def choices(*shares, seed=0):
    return np.random.default_rng(seed).choice(len(shares), COUNT, p=shares).astype(float)


def towards(share, of=4, seed=0):
    """Choices that begin evenly and end with `share` on replica 0."""
    rest = (1 - share) / (of - 1)
    late = choices(share, *[rest] * (of - 1), seed=seed)
    return np.where(np.arange(COUNT) < COUNT // 5, choices(*[1 / of] * of, seed=seed), late)


def run(actions, settings=None, **metrics):
    logged = {"policy__action": actions, "outcome__reward": made.flat(COUNT), **metrics}
    return made.trace(Profile.SCHEDULER_PPO, settings or {}, **logged)


@pytest.mark.parametrize("said", ["3, 1", "[3.0, 1.0]", "3 1", "(3;1)"])
def test_best_shares_follow_the_speeds(said):
    best = workload.optimum(run(choices(0.5, 0.5), {"replica_speeds": said}), 2)
    assert best.known
    assert best.shares == (0.75, 0.25)
    assert "75% 25%" in best.assumption


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"replica_speeds": "fast, slow"},
        {"replica_speeds": "1.0, 0"},
        {"replica_speeds": "1, nan"},
        {"replica_speeds": "1, 2, 3", "n_replicas": 2},
        {"replica_speeds": "3"},
        {"replica_speeds": 3.0},
    ],
    ids=str,
)
def test_without_usable_speeds_replicas_are_taken_as_equal_and_that_is_said(settings):
    best = workload.optimum(run(choices(0.5, 0.5), settings), 2)
    assert not best.known
    assert best.shares == (0.5, 0.5)
    assert "taken as equal" in best.assumption


def test_a_fast_replica_may_take_more():
    """85 % of the requests for 85 % of the speed is no collapse; without the speeds it looks it."""
    fast = run(towards(0.85))
    found = COLLAPSE.judge(fast)
    assert isinstance(found, Finding)
    assert any("4 replicas are taken as equal" in line for line in found.evidence)
    told = replace(fast, settings={"replica_speeds": "17, 1, 1, 1"})
    assert isinstance(COLLAPSE.judge(told), Clear)


def test_a_fast_replica_may_not_take_all():
    found = COLLAPSE.judge(run(towards(0.995), {"replica_speeds": "17, 1, 1, 1"}))
    assert isinstance(found, Finding)
    assert found.bound.value == pytest.approx(0.96)
    assert "85% of the speed" in found.bound.origin


def test_a_slow_replica_may_not_take_more_than_an_equal_one():
    found = COLLAPSE.judge(run(towards(0.9), {"replica_speeds": "0.5, 1, 1, 1"}))
    assert isinstance(found, Finding)
    assert found.bound.value == 0.8


def uneven(actions, settings=None):
    penalty = np.clip(0.6 + 0.05 * made.noise(COUNT, 2), 0, 1)
    return run(actions, settings, scheduler__balance_penalty=penalty)


SPEEDS = {"replica_speeds": "1.5, 1.1, 0.8, 0.6"}


def test_choices_that_fit_the_speeds_make_the_gap_a_note():
    found = IMBALANCE.judge(uneven(choices(0.375, 0.275, 0.2, 0.15), SPEEDS))
    assert isinstance(found, Finding)
    assert found.severity is Severity.NOTE
    assert "the last choices fit" in found.counter[0]


def test_equal_choices_over_unequal_replicas_are_the_fault_itself():
    found = IMBALANCE.judge(uneven(choices(0.1, 0.1, 0.1, 0.7), SPEEDS))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "do not fit" in found.evidence[0]
    assert "replica 3" in found.evidence[1]
    assert "15% of the speed" in found.evidence[1]


def test_without_speeds_the_assumption_is_said_and_the_judgement_stays():
    found = IMBALANCE.judge(uneven(choices(0.375, 0.275, 0.2, 0.15)))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "taken as equal" in found.evidence[0]


def test_how_far_apart_they_may_be_can_be_set():
    strict = {"imbalance-unresolved.apart": 0.001}
    told = replace(uneven(choices(0.375, 0.275, 0.2, 0.15), SPEEDS), thresholds=strict)
    assert IMBALANCE.judge(told).severity is Severity.WARNING


def test_counts_stand_in_for_single_choices():
    counts = {f"policy__action_count__{i}": np.full(50, n) for i, n in enumerate((30.0, 10.0))}
    shares = workload.latest_shares(made.trace(Profile.SCHEDULER_PPO, **counts))
    assert shares == {"0": 0.75, "1": 0.25}


def test_too_few_choices_have_no_shares():
    assert not workload.latest_shares(run(choices(0.5, 0.5)).until(50 * made.STEP))
    nothing = {f"policy__action_count__{i}": np.full(50, np.nan) for i in range(2)}
    assert not workload.latest_shares(made.trace(Profile.SCHEDULER_PPO, **nothing))


def test_names_that_are_no_index_cannot_be_compared():
    best = workload.Optimum((0.5, 0.5), known=True)
    assert workload.misplaced_share({"gpu-a": 1.0}, best) is None
    assert workload.misplaced_share({"7": 1.0}, best) is None
    assert workload.misplaced_share({"0": 1.0}, best) == pytest.approx(0.5)
