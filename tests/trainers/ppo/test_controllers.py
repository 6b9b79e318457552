"""The temperature, the reaction to gradient spikes, and the phase before learning."""

import math

import numpy as np
import pytest
import torch

from rlvitals import UsageError
from rlvitals.trainers.ppo import environments, networks
from rlvitals.trainers.ppo.config import (
    PPOConfig,
    SpikeConfig,
    StabilisationConfig,
    TemperatureConfig,
)
from rlvitals.trainers.ppo.grad_spike_response import SpikeReaction
from rlvitals.trainers.ppo.normaliser_warmup import warm_up
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.temperature import Controller


def info(qps=4.0, latency=2.0, throughput=3.0, busy=(0.5, 0.5)):
    return {"qps": np.array([qps]), "latency": np.array([latency]),
            "throughput": np.array([throughput]), "utilisation": np.array([busy])}  # fmt: skip


def led(**settings):
    return Controller(TemperatureConfig(enabled=True, **settings))


def after(controller, steps=60, **told):
    for _ in range(steps):
        controller.after(info(**told))
    return controller.value


def test_load_and_latency_above_their_targets_lower_it():
    targets = {"target_qps": 4.0, "target_latency": 2.0, "enable_pulse": False}
    assert after(led(**targets)) == pytest.approx(1.0)
    # Twice the load: pressure 1 times sensitivity .1; twice the latency: 1 times .2.
    assert after(led(**targets), 200, qps=8.0) == pytest.approx(0.9, abs=1e-6)
    assert after(led(**targets), 200, latency=4.0) == pytest.approx(0.8, abs=1e-6)
    assert after(led(**targets), 200, qps=2.0) == pytest.approx(1.05, abs=1e-6)


def test_the_pressure_of_requests_is_real_without_a_set_target():
    held = led(enable_pulse=False)
    after(held, 50, qps=4.0)
    assert held.qps_pressure == pytest.approx(0.0)
    after(held, 10, qps=8.0)
    assert held.qps_pressure > 0.5


def test_imbalance_raises_it():
    calm = {"target_qps": 4.0, "target_latency": 2.0, "enable_pulse": False}
    assert after(led(**calm), busy=(1.0, 0.2)) == pytest.approx(1.08)


def test_it_stays_within_its_bounds():
    low = led(target_latency=0.1, enable_pulse=False, min_temperature=0.7)
    assert after(low, 200, latency=50.0) == 0.7


def test_a_pulse_lasts_its_length_and_tells_its_cause():
    held = led(stagnation_window=2, stagnation_memory=3, pulse_interval=30, pulse_duration=3)
    seen = []
    for _ in range(40):
        held.after(info())
        seen.append(held.value)
    pulsing = [i for i, value in enumerate(seen) if value > 2.0]
    assert pulsing == [7, 8, 9, 37, 38, 39]
    assert all(seen[i] == pytest.approx(3.0) for i in pulsing)
    assert next((p.step, p.cause, p.level) for p in held.pulses) == (8, "stagnation", 0.0)
    assert held.stats()["pulse_remaining"] == 1.0


def test_every_decision_of_a_pulse_is_marked_and_no_other():
    held = led(stagnation_window=2, stagnation_memory=3, pulse_interval=30, pulse_duration=3)
    drawn, marked, told = [], [], []
    for _ in range(45):
        drawn.append(held.value)
        held.after(info())
        marked.append(held.stats()["is_pulsing"])
        told.append(held.stats()["current_temperature"])
    assert marked == [float(value > 2.0) for value in drawn]
    assert sum(marked) == 6.0  # two pulses of three decisions
    assert told == drawn


def test_no_pulse_while_things_change():
    held = led(stagnation_window=2, stagnation_memory=3)
    for i in range(60):
        held.after(info(throughput=3.0 + 0.1 * i))
    assert not held.pulses


def test_periodic_pulses_are_named_so():
    held = led(periodic_pulses=True, pulse_interval=10)
    for i in range(25):
        held.after(info(throughput=3.0 + 0.5 * i))
    assert {pulse.cause for pulse in held.pulses} == {"interval"}
    assert [pulse.step for pulse in held.pulses] == [1, 11, 21]


def test_an_environment_that_tells_nothing_is_refused():
    with pytest.raises(UsageError, match="needs qps, latency, throughput, utilisation"):
        led().after({})


def quiet(reaction, updates=20, norm=0.5):
    for _ in range(updates):
        told = reaction.after(norm)
    return told


