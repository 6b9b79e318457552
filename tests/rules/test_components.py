"""component-dominates and dead parts: what the parts of a reward tell."""

import made_traces as made
import numpy as np
import pytest

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
