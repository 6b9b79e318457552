"""Evaluations that are too few for a trend, and rise from one to the next."""

from itertools import permutations

import numpy as np
import pytest

from rlvitals.diagnosis.verdict import Word, verdict
from rlvitals.rules.answers import few_evaluations
from rlvitals.rules.gains import order_chance
from rlvitals.types import Profile, Series, Trace

RISING = (0.40, 0.46, 0.49, 0.55, 0.61, 0.70)


def trace(name, values, *, reward=None):
    def series(points):
        points = np.asarray(points, dtype=float)
        steps = np.arange(1, len(points) + 1) * 10
        return Series(steps, np.full(len(points), np.nan), points)

    logged = {name: series(values)}
    if reward is not None:
        logged["outcome/score"] = series(reward)
        logged["language/length_mean"] = series(np.full(len(reward), 300.0))
    profile = Profile.UNKNOWN if reward is None else Profile.GRPO
    return Trace(series=logged, measured={}, settings={}, profile=profile)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_the_chance_of_an_order_is_counted_over_all_orders(count):
    values = np.array([1.0, 3.0, 2.0, 5.0, 4.0][:count])
    rising = sum(values[j] > values[i] for i in range(count) for j in range(i + 1, count))
    orders = [
        sum(order[j] > order[i] for i in range(count) for j in range(i + 1, count))
        for order in permutations(range(count))
    ]
    assert order_chance(values) == pytest.approx(np.mean([n >= rising for n in orders]))


@pytest.mark.parametrize("name", ["outcome/eval_accuracy", "outcome/eval_task/gsm8k/acc/mean@1"])
def test_evaluations_that_rise_each_time_are_learning(name):
    batches = 0.5 + np.random.default_rng(0).normal(0, 0.05, 60)
    for run in (trace(name, RISING), trace(name, RISING, reward=batches)):
        judged = verdict(run, ())
        assert judged.word is Word.LEARNING
        assert "rises over 6 evaluations: 0.4 to 0.7" in judged.why


@pytest.mark.parametrize(
    "values",
    [
        (np.nan,) * 6,
        RISING[:4],
        RISING[::-1],
        (0.40, 0.40, 0.40, 0.40, 0.41, 0.41),
        (0.400, 0.402, 0.404, 0.406, 0.408, 0.410),
        (0.40, 0.60, 0.45, 0.55, 0.50, 0.62),
    ],
    ids=["no number", "four", "falling", "ties", "by less than two of a hundred", "up and down"],
)
def test_other_evaluations_are_not(values):
    assert not [*few_evaluations(trace("outcome/eval_accuracy", values), None)]


def test_noise_rises_by_chance_at_most_once_in_a_hundred():
    noise = np.random.default_rng(1).uniform(0.3, 0.6, (2000, 6))
    rising = [
        bool([*few_evaluations(trace("outcome/eval_accuracy", values), None)]) for values in noise
    ]
    assert np.mean(rising) <= 0.015


def test_evaluations_that_are_logged_are_not_said_to_be_missing():
    assert "outcome/eval_accuracy has 3 numbers" in verdict(
        trace("outcome/eval_accuracy", RISING[:3]), ()
    ).why  # fmt: skip
