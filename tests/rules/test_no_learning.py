"""What is said of an outcome: of losses, for which less is better, and of what was lost again."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.records import Profile
from rlvitals.rules.outcome import no_learning
from rlvitals.rules.rule import Severity
from rlvitals.rules.standing import standing

RULE = no_learning.RULE


def supervised(loss):
    return RULE.ask(made.trace(Profile.SUPERVISED, optimiser__loss=loss))


def interval(finding):
    low, high = finding.evidence[0].removeprefix("95 % interval of the change: ").split(" to ")
    return float(low), float(high)


def test_a_loss_that_grows_is_said_to_rise():
    found = supervised(np.linspace(2.0, 3.0, 100) + 0.02 * made.noise(100))
    assert found.severity is Severity.ERROR
    assert "loss does not improve, it rises" in found.summary
    low, high = interval(found)
    assert 0 < low < high


def test_a_loss_that_hardly_falls_has_an_interval_below_zero():
    found = supervised(np.linspace(2.0, 1.95, 100) + 1e-4 * made.noise(100))
    assert "hardly improves" in found.summary
    low, high = interval(found)
    assert low < high < 0
    assert found.observed == pytest.approx(-0.04, abs=0.002)


def test_a_return_that_falls_is_said_to_fall():
    found = RULE.ask(made.trace(outcome__return=made.falling()))
    assert "return does not improve, it falls" in found.summary
    low, high = interval(found)
    assert low < high < 0


def test_what_was_learned_at_once_is_held_only_while_it_is_there():
    values = np.concatenate((np.full(3, 20.0), np.full(60, 200.0), np.full(37, 20.0)))
    run = made.trace(outcome__return=values + 2 * made.noise(100))
    assert standing(run, since=4_000, until=60_000).state == "holding its best"
    assert standing(run, since=65_000).state == "flat"
