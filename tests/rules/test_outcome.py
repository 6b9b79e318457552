"""Outcomes for which less is better: the words and the signs are those of the loss itself."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.records import Profile
from rlvitals.rules.outcome import no_learning
from rlvitals.rules.rule import Severity

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
