"""Which runs count as broken: by what they earned, not by what was done to them."""

from dataclasses import replace

import pytest

from rlvitals.faults.folder import Recorded
from rlvitals.faults.ground_truth import Course, Label, course, label, levels, looks_healthy

RUN = Recorded(
    name="healthy-s0",
    task="ppo-CartPole-v1",
    algorithm="PPO",
    env_id="CartPole-v1",
    fault="",
    about="",
    variant="",
    onset=None,
    seed=0,
    steps=1000,
    settings={},
    ended="finished",
    first=20.0,
    best=480.0,
    outcome=450.0,
)
HEALTHY = [replace(RUN, name=f"healthy-s{i}", seed=i, outcome=400.0 + i) for i in range(20)]
LEVEL = levels(HEALTHY)[RUN.task]


def test_the_level_is_taken_from_the_healthy_seeds_alone():
    others = [replace(RUN, fault="reward-zero", outcome=0.0), replace(RUN, variant="slow")]
    assert levels([*HEALTHY, *others])[RUN.task] == LEVEL
    assert (LEVEL.first, LEVEL.usual, LEVEL.seeds) == (20.0, 409.5, 20)
    assert LEVEL.low == pytest.approx(400.95)


def test_a_task_with_too_few_healthy_seeds_is_not_scored():
    assert levels(HEALTHY[:19]) == {}


@pytest.mark.parametrize(
    ("outcome", "best", "ended", "expected"),
    [
        (450.0, 480.0, "finished", Course.LEARNED),
        (200.0, 480.0, "finished", Course.LOST),
        (300.0, 480.0, "finished", Course.LEARNED),
        (30.0, 50.0, "finished", Course.NOT_LEARNED),
        (450.0, 480.0, "ValueError: nan", Course.FAILED),
        (None, None, "finished", Course.NOT_LEARNED),
    ],
)
def test_the_course_of_a_run(outcome, best, ended, expected):
    run = replace(RUN, outcome=outcome, best=best, ended=ended)
    assert course(run, LEVEL) is expected


def test_negative_returns_are_judged_alike():
    level = levels([replace(r, first=-1200.0, outcome=-200.0 - r.seed) for r in HEALTHY])[RUN.task]
    rising = replace(RUN, first=-1200.0, best=-180.0, outcome=-190.0)
    assert course(rising, level) is Course.LEARNED
    assert course(replace(rising, outcome=-1100.0), level) is Course.LOST
    assert course(replace(rising, best=-1150.0, outcome=-1190.0), level) is Course.NOT_LEARNED


def test_a_fault_without_harm_is_a_benign_mutation():
    assert label(replace(RUN, fault="reward-x1000"), LEVEL) is Label.BENIGN
    assert label(replace(RUN, fault="reward-x1000", outcome=300.0), LEVEL) is Label.BROKEN


def test_a_hair_below_seeds_that_hardly_differ_is_no_harm():
    level = levels([replace(r, outcome=500.0) for r in HEALTHY])[RUN.task]
    assert label(replace(RUN, fault="reward-x1000", outcome=470.0), level) is Label.BENIGN
    assert label(replace(RUN, fault="reward-x1000", outcome=440.0), level) is Label.BROKEN


def test_a_fault_that_is_broken_by_construction_is_no_benign_one():
    assert label(replace(RUN, fault="environment-slow"), LEVEL) is Label.BROKEN


def test_a_healthy_run_that_lost_what_it_had_failed_on_its_own():
    assert label(RUN, LEVEL) is Label.HEALTHY
    assert label(replace(RUN, outcome=60.0), LEVEL) is Label.OWN_FAILURE


def test_a_critic_that_is_not_trained_hides_while_the_run_learns():
    frozen = replace(RUN, fault="critic-frozen", onset=0, outcome=300.0)
    assert looks_healthy(frozen, LEVEL)
    assert not looks_healthy(replace(frozen, outcome=20.0), LEVEL)  # nothing was learned
    assert not looks_healthy(replace(frozen, fault="reward-zero"), LEVEL)
    assert not looks_healthy(RUN, LEVEL)
