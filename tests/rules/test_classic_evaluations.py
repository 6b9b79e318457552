"""Evaluations of a return: an order that rises, and one number that never changes."""

from dataclasses import replace

import made_traces as made
import numpy as np
import pytest

from rlvitals.diagnosis.verdict import Word, verdict
from rlvitals.rules.answers import verdict_trend
from rlvitals.rules.gains import order_errors, rising_evaluations
from rlvitals.rules.outcome import no_learning
from rlvitals.rules.rule import Severity
from rlvitals.types import Lifecycle

# Ten evaluations of a run that learned, from A2C on a small task: each is a mean of five episodes.
LEARNED = [261, 390, 280, 520, 610, 480, 905, 780, 1129, 980]
EVAL = "outcome__eval_return"


def evaluated(values, **metrics):
    return made.trace(**{EVAL: values}, **metrics)


def finished(trace):
    return replace(trace, lifecycle=Lifecycle(live=False))


def test_ten_evaluations_whose_order_rises_are_learning():
    judged = verdict(evaluated(LEARNED), ())
    assert judged.word is Word.LEARNING
    assert judged.why.startswith("eval return is rising")


def test_evaluations_that_rise_tell_where_the_training_does_not():
    training = 1300 + 60 * np.sin(np.arange(62) / 4) + 20 * made.noise(62)
    run = evaluated(LEARNED, outcome__return=training)
    assert verdict_trend(made.trace(outcome__return=training)).state != "rising"
    assert verdict(run, ()).word is Word.LEARNING


@pytest.mark.parametrize(
    "values",
    [
        LEARNED[::-1],
        [LEARNED[n] for n in (3, 8, 0, 9, 5, 1, 7, 2, 6, 4)],
        LEARNED[:9],
        [*LEARNED[:8], 1129, *LEARNED[:4]],
        [500 + n / 100 + 40 * (n % 3) for n in range(30)],
    ],
    ids=["falling", "shuffled", "nine", "lost again", "less than their scatter"],
)
def test_no_rise_is_read_into_other_orders(values):
    assert rising_evaluations(evaluated(values)) is None


def test_one_of_two_hundred_orders_passes():
    rng = np.random.default_rng(1)
    passed = sum(
        rising_evaluations(evaluated(rng.normal(0, 1, 20))) is not None for _ in range(600)
    )
    assert passed <= 6
    errors = [order_errors(rng.normal(0, 1, 20)) for _ in range(2000)]
    assert np.std(errors) == pytest.approx(1.0, abs=0.05)


def test_five_evaluations_tell_of_a_run_that_is_over():
    values = [-17.6, -12.0, -8.5, -5.0, -4.0]
    run = evaluated(values)
    assert verdict(run, ()).word is Word.UNKNOWN
    assert verdict(finished(run), ()).word is Word.LEARNING
    averages = finished(made.trace(outcome__return=values))  # may be moving ones
    assert verdict(averages, ()).word is Word.UNKNOWN


@pytest.mark.parametrize(
    ("values", "severity"),
    [([-20.0] * 20, Severity.WARNING), ([10.1] * 20, Severity.NOTE)],
    ids=["pays nothing", "pays something"],
)
def test_one_number_throughout_is_a_warning_where_it_pays_nothing(values, severity):
    answer = no_learning.RULE.ask(finished(evaluated(values)))
    assert answer.severity is severity
