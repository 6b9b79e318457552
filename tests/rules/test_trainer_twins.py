"""Rules on runs of our own scheduler trainer: a healthy one, and twins that were broken on purpose.

`twins/*.csv` are cut from the CSV files of `rlvitals train ppo` on the cluster at load 0.6:
`healthy`; `penalised`, with `--load-balance-penalty 5 --reward-config-alpha 0.1`; `masked`, whose
latency is measured as 0 in the second half.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from loading import read_log

from rlvitals.metrics.assemble import Given, trace
from rlvitals.metrics.names import rlvitals_ppo
from rlvitals.records import Measured, Profile, Series, Trace
from rlvitals.rules.data import first_update_off
from rlvitals.rules.reward import reward_up_throughput_flat, total_negative_absolute_positive
from rlvitals.rules.rule import Clear, Finding, Undecided
from rlvitals.trainers.ppo import acting, environments, networks
from rlvitals.trainers.ppo.config import PPOConfig
from rlvitals.trainers.ppo.ppo import PPO

TWINS = Path(__file__).parent / "twins"
NEGATIVE = total_negative_absolute_positive.RULE
GAMED = reward_up_throughput_flat.RULE
FIRST = first_update_off.RULE


def twin(name):
    given = Given(profile=Profile.SCHEDULER_PPO)
    found = trace([read_log(TWINS / f"{name}.csv")], given)
    assert found.measured["reward/mean"].framework == "rlvitals-ppo"
    return found


def test_a_healthy_training_is_judged_and_clear():
    for rule in (NEGATIVE, GAMED, FIRST):
        assert isinstance(rule.judge(twin("healthy")), Clear), rule.name


def test_a_penalty_that_drowns_the_absolute_score_is_found_and_named():
    found = NEGATIVE.judge(twin("penalised"))
    assert isinstance(found, Finding)
    assert found.metric == "reward/mean"
    assert "in 100% of the run" in found.summary
    assert any(said.startswith("load_balance_penalty is -") for said in found.evidence)
    assert not isinstance(GAMED.judge(twin("penalised")), Finding)


def test_a_reward_that_rises_because_latency_is_not_measured_is_found():
    found = GAMED.judge(twin("masked"))
    assert isinstance(found, Finding)
    assert found.metric == "reward/mean"
    assert any(said.startswith("latency repeats 0 exactly since step ") for said in found.evidence)
    assert not isinstance(NEGATIVE.judge(twin("masked")), Finding)


def small(updates=6):
    """Train a few updates on CartPole; the first minibatches' numbers as a log of ours."""
    torch.manual_seed(0)
    envs = environments.make("CartPole-v1", 4)
    policy = networks.build(envs.features, envs.actions, hidden=(16,))
    ppo = PPO(envs, policy, PPOConfig(rollout_length=16, minibatch_size=32), total_steps=10_000)
    told = [ppo.iterate()[1] for _ in range(updates)]
    steps = 64 * (1 + np.arange(updates))
    series, measured = {}, {}
    for key in ("first_kl", "first_clipfrac", "first_ratio_max"):
        name = rlvitals_ppo.NAMES.keys[key].metric.name
        values = np.array([one[key] for one in told])
        series[name] = Series(steps, np.full(updates, np.nan), values)
        measured[name] = Measured("rlvitals-ppo", key, "")
    return Trace(series, measured, profile=Profile.CONTROL_PPO)


def test_the_first_minibatch_of_a_trainer_that_is_right_is_clear():
    assert isinstance(FIRST.judge(small()), Clear)


def test_actions_drawn_at_another_temperature_than_is_told_are_found(monkeypatch):
    draw = acting.draw

    def hotter(policy, seen, temperature, *rest):
        return draw(policy, seen, 20.0 * temperature, *rest)

    monkeypatch.setattr(acting, "draw", hotter)
    torch.manual_seed(0)
    found = FIRST.judge(small())
    assert isinstance(found, Finding)
    assert "in an update's first minibatch the ratio must be 1" in found.summary


@pytest.mark.parametrize("framework", ["generic", "sb3"])
def test_what_another_framework_calls_so_is_not_judged(framework):
    run = small(2)
    other = {name: Measured(framework, name, "") for name in run.measured}
    assert isinstance(FIRST.judge(Trace(run.series, other, profile=run.profile)), Undecided)
