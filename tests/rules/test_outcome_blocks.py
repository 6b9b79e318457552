"""The verdict on a whole run's return: by blocks, whatever its offset and scale."""

import numpy as np
import pytest

from rlvitals.diagnosis.engine import diagnose
from rlvitals.rules.answers import verdict_trend
from rlvitals.types import Lifecycle, Series, Trace


def verdict(values, name="outcome/return"):
    steps = 1_000 * np.arange(1, len(values) + 1)
    series = Series(steps, steps / 1e3, np.asarray(values, dtype=np.float64))
    trace = Trace({name: series}, {}, lifecycle=Lifecycle(ended=True))
    found = diagnose(trace)
    return str(found.verdict.word), {rule.name for rule, _ in found.findings}


def around(course, seed=0, sd=1.0):
    return course + sd * np.random.default_rng(seed).normal(size=len(course))


@pytest.mark.parametrize("offset", [0.0, 50.0, 1e3, -1e3])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_rise_is_one_at_every_offset_and_scale(offset, scale):
    word, names = verdict(scale * (around(np.linspace(0, 3, 400)) + offset))
    assert word in {"learning", "plateau"}
    assert "no-learning" not in names


@pytest.mark.parametrize("offset", [0.0, 50.0, 1e3, -1e3])
def test_a_flat_return_is_stalled_at_every_offset(offset):
    word, names = verdict(around(np.zeros(400), sd=20) + offset)
    assert word == "stalled"
    assert "no-learning" in names


def test_a_return_lost_from_its_best_has_a_finding():
    rise = np.r_[np.linspace(0, 10, 200), np.full(100, 10.0), np.full(100, 2.0)]
    word, names = verdict(around(rise))
    assert word == "collapsed"
    assert "return-collapse" in names


def test_a_flat_evaluation_of_an_unknown_task_is_stalled():
    word, names = verdict(around(np.full(60, 19.4), seed=1, sd=0.2), "outcome/eval_return")
    assert word == "stalled"
    assert "no-learning" in names


def test_evaluations_of_zero_throughout_are_stalled():
    assert verdict(np.zeros(42), "outcome/eval_return")[0] == "stalled"


def test_a_training_return_of_nothing_but_nan_tells_nothing_of_the_evaluations():
    steps = 1_000 * np.arange(1, 61)
    level = around(np.full(60, 19.4), sd=0.2)
    columns = {"outcome/eval_return": level, "outcome/return": np.full(60, np.nan)}
    series = {name: Series(steps, steps / 1e3, values) for name, values in columns.items()}
    assert verdict_trend(Trace(series, {}, lifecycle=Lifecycle(ended=True))).state == "unknown"
