"""A return that fell at once and rises again is learning; one that stays down, or sags, is not."""

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.outcome_blocks import recovery

RISE = np.linspace(0, 24, 300)


def returns(after, scatter=5.0):
    return np.concatenate((RISE, np.full(100, 24.0), after)) + scatter * made.noise(
        400 + len(after)
    )


def word(values):
    return diagnose(made.trace(outcome__return=values)).verdict.word


@pytest.mark.parametrize("end", [15, 20, 24])
def test_a_return_that_rises_again_after_its_opponent_was_replaced_is_learning(end):
    assert word(returns(np.linspace(0, end, 400))) == "learning"


def test_the_sentence_names_the_fall():
    values = returns(np.linspace(0, 16, 400))
    assert "has risen since" in diagnose(made.trace(outcome__return=values)).verdict.why


def test_a_return_that_stays_down_has_collapsed():
    assert word(returns(np.full(400, 2.0))) == "collapsed"


def test_a_slow_decline_is_no_change_of_the_task():
    decline = np.concatenate((np.linspace(24, 4, 300), np.linspace(4, 16, 100)))
    assert recovery(made.trace(outcome__return=returns(decline)), 2.5) is None


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_recover(seed):
    assert recovery(made.trace(outcome__return=made.noise(800, seed)), 0.5) is None
