"""What went wrong in the schedulers that this one follows, measured there: none of it here."""

import json
import subprocess
import sys

import numpy as np
import programs
import pytest
import torch
from waiting import HANG_SECONDS

from rlvitals.cli import main
from rlvitals.trainers.ppo import environments, networks
from rlvitals.trainers.ppo.cluster import ID
from rlvitals.trainers.ppo.config import PPOConfig
from rlvitals.trainers.ppo.normalizer import RewardNormaliser
from rlvitals.trainers.ppo.ppo import PPO


def test_the_first_minibatch_has_ratio_one_whatever_was_drawn_at(tmp_path):
    """There: |ratio - 1| .46 to .55 and 84 % clipped before any update."""
    made = programs.training(tmp_path, programs.ALL)
    record, rows = made.recorder.log, []
    made.recorder.log = lambda step, told: (rows.append(told), record(step, told))
    made.run()
    rows = [row for row in rows if "first_kl" in row]
    assert len(rows) >= 6
    assert {row["temperature"] for row in rows} != {1.0}
    for row in rows:
        assert row["first_clipfrac"] == 0.0
        assert row["first_ratio_max"] == pytest.approx(1.0, abs=1e-5)
        assert abs(row["first_kl"]) < 1e-6


def test_what_the_policy_sees_and_says_varies_with_the_state():
    """There: features and values of exactly 0.0 for any state."""
    torch.manual_seed(0)
    envs = environments.make(ID, 8, config={"load": 1.5})
    held = PPO(envs, networks.build(envs.features, 4, hidden=(16,)), PPOConfig(), total_steps=1)
    seen = held.collect_rollout().observations
    assert (seen.std((0, 1)) > 1e-3).mean() > 0.5
    rows = torch.from_numpy(seen.reshape(-1, seen.shape[-1]))
    with torch.no_grad():
        assert float(held.policy.value(rows).std()) > 0.01
        assert float(held.policy.actor(rows).std(0).min()) > 0.0
        assert float(held.policy.value(rows[:1])) != 0.0  # also one state by itself


def test_a_resume_has_optimizer_schedules_temperature_and_generators(tmp_path):
    """There: all of these began again."""
    whole = programs.run(tmp_path / "whole", programs.ALL)
    programs.run(tmp_path / "cut", programs.ALL, **{"training.total_steps": 300})
    last = programs.run(tmp_path / "cut", programs.ALL)
    for made in (whole, last):
        moments = made.ppo.optimizer.adam.state_dict()["state"]
        assert int(moments[0]["step"]) == made.ppo.counters.minibatches > 20
    assert last.ppo.temperature.step_count == whole.ppo.temperature.step_count > 150
    assert last.ppo.counters.updates == whole.ppo.counters.updates


def test_chunk_mode_trains_as_a_program_of_its_own(tmp_path):
    """There: exit code 0, nothing trained, no progress file."""
    command = [
        sys.executable, "-m", "rlvitals", "train", "ppo", "--chunk-mode", "--chunk-size", "300",
        "--total-requests", "600", "--num-replicas", "3", "--qps", "12", "--num-envs", "4",
        "--rollout-length", "32", "--demo-steps", "10", "--bc-epochs", "1",
        "--evaluation-enable", "false", "--output-dir", str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
    said = programs.progress(tmp_path)
    assert (said["completed_chunks"], said["num_replicas"], said["qps"]) == (2, 3, 12.0)
    assert said["status"] == "completed"
    assert "[PPO:update]" in (tmp_path / "chunk_2.log").read_text()


def test_a_good_reward_keeps_its_sign():
    """There: a constant reward of 1 became -1.45 to -2.5."""
    held = RewardNormaliser(4, 0.99)
    for _ in range(300):
        scaled = held(np.ones(4), np.zeros(4, bool))
        assert (scaled > 0).all()
    assert (held(-np.ones(4), np.zeros(4, bool)) < 0).all()


@pytest.mark.soak
def test_a_comparison_has_numbers_of_every_scheduler(tmp_path, capsys):
    """There: 13 reports, each of them N/A."""
    programs.run(tmp_path, programs.CLUSTER)
    capsys.readouterr()
    play = ["--seeds", "2", "--envs", "4", "--steps", "40"]
    assert main(["evaluate", str(tmp_path), "--json", *play]) == 0
    found = json.loads(capsys.readouterr().out)["evaluations"]
    assert {"ppo", "random", "round_robin", "lor", "lor/speed"} <= found.keys()
    for rows in found.values():
        numbers = {key: value for row in rows for key, value in row.items() if type(value) is float}
        assert len(rows) == 2
        assert np.isfinite(list(numbers.values())).all()
        assert min(value for key, value in numbers.items() if key not in {"reward", "return"}) >= 0
    assert main(["evaluate", str(tmp_path), *play]) == 0
    text = capsys.readouterr().out
    assert "N/A" not in text
    assert "nan" not in text.lower()


def test_the_entropy_floor_has_a_gradient():
    """There: a number without one."""

    def entropy_after(floor):
        torch.manual_seed(0)  # the floor is all that differs
        envs = environments.make("CartPole-v1", 4)
        policy = networks.build(envs.features, 2, hidden=(8,))
        with torch.no_grad():
            policy.actor[-1].bias[:] = torch.tensor([2.0, -2.0])
        config = PPOConfig(
            rollout_length=32, minibatch_size=64, learning_rate=0.02, entropy_min=floor,
            entropy_floor_coef=5.0, entropy_coef=0.0,
        )  # fmt: skip
        held = PPO(envs, policy, config, total_steps=10_000)
        return [held.iterate()[1]["entropy"] for _ in range(8)]

    held, free = entropy_after(0.6), entropy_after(0.0)
    assert held[-1] > 0.5 > held[0]
    assert held[-1] > free[-1] + 0.1
