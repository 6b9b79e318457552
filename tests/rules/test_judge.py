"""judge-outage: rewards that stop coming, and policies that only get worse."""

import made_traces as made
import numpy as np
import pytest
from loading import load

from rlvitals.rules.reward.judge_outage import RULE
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.types import Profile


def run(reward, entropy=None, **more):
    count = len(reward)
    entropy = 1.0 + 0.02 * made.noise(count, 5) if entropy is None else entropy
    return made.trace(Profile.GRPO, outcome__reward=reward, exploration__entropy=entropy, **more)


def ordinary(count=150, level=0.5, seed=3):
    return level + 0.05 * made.noise(count, seed)


def down(first, last, count=150):
    reward = ordinary(count)
    reward[first:last] = 0.0
    return reward


def test_a_recorded_judge_that_gives_no_score_is_told_while_it_lasts():
    found = RULE.ask(load("judge-outage", "silent"))
    assert isinstance(found, Finding)
    assert "reward is missing in 15 successive updates" in found.summary
    assert found.severity is Severity.WARNING
    assert (found.began, found.known) == (76, 78)


def test_a_judge_that_is_down_now_is_a_warning_and_a_short_outage_long_ago_a_note():
    assert RULE.judge(run(down(140, 150))).severity is Severity.WARNING
    assert RULE.judge(run(down(60, 66))).severity is Severity.NOTE


def test_an_outage_of_a_fifth_of_a_run_that_learns_nothing_is_a_warning():
    found = RULE.judge(run(down(60, 95)))
    assert found.severity is Severity.WARNING


def test_trap_a_policy_that_collapses_moves_before_it_fails():
    entropy = np.concatenate((1.0 + 0.02 * made.noise(100, 5), np.full(50, 0.01)))
    assert isinstance(RULE.judge(run(down(100, 150), entropy)), Clear)


def test_trap_rewards_that_sink_over_several_updates_are_no_outage():
    reward = ordinary()
    reward[90:100] = np.linspace(0.5, 0.0, 10)
    reward[100:] = 0.0
    assert isinstance(RULE.judge(run(reward)), Clear)


def test_trap_a_hard_task_with_batches_of_zeros_is_no_outage():
    for seed in range(20):
        reward = np.random.default_rng(seed).binomial(32, 0.04, 200) / 32
        assert isinstance(RULE.judge(run(reward)), Clear), seed


def test_trap_a_reward_that_is_logged_every_tenth_row_is_not_missing():
    sparse = made.series(ordinary(15), made.STEP * 10 * (1 + np.arange(15)))
    assert isinstance(RULE.judge(run(sparse, 1.0 + 0.02 * made.noise(150))), Clear)


def test_trap_nothing_is_concluded_where_nothing_tells_whether_the_policy_moved():
    alone = made.trace(Profile.GRPO, outcome__reward=down(100, 150))
    assert isinstance(RULE.judge(alone), Clear)


def test_responses_that_differ_at_the_floor_are_scored():
    spread = np.full(150, 0.2)
    assert isinstance(RULE.judge(run(down(100, 120), reward__std=spread)), Clear)


@pytest.mark.parametrize(("share", "fires"), [(0.5, True), (0.05, False)])
def test_rollouts_that_end_in_errors_are_counted(share, fires):
    errors = np.full(150, share)
    judged = RULE.judge(run(ordinary(), language__error_share=errors))
    assert isinstance(judged, Finding) is fires


@pytest.mark.parametrize(
    ("first", "last", "severity"),
    [(0, 150, Severity.ERROR), (0, 100, Severity.WARNING), (70, 80, Severity.NOTE)],
)
def test_where_all_of_them_fail_to_the_end_it_is_an_error(first, last, severity):
    errors = np.zeros(150)
    errors[first:last] = 1.0
    found = RULE.judge(run(ordinary(), language__error_share=errors))
    assert found.severity is severity


def test_a_partial_outage_shows_in_the_time_of_a_step():
    half = ordinary()
    half[100:] -= 0.3
    slower = np.where(np.arange(150) < 100, 10.0, 25.0) + 0.3 * made.noise(150, 9)
    found = RULE.judge(run(half, throughput__step_time=slower))
    assert found.severity is Severity.NOTE
    assert abs(found.began / made.STEP - 101) <= 2
    steady = 10.0 + 0.3 * made.noise(150, 9)
    assert isinstance(RULE.judge(run(half, throughput__step_time=steady)), Clear)
