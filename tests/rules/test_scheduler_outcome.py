"""What a request scheduler's outcome can show: arrivals limit throughput, a warm start the gain."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.outcome import no_learning
from rlvitals.rules.reward import constant_reward, reward_up_throughput_flat
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.rules.standing import standing
from rlvitals.types import Profile

COUNT = 200
PAID = reward_up_throughput_flat.RULE


def noisy(first, last, seed=0, share=0.01):
    scatter = np.random.default_rng(seed).normal(0, share * abs(first), COUNT)
    return np.linspace(first, last, COUNT) + scatter


def run(settings=None, **metrics):
    return made.trace(Profile.SCHEDULER_PPO, settings or {}, **metrics)


def served(latency, **more):
    return run(
        outcome__return=noisy(-85, -45), outcome__throughput=noisy(12.2, 12.2, 1),
        outcome__latency=latency, **more,
    )  # fmt: skip


def test_throughput_that_arrivals_limit_need_not_follow_the_reward():
    latency = noisy(2.3, 2.2, 2)
    assert isinstance(PAID.judge(served(latency)), Finding)
    arrivals = noisy(13.3, 13.3, 3)
    assert isinstance(PAID.judge(served(latency, scheduler__arrival_rate=arrivals)), Clear)


@pytest.mark.parametrize("latency", [noisy(2.3, 3.0, 2), np.full(COUNT, 2.3)], ids=["up", "lost"])
def test_latency_must_not_rise_nor_be_lost_meanwhile(latency):
    found = PAID.judge(served(latency, scheduler__arrival_rate=noisy(13.3, 13.3, 3)))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


def test_where_much_is_not_served_throughput_must_follow():
    found = PAID.judge(served(noisy(2.3, 2.2, 2), scheduler__arrival_rate=noisy(20, 20, 3)))
    assert isinstance(found, Finding)


def parts(value):
    return run(
        outcome__return=noisy(-85, -45), reward__component__tail_penalty=np.full(COUNT, value),
        reward__component__absolute_score=noisy(0.02, 0.03, 4),
    )  # fmt: skip


def test_a_part_without_weight_is_no_dead_part():
    assert isinstance(constant_reward.RULE.judge(parts(0.0)), Clear)
    assert isinstance(constant_reward.RULE.judge(parts(-0.5)), Finding)


@pytest.mark.parametrize(("said", "state"), [(False, "unknown"), (True, "flat")])
def test_a_flat_outcome_after_a_warm_start_is_not_judged(said, state):
    trace = run({"skip_warmstart": said}, outcome__return=noisy(-209, -209, share=0))
    assert standing(trace).state == state
    answer = no_learning.RULE.judge(trace)
    assert isinstance(answer, Undecided if state == "unknown" else Finding)


def test_a_warm_started_run_that_gets_worse_is_judged():
    trace = run({"skip_warmstart": False}, outcome__return=noisy(-200, -400))
    assert isinstance(no_learning.RULE.judge(trace), Finding)
