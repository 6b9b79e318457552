"""What a fault cost: steps always, hours with a clock, money with a price."""

from dataclasses import replace

import numpy as np
import pytest
from loading import MEASURED, load_run

from rlvitals.diagnosis.cost import waste
from rlvitals.diagnosis.engine import diagnose
from rlvitals.metrics.metric import Bound
from rlvitals.rules.rule import Finding, Severity
from rlvitals.types import Series, Trace

STEPS = np.arange(0, 10_001, 100)


def finding(began=4_000, known=6_000):
    bound = Bound(1.0, "default")
    return Finding("", Severity.ERROR, "x/y", began, 10_000, 2.0, bound, known=known)


def made(times, **settings):
    return Trace({"x/y": Series(STEPS, times, STEPS * 1.0)}, {}, settings)


def test_steps_hours_and_money():
    found = waste(made(3.6 * STEPS, price_per_hour=2.5), finding())  # 1,000 steps an hour
    assert found.since_began.steps == 6_000
    assert found.since_began.hours == pytest.approx(6.0)
    assert found.since_began.money == pytest.approx(15.0)
    assert found.since_known.hours == pytest.approx(4.0)
    assert found.why == ""


def test_without_a_clock_steps_alone_and_why():
    found = waste(made(np.full(len(STEPS), np.nan), price_per_hour=2.5), finding())
    assert found.since_began.steps == 6_000
    assert found.since_began.hours is found.since_began.money is None
    assert found.why == "the log has no wall times"


def test_a_pause_between_attempts_costs_nothing():
    times = 3.6 * STEPS + np.where(STEPS > 8_000, 50_000.0, 0.0)
    assert waste(made(times), finding()).since_began.hours == pytest.approx(6.0, rel=0.02)
    back = 3.6 * np.where(STEPS > 8_000, STEPS - 8_000, STEPS)  # a new attempt's clock starts anew
    assert waste(made(back), finding()).since_began.hours == pytest.approx(6.0, rel=0.02)


def test_only_what_goes_on_and_keeps_the_outcome_down_is_waste():
    costs = {}
    for name in ("ppo-cartpole-lr-spike", "ppo-cartpole-healthy", "grpo-healthy"):
        found = diagnose(replace(load_run(name)), rates=MEASURED)
        costs[name] = [case.waste for case in found.cases if case.waste]
    assert costs["ppo-cartpole-healthy"] == costs["grpo-healthy"] == []
    (cost,) = costs["ppo-cartpole-lr-spike"]
    assert cost.since_began.steps == 61_440 - 31_744
