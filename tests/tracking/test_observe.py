"""A reward function that is watched returns and raises what it did before."""

import asyncio
import inspect
import math

import numpy as np
import pytest
import torch
from recording_checks import notes, points

import rlvitals


@pytest.fixture
def run(tmp_path):
    with rlvitals.start(tmp_path, strict=False) as run:
        run.log(7, {"loss": 1.0})
        yield run


def last(run):
    run.finish()
    return {key: found[-1][1] for key, found in points(run.folder).items()}


@pytest.mark.parametrize(
    ("returned", "recorded"),
    [
        ([1.0, None, 0.0, None], {"reward/component/score": 0.5, "observed/score/none_share": 0.5}),
        (torch.tensor([1.0, 3.0]), {"reward/component/score": 2.0}),
        (np.array([2, math.nan]), {"reward/component/score": 2, "observed/score/not_finite": 1}),
        ((1.0, {"speed": 0.75, "effort": 0.25}),
         {"reward/component/score": 1.0, "reward/component/speed": 0.75}),
        ({"a": [1, 2], "b": [3, 4]}, {"reward/component/a": 1.5, "reward/component/b": 3.5}),
        (0.5, {"reward/component/score": 0.5}),
        (None, {"observed/score/none_share": 1.0}),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_recorded(run, returned, recorded):
    def score(prompts, *, answer):
        assert (prompts, answer) == ("p", "a")
        return returned

    watched = rlvitals.observe(score)
    assert watched("p", answer="a") is returned
    assert watched.__name__ == "score"
    assert inspect.signature(watched) == inspect.signature(score)
    found = last(run)
    assert {key: found[key] for key in recorded} == recorded
    assert found["observed/score/calls"] == 1
    assert found["observed/score/exceptions"] == 0
    assert points(run.folder)["observed/score/seconds"][0][0] == 7, "at the run's last step"


def test_an_exception_goes_on_and_is_counted(run):
    def judge(_):
        raise TimeoutError("no answer")

    watched = rlvitals.observe(judge, run)
    for _ in range(3):
        with pytest.raises(TimeoutError, match="no answer"):
            watched(1)
    assert last(run)["observed/judge/exceptions"] == 3
    assert notes(run.folder) == {"reward judge raised TimeoutError: no answer": 3}


def test_single_rewards_are_gathered_for_a_second(run):
    watched = rlvitals.observe(lambda reward: reward, run, name="r", step=lambda: 3)
    for reward in range(1000):
        watched(float(reward))
    run.flush()
    assert len(points(run.folder)["reward/component/r"]) < 20


def test_a_coroutine_stays_one(run):
    async def score(x):
        await asyncio.sleep(0)
        return [x]

    watched = rlvitals.observe(score, run)
    assert inspect.iscoroutinefunction(watched)
    assert asyncio.run(watched(4.0)) == [4.0]
    assert last(run)["reward/component/score"] == 4.0


class Odd:
    ndim = property(lambda _: 1 / 0)
    detach = property(lambda _: 1 / 0)


def test_what_nobody_expects_changes_nothing(run):
    odd = Odd()
    assert rlvitals.observe(lambda: odd, run, name="odd")() is odd
    run.finish()
    assert any("observe odd: ZeroDivisionError" in text for text in notes(run.folder))


def test_without_a_run_nothing_happens():
    assert rlvitals.observe(lambda: 1.0)() == 1.0
