"""Real training, a few hundred steps of it: the fault is in the run, and the log is SB3's own."""

from dataclasses import replace

import numpy as np
import pytest

import rlvitals
from rlvitals.faults import folder
from rlvitals.faults.fault import Clock, Onset
from rlvitals.faults.record import record
from rlvitals.faults.run_list import Planned
from rlvitals.faults.tasks import FAULT_TASKS

PPO = replace(FAULT_TASKS[0], steps=2048, variants={})


def recorded(tmp_path, **changes):
    planned = Planned(**{"task": PPO, "seed": 0, **changes})
    run, text = record(planned)
    folder.write(tmp_path, run, text)
    return run, rlvitals.trace(folder.trace(tmp_path, run))


def test_a_healthy_run_logs_what_it_earned(tmp_path):
    run, trace = recorded(tmp_path)
    assert (run.fault, run.ended, run.onset) == ("", "finished", None)
    assert trace["outcome/return"].values[-1] == pytest.approx(run.outcome, rel=0.5)
    assert {"policy/approx_kl", "value/explained_variance"} <= set(trace.series)


def test_a_wrong_reward_is_logged_and_the_true_one_kept(tmp_path):
    run, trace = recorded(tmp_path, fault="reward-flipped", onset=Onset.START)
    assert trace["outcome/return"].values[-1] < 0 < run.outcome


@pytest.mark.soak
def test_a_fault_in_the_middle_leaves_the_first_half_as_it_was(tmp_path):
    _, healthy = recorded(tmp_path)
    run, broken = recorded(tmp_path, fault="learning-rate-x300", onset=Onset.MIDDLE)
    assert run.onset == 1024
    kl = [trace["policy/approx_kl"] for trace in (healthy, broken)]
    assert np.array_equal(kl[0].until(1000).values, kl[1].until(1000).values)
    assert kl[1].since(1100).values.max() > 10 * kl[0].values.max()


def test_a_run_that_raises_says_how_it_ended(tmp_path):
    run, trace = recorded(tmp_path, fault="weight-nan", onset=Onset.MIDDLE)
    assert run.ended.startswith("ValueError")
    assert trace.last_step < PPO.steps


def test_time_is_the_processors(tmp_path):
    _, trace = recorded(tmp_path)
    assert trace["throughput/elapsed"].values[-1] > 0


@pytest.mark.parametrize(
    ("world", "reward", "first"),
    [
        ("FlippedReward", -1.0, None),
        ("HugeReward", 1000.0, None),
        ("ConstantObservation", 1.0, 0.0),
    ],
)
def test_a_world_goes_wrong_when_the_clock_strikes(world, reward, first):
    import gymnasium as gym

    from rlvitals.faults import faulty_envs

    clock = Clock(onset=1)
    env = getattr(faulty_envs, world)(gym.make("CartPole-v1"), clock, 0)
    env.reset(seed=0)
    seen, paid, *_ = env.step(0)
    assert paid == 1.0
    assert seen.any()
    clock.steps = 1
    seen, paid, *_ = env.step(0)
    assert paid == reward
    assert first is None or not seen.any()


@pytest.mark.filterwarnings("ignore:.*already returned terminated")
def test_what_is_paid_after_the_end_does_not_count():
    import gymnasium as gym

    from rlvitals.faults import faulty_envs

    env = faulty_envs.NeverTerminal(faulty_envs.TrueReturn(gym.make("CartPole-v1")), Clock(0), 0)
    env.reset(seed=0)
    told = []
    for _ in range(60):
        _, _, terminated, _, info = env.step(1)
        assert not terminated
        told += [info["true_return"]] if "true_return" in info else []
    assert len(told) == 1
    assert 5 < told[0] < 15