def test_a_spike_slows_and_widens_and_comes_back():
    held = SpikeReaction(SpikeConfig(enable=True), 64)
    quiet(held)
    told = held.after(5.0)
    assert told["gradient_spike"] == 1.0
    assert held.lr_factor == pytest.approx(0.9)
    assert held.minibatch_size == 70
    assert told["grad_norm_usual"] == pytest.approx(0.5)  # a spike is not usual
    quiet(held, 60)
    assert held.lr_factor == pytest.approx(1.0, abs=0.01)
    assert held.minibatch_size == 64


def test_the_minibatch_stays_within_its_bounds_in_either_direction():
    # Half of 64 and twice of it, where nothing is said.
    for direction, said, last in (
        ("up", {}, 128), ("down", {}, 32), ("up", {"max": 90}, 90), ("down", {"min": 60}, 60)
    ):  # fmt: skip
        held = SpikeReaction(SpikeConfig(enable=True, direction=direction, **said), 64)
        quiet(held)
        for _ in range(40):
            held.after(50.0)
        assert held.minibatch_size == last
        assert held.lr_factor == pytest.approx(0.1)


def test_a_norm_that_is_no_number_is_a_spike():
    held = SpikeReaction(SpikeConfig(enable=True), 64)
    assert held.after(math.nan)["gradient_spike"] == 1.0


def test_a_minibatch_outside_of_its_bounds_is_refused():
    with pytest.raises(UsageError, match="minibatch_size 256 is outside of 32 to 128"):
        SpikeReaction(SpikeConfig(enable=True, min=32, max=128), 256)
    # Whatever the size, the reaction needs no more than to be asked for.
    assert SpikeReaction(SpikeConfig(enable=True), PPOConfig().minibatch_size)


def small():
    torch.manual_seed(0)
    envs = environments.make("CartPole-v1", 4)
    policy = networks.build(envs.features, envs.actions, hidden=(8,))
    return PPO(envs, policy, PPOConfig(rollout_length=16), total_steps=1000)


def test_the_phase_fills_the_normalisers_and_learns_nothing():
    held = small()
    before = [p.clone() for p in held.policy.parameters()]
    told = list(warm_up(held, StabilisationConfig(statistics_stabilization_steps=50)))
    assert [one.step for one in told] == [20, 40, 50]
    assert told[-1].is_last
    assert told[-1].baseline["reward"] > 0.9
    assert held.normalise_obs.moments.count == 200
    assert held.normalise_reward.moments.count == 200
    assert all(map(torch.equal, before, held.policy.parameters()))


def test_the_phase_goes_on_where_it_was(tmp_path):
    held = small()
    phase = warm_up(held, StabilisationConfig(statistics_stabilization_steps=50))
    next(phase)
    held.state().save(tmp_path)
    other = small()
    other.state().load(tmp_path)
    rest = list(warm_up(other, StabilisationConfig(statistics_stabilization_steps=50)))
    assert [one.step for one in rest] == [40, 50]


@pytest.mark.parametrize("when", ["during", "after"])
def test_frozen_normalisers_learn_nothing(when):
    held = small()
    frozen = {f"freeze_normalizers_{when}_stabilization": True}
    list(warm_up(held, StabilisationConfig(statistics_stabilization_steps=20, **frozen)))
    assert held.normalise_obs.moments.count == (0 if when == "during" else 80)
    held.collect_rollout()
    assert held.normalise_obs.moments.count == (64 if when == "during" else 80)


def test_the_weights_of_random_actions():
    held = small()
    acted = []
    step = held.envs.step
    held.envs.step = lambda actions: acted.append(actions) or step(actions)
    weights = StabilisationConfig(20, stabilization_action_distribution=(1.0, 0.0))
    list(warm_up(held, weights))
    assert np.concatenate(acted).max() == 0
    odd = StabilisationConfig(20, stabilization_action_distribution=(1.0,))
    with pytest.raises(UsageError, match="1 weights for 2 actions"):
        list(warm_up(small(), odd))
    negative = StabilisationConfig(20, stabilization_action_distribution=(1.5, -0.5))
    with pytest.raises(UsageError) as caught:
        list(warm_up(small(), negative))
    assert "at least 0 for each action" in caught.value.hint


def test_the_policy_may_act_in_the_phase():
    one, two = small(), small()
    list(warm_up(one, StabilisationConfig(20, stabilization_policy="policy")))
    list(warm_up(two, StabilisationConfig(20)))
    assert not np.array_equal(one.envs.observations, two.envs.observations)
