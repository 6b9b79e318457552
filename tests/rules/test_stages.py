"""Columns that name the stage of a curriculum: the outcome is judged within a stage."""

import made_traces as made
import numpy as np
import pytest

import rlvitals
from rlvitals.metrics.steps.stages import within_stage
from rlvitals.types import Series

ROWS = 400
MOVED = 200


def diagnose(tmp_path, rewards, stages, key="lesson"):
    """Write a table as people do and diagnose it."""
    scatter = np.random.default_rng(3).normal(0, 5, ROWS)
    rows = (
        f"{i},{reward:.3f},{stage}"
        for i, (reward, stage) in enumerate(zip(rewards + scatter, stages, strict=True))
    )
    path = tmp_path / "log.csv"
    path.write_text("\n".join((f"episode,reward,{key}", *rows)) + "\n")
    return rlvitals.diagnose(path)


def learned(size, first, last):
    return first + (last - first) * np.minimum(1, np.arange(size) / (0.8 * size))


ONE_STAGE = learned(MOVED, 20, 100)
STAGES = np.repeat([0, 1], MOVED)
HARDER = np.concatenate((ONE_STAGE, learned(MOVED, 10, 30)))


@pytest.mark.parametrize(
    "key", ["stage", "level", "lesson", "volume", "curriculum_stage", "env/task_level", "Lesson"]
)
def test_a_harder_stage_is_no_collapse(tmp_path, key):
    found = diagnose(tmp_path, HARDER, STAGES, key)
    assert found.verdict.word == "learning"
    assert not found.findings
    assert f"moved at step {MOVED}" in found.verdict.why


def test_what_has_no_stage_is_a_collapse(tmp_path):
    found = diagnose(tmp_path, HARDER, np.arange(ROWS), "seed")
    assert "return-collapse" in {rule.name for rule, _ in found.findings}


def test_a_fall_within_a_stage_is_a_collapse(tmp_path):
    again = np.where(np.arange(MOVED) < 120, learned(MOVED, 20, 120), 12)
    found = diagnose(tmp_path, np.concatenate((ONE_STAGE, again)), STAGES)
    assert "return-collapse" in {rule.name for rule, _ in found.findings}


def test_a_fall_long_after_the_change_is_not_excused(tmp_path):
    fallen = np.concatenate((learned(250, 20, 100), np.full(150, 15.0)))
    found = diagnose(tmp_path, fallen, np.repeat([0, 1], [100, 300]))
    assert found.worst is rlvitals.Severity.ERROR


def test_a_stage_that_teaches_nothing_is_flat(tmp_path):
    found = diagnose(tmp_path, np.concatenate((ONE_STAGE, np.full(MOVED, 12.0))), STAGES)
    assert found.verdict.word == "stalled"


def test_a_new_stage_is_judged_when_it_has_points(tmp_path):
    late = np.repeat([0, 1], [ROWS - 10, 10])
    found = diagnose(tmp_path, np.where(late, 5, learned(ROWS, 20, 100)), late)
    assert found.verdict.word == "learning"
    assert "until" in found.verdict.why


def test_levels_that_were_reached_cut_nothing():
    rewards = Series(np.arange(ROWS), np.zeros(ROWS), learned(ROWS, 20, 100))
    stages = Series(np.arange(ROWS), np.zeros(ROWS), np.repeat([0.0, 1.0], MOVED))
    trace = made.trace(progress__curriculum__level=stages)
    assert within_stage(trace, rewards).series is rewards


def test_a_column_that_moves_all_along_cuts_nothing():
    rewards = Series(np.arange(ROWS), np.zeros(ROWS), HARDER)
    moving = Series(np.arange(ROWS), np.zeros(ROWS), np.arange(ROWS) / 10.0)
    trace = made.trace(progress__curriculum__level=moving)
    assert within_stage(trace, rewards).series is rewards
