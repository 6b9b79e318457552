"""component-dominates and dead parts: what the parts of a reward tell."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.answers import learning_trend
from rlvitals.rules.reward import component_dominates, constant_reward
from rlvitals.rules.rule import Clear, Finding, Severity, Undecided
from rlvitals.types import Profile


def course(low, high, count=200, seed=3, spread=0.03):
    return np.linspace(low, high, count) + spread * made.noise(count, seed)


def run(correct, weight=1.0, **parts):
    total = correct + weight * sum(parts.values())
    named = {f"reward__component__{name}": values for name, values in parts.items()}
    return made.trace(
        Profile.GRPO, outcome__reward=total, reward__component__correct=correct, **named
    )


def test_a_bonus_that_makes_the_gain_while_answers_stall_is_a_warning():
    found = component_dominates.RULE.judge(run(course(0.3, 0.3), style=course(0.1, 0.9, seed=4)))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert found.metric == "reward/component/style"


def test_trap_the_format_is_learned_first_in_nearly_every_run():
    form = np.concatenate((np.linspace(0, 1, 20), np.ones(180)))
    slow = course(0.20, 0.45)
    assert isinstance(component_dominates.RULE.judge(run(slow, form=form)), Clear)


def test_trap_answers_that_are_right_have_nowhere_to_go():
    solved = np.clip(course(0.97, 0.97, spread=0.005), 0, 1)
    assert isinstance(
        component_dominates.RULE.judge(run(solved, style=course(0.1, 0.9, seed=4))), Clear
    )


def test_a_part_weighs_what_the_total_says_it_does():
    # The bonus moves by 0.8 and counts for a hundredth of it.
    light = run(course(0.3, 0.38), weight=0.01, style=course(0.1, 0.9, seed=4))
    assert isinstance(component_dominates.RULE.judge(light), Clear)


def test_without_a_part_that_checks_the_answer_nothing_is_concluded():
    judged = component_dominates.RULE.judge(
        made.trace(Profile.GRPO, reward__component__style=course(0.1, 0.9))
    )
    assert isinstance(judged, Undecided)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_part_that_never_told_responses_apart_is_a_note(value):
    found = constant_reward.RULE.judge(run(course(0.2, 0.7), tagged=np.full(200, value)))
    assert found.severity is Severity.NOTE
    assert found.metric == "reward/component/tagged"
    assert "never told responses apart" in found.summary


def test_right_answers_throughout_are_no_dead_part():
    judged = constant_reward.RULE.judge(run(np.ones(200), style=course(0.1, 0.9)))
    assert isinstance(judged, Clear)


def test_a_part_that_was_found_once_is_alive():
    found = np.zeros(200)
    found[150] = 0.1
    assert isinstance(constant_reward.RULE.judge(run(course(0.2, 0.7), tagged=found)), Clear)


def unnamed(**parts):
    named = {f"reward__component__{name}": values for name, values in parts.items()}
    return made.trace(Profile.GRPO, outcome__reward=sum(parts.values()), **named)


RARE = np.where(np.arange(200) % 7 == 0, 0.01, 0.0)


def test_a_rise_by_one_part_beside_another_that_is_hardly_earned_is_not_called_learning():
    rising = course(0.2, 0.7, spread=0.01)
    now = learning_trend(unnamed(f=RARE, g=rising))
    assert now.state == "unknown"
    assert "which of them means right answers" in now.why
    # A difference of the two is no third part.
    assert learning_trend(unnamed(f=RARE, g=rising, g_minus_f=rising - RARE)).state == "unknown"


@pytest.mark.parametrize(
    "parts",
    [
        {"correct": course(0.2, 0.7, spread=0.01), "style": RARE},  # a name says which one counts
        {"g": course(0.2, 0.7, spread=0.01), "format": RARE},
        {"g": course(0.2, 0.7, spread=0.01), "bonus": np.zeros(200)},  # not in use
        {"g": course(0.2, 0.7, spread=0.01), "repetition": -RARE},  # a penalty
        {"g": course(0.2, 0.7, spread=0.01), "h": course(0.1, 0.4, seed=5), "f": RARE},
    ],
    ids=["named", "format", "unused", "penalty", "two-rise"],
)
def test_trap_a_part_at_its_floor_that_says_nothing(parts):
    assert learning_trend(unnamed(**parts)).improves


def test_a_stretch_with_exceptions_says_how_many_values_are_the_same():
    rewards = np.full(60, -1.0)
    rewards[[11, 37]] = -0.5
    found = constant_reward.RULE.judge(
        made.trace(Profile.UNKNOWN, outcome__reward=rewards, reward__std=np.zeros(60))
    )
    assert isinstance(found, Finding)
    assert "58 of 60" in found.summary
    exact = constant_reward.RULE.judge(made.trace(Profile.UNKNOWN, outcome__reward=np.full(60, -1)))
    assert "in 60 values in a row" in exact.summary
