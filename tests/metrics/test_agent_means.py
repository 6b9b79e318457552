"""Rewards of numbered agents are one outcome: their mean."""

import numpy as np
import pytest

import rlvitals

ROWS = 60


def run(tmp_path, **columns):
    rows = zip(range(ROWS), *columns.values(), strict=True)
    lines = [",".join(["step", *columns]), *(",".join(f"{x:.4f}" for x in row) for row in rows)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


def curve(seed, gain):
    rng = np.random.default_rng(seed)
    return gain * np.linspace(0, 1, ROWS) + rng.normal(0, 0.3, ROWS)


def test_their_mean_is_judged_and_a_note_says_so(tmp_path):
    agents = [curve(n, 6 + 2 * n) for n in range(3)]
    path = run(tmp_path, reward_0=agents[0], reward_1=agents[1], reward_2=agents[2])
    trace = rlvitals.trace(path)
    assert trace["outcome/reward"].values == pytest.approx(np.mean(agents, axis=0), abs=1e-4)
    assert any("`mean of reward_0-2` is taken for outcome/reward" in note for note in trace.notes)
    assert set(trace.unmapped) == {"reward_0", "reward_1", "reward_2"}
    assert rlvitals.diagnose(path).verdict.word.value == "learning"


def test_opponents_whose_rewards_add_up_to_a_constant_have_none(tmp_path):
    first = curve(0, 5)
    trace = rlvitals.trace(run(tmp_path, reward_0=first, reward_1=-first))
    assert "outcome/reward" not in trace


def test_beside_a_known_outcome_and_of_one_column_there_is_none(tmp_path):
    both = run(tmp_path, episode_reward=curve(3, 5), reward_0=curve(0, 6), reward_1=curve(1, 8))
    assert not any("mean of" in note for note in rlvitals.trace(both).notes)
    alone = run(tmp_path, reward_0=curve(0, 6), loss=curve(1, 1))
    assert not any("mean of" in note for note in rlvitals.trace(alone).notes)
