"""Actions that are wider than what the environment takes, from the first update on."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.rules.exploration import exploration_explodes
from rlvitals.rules.rule import Clear, Finding, Severity
from rlvitals.types import Budget

COUNT = 100
RISING = np.linspace(-1250.0, -600.0, COUNT) + 5.0 * made.noise(COUNT)


def wide(std, outcome=RISING, env="Pendulum-v1"):
    width = np.full(COUNT, std)
    run = made.trace(settings={"env_id": env}, exploration__std=width, outcome__return=outcome)
    budget = Budget(made.STEP * COUNT, "total_steps")
    return exploration_explodes.RULE.ask(replace(run, budget=budget))


def test_actions_that_drown_from_the_start_are_a_warning_far_from_solved():
    found = wide(12.0)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "Pendulum takes 2 at most" in found.summary


def test_a_wide_policy_that_solves_its_task_is_a_note():
    assert wide(12.0, np.linspace(-1250.0, -150.0, COUNT)).severity is Severity.NOTE


@pytest.mark.parametrize(("std", "env"), [(5.0, "Pendulum-v1"), (12.0, "Own-v0")])
def test_what_the_environment_takes_is_the_limit(std, env):
    assert isinstance(wide(std, env=env), Clear)
