"""Which number each setting moves, and which way, on an update or a cluster of a moment.

Each row: the smaller value, the larger one, the number, the sign of its change, settings beside.
Settings of the program around the update are in test_every_setting.py.
"""

from functools import partial

import numpy as np
import pytest
import torch
from effort import sampled

from rlvitals.trainers import schema
from rlvitals.trainers.ppo import factory, networks
from rlvitals.trainers.ppo.cluster import Cluster
from rlvitals.trainers.ppo.cluster.observation import REPLICA_FEATURES
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.grad_spike_response import SpikeReaction
from rlvitals.trainers.ppo.rollout import Rollout
from rlvitals.trainers.ppo.schedules import lr_factor
from rlvitals.trainers.ppo.temperature import Controller

UP, DOWN = 1, -1
SMALL = {
    "training.env": "CartPole-v1", "training.num_envs": 4, "network.hidden_sizes": [8],
    "ppo_config.rollout_length": 16, "ppo_config.minibatch_size": 32, "ppo_config.epochs": 2,
    "warm_start.skip_warmstart": True,
}  # fmt: skip
SECTIONS = {"ppo_config", "network", "kl_regularization", "cluster", "reward_config",
            "curriculum_learning", "temperature_control", "advanced_optimization"}  # fmt: skip


def config(said):
    return schema.load(Config, None, {**SMALL, **said})


# -- numbers of an update -------------------------------------------------------------------------


def moved_policy(said):
    """A trainer whose policy left the one that collected, and the batch of that one."""
    ppo = factory.build(config(said))
    ppo.hold_to_reference()
    batch = ppo._batch(ppo.collect_rollout())
    with torch.no_grad():
        ppo.policy.actor[-1].bias += torch.tensor([0.6, -0.6])
        ppo.policy.critic[-1].bias += 0.3
    return ppo, batch


def loss(said):
    ppo, batch = moved_policy(said)
    found, _ = ppo._loss(batch, ppo.coefficients(), ppo._reference_distribution(batch)(...))
    return float(found.detach())


def first_advantage(said):
    """Of eight rewards of 1 where nothing was expected."""
    ppo = factory.build(config({**said, "ppo_config.normalise_advantages": "no"}))
    ones, no = np.ones((8, 1), np.float32), np.zeros((8, 1), bool)
    held = Rollout(
        observations=np.zeros((8, 1, 4), np.float32), actions=np.zeros((8, 1), np.int64),
        log_probs=0 * ones, temperatures=ones[:, 0], rewards=ones, terminated=no, dones=no,
        valid=~no, values=0 * ones, next_values=0 * ones, facts={}, episodes=(),
    )  # fmt: skip
    return float(ppo._batch(held).advantages[0])


def told(name, said):
    """A number of the second update."""
    ppo = factory.build(config(said))
    ppo.iterate()
    return ppo.iterate()[1][name]


def distance(said):
    """How far two updates move the weights."""
    ppo = factory.build(config(said))
    before = ppo.optimizer.vector.detach().clone()
    ppo.iterate()
    ppo.iterate()
    return float((ppo.optimizer.vector.detach() - before).norm())


def gradient(said):
    """The norm of the gradient that the last step followed."""
    ppo = factory.build(config(said))
    ppo.iterate()
    return float(ppo.optimizer.gradient.norm())


def steps(said):
    ppo = factory.build(config(said))
    ppo.collect_rollout()
    return ppo.global_step


def uncentred(said):
    _, batch = moved_policy(said)
    return abs(float(batch.advantages.mean()))


def spread(said):
    """How far the deviations of the features seen are from those of a normalised input."""
    ppo = factory.build(config(said))
    ppo.collect_rollout()
    return -abs(float(np.log(ppo.collect_rollout().observations.std((0, 1)).min())))


def speed_range(said):
    """How different the speeds of replicas look after normalisation."""
    ppo = factory.build(config({**said, "training.env": "rlvitals/Cluster-v0"}))
    rows = ppo.collect_rollout(4).observations[-1][:, : 4 * len(REPLICA_FEATURES)].reshape(4, 4, -1)
    return float(np.ptp(rows[:, :, [one.name for one in REPLICA_FEATURES].index("speed")]))


def chosen_up(said):
    """The share of decisions for a replica that is up."""
    failing = {"training.env": "rlvitals/Cluster-v0", "cluster.failures.mean_time_to_failure": 1.0}
    return 1.0 - factory.build(config({**said, **failing})).collect_rollout(90).facts["overridden"]


def greatest_reward(said):
    return -float(factory.build(config(said)).collect_rollout().rewards.max())


def coefficient(name, said, *, updates=0, minibatches=0, progress=0.0):
    ppo = factory.build(config(said))
    ppo.counters.updates, ppo.counters.minibatches = updates, minibatches
    ppo.counters.steps = int(progress * ppo.total_steps)
    return ppo.coefficients()[name]


def rate(said, *, updates=0, progress=0.0):
    return lr_factor(config(said).advanced_optimization.learning_rate_schedule, updates, progress)


def after_spikes(name, said, count=40):
    """What a reaction is after quiet updates and then spikes; 0 where there is none."""
    own = config(said).advanced_optimization.adaptive_batch_size
    if not own.enable:
        return 0.0
    reaction = SpikeReaction(own, 32)
    for _ in range(20):
        found = reaction.after(1.0)
    for _ in range(count):
        found = reaction.after(5.0)
    return found[name]


def weights(part, said):
    return sum(
        one.numel() for one in getattr(factory.build(config(said)).policy, part).parameters()
    )


def slope_at_2(said):
    """Of the activation: tanh is nearly flat there, the others are not."""
    layer = networks.ACTIVATIONS[config(said).network.activation]()
    at = torch.tensor(2.0, requires_grad=True)
    layer(at).backward()
    return float(at.grad)


NO = {"ppo_config.entropy_coef": 0.0}
KL = {"ppo_config.kl_coef": 1.0}
FAST = {"ppo_config.learning_rate": 0.05, "ppo_config.minibatch_size": 32}
WARM = {"ppo_config.entropy_warmup_coef": 0.5, "ppo_config.entropy_warmup_updates": 4}
REFERENCE = {"kl_regularization.kl_ref_coef_initial": 0.5}
SPIKES = "advanced_optimization.adaptive_batch_size."
ON = {f"{SPIKES}enable": True}
RATE = "advanced_optimization.learning_rate_schedule."
COSINE = {f"{RATE}type": "cosine_annealing_with_warmup"}
UPDATE = {
    "ppo_config.learning_rate": (1e-4, 1e-2, distance, UP, {}),
    "ppo_config.gamma": (0.9, 0.99, first_advantage, UP, {}),
    "ppo_config.gae_lambda": (0.5, 0.95, first_advantage, UP, {}),
    "ppo_config.clip_ratio": (0.05, 0.4, partial(told, "clipfrac"), DOWN, FAST),
    "ppo_config.value_clip_ratio": (0.01, 1.0, loss, DOWN, {}),
    "ppo_config.epochs": (2, 5, partial(told, "minibatches"), UP, {}),
    "ppo_config.rollout_length": (16, 24, steps, UP, {}),
    "ppo_config.minibatch_size": (16, 32, partial(told, "minibatches"), DOWN, {}),
    "ppo_config.normalise_advantages": ("rollout", "no", uncentred, UP, {}),
    "ppo_config.normalise_observations": (False, True, spread, UP, {}),
    "ppo_config.normalise_rewards": (True, False, greatest_reward, UP, {}),
    "ppo_config.value_coef": (0.1, 1.0, loss, UP, {}),
    "ppo_config.max_grad_norm": (1e-3, 0.1, gradient, UP, {}),
    "ppo_config.entropy_coef": (0.0, 0.5, loss, DOWN, {}),
    "ppo_config.entropy_coef_final": (
        0.1, 0.4, partial(coefficient, "entropy_coef", progress=0.5), UP, {}
    ),
    "ppo_config.entropy_warmup_coef": (
        0.1, 0.5, partial(coefficient, "entropy_coef", updates=1), UP, WARM
    ),
    "ppo_config.entropy_warmup_updates": (
        2, 8, partial(coefficient, "entropy_coef", updates=1), UP, WARM
    ),
    "ppo_config.entropy_min": (0.0, 0.69, loss, UP, NO),
    "ppo_config.entropy_floor_coef": (0.1, 1.0, loss, UP, {"ppo_config.entropy_min": 0.69}),
    "ppo_config.kl_coef": (0.0, 1.0, loss, UP, {}),
    "ppo_config.kl_adaptive": (
        False, True, partial(told, "kl_coef"), UP,
        {**KL, **FAST, "ppo_config.kl_coef_target": 1e-6},
    ),
    "ppo_config.kl_coef_target": (
        1e-6, 10.0, partial(told, "kl_coef"), DOWN, {**KL, **FAST, "ppo_config.kl_adaptive": True}
    ),
    "ppo_config.target_kl": (1e-6, 10.0, partial(told, "minibatches"), UP, FAST),
    "kl_regularization.kl_ref_coef_initial": (0.0, 0.5, loss, UP, {}),
    "kl_regularization.kl_ref_coef_final": (
        0.1, 0.4, partial(coefficient, "kl_ref_coef", minibatches=500), UP, REFERENCE
    ),
    "kl_regularization.kl_ref_decay_steps": (
        600, 1000, partial(coefficient, "kl_ref_coef", minibatches=500), UP, REFERENCE
    ),
    "network.hidden_sizes": ([8], [12], partial(weights, "critic"), UP, {}),
    "network.activation": ("tanh", "relu", slope_at_2, UP, {}),
    "network.shared_scorer": (
        False, True, partial(weights, "actor"), DOWN, {"training.env": "rlvitals/Cluster-v0"}
    ),
    "network.shared_normaliser": (False, True, speed_range, UP, {}),
    "ppo_config.mask_actions": (False, True, chosen_up, UP, {}),
    f"{RATE}type": ("linear", "constant", partial(rate, progress=0.5), UP, {}),
    f"{RATE}warmup_steps": (0, 4, partial(rate, updates=1), DOWN, COSINE),
    f"{RATE}restart_period": (10, 40, partial(rate, updates=5), UP, COSINE),
    f"{RATE}min_lr_ratio": (0.05, 0.5, partial(rate, progress=1.0), UP, {}),
    f"{SPIKES}enable": (False, True, partial(after_spikes, "gradient_spike"), UP, {}),
    f"{SPIKES}min": (
        20, 30, partial(after_spikes, "minibatch_size_next"), UP,
        {**ON, f"{SPIKES}direction": "down"},
    ),
    f"{SPIKES}max": (33, 50, partial(after_spikes, "minibatch_size_next"), UP, ON),
    f"{SPIKES}adaptation_rate": (0.1, 0.5, partial(after_spikes, "lr_factor", count=1), DOWN, ON),
    f"{SPIKES}direction": ("down", "up", partial(after_spikes, "minibatch_size_next"), UP, ON),
    f"{SPIKES}spike_threshold": (
        3.0, 50.0, partial(after_spikes, "gradient_spike", count=1), DOWN, ON
    ),
    f"{SPIKES}min_lr_factor": (0.1, 0.5, partial(after_spikes, "lr_factor"), UP, ON),
}  # fmt: skip


# -- numbers of a cluster -------------------------------------------------------------------------


def played(said, steps=120):
    """What three clusters tell under fixed decisions, by name: [steps, 3, ...]."""
    cluster = Cluster(config(said).environment, 3)
    rng, choice = np.random.default_rng(0), np.random.default_rng(1)
    cluster.reset(rng)
    found = []
    for _ in range(steps):
        outcome = cluster.step(choice.integers(0, 4, 3), rng)
        ended = outcome.terminated | outcome.truncated
        found.append({**outcome.info, "reward": outcome.reward, "ended": ended})
        cluster.reset(rng, ended)
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def mean(name, said):
    return float(played(said)[name].mean())


def size(name, said):
    return float(np.abs(played(said)[name]).mean())


def most(name, said):
    return float(np.abs(played(said)[name]).max())


def variation(name, said):
    return float(played(said)[name].std())


def full_rate(said):
    return float(Cluster(config(said).environment, 1).arrivals.full_rate)


def gaps(said):
    """The variation of the times between requests."""
    cluster, rng = Cluster(config(said).environment, 50), np.random.default_rng(0)
    cluster.reset(rng)
    return float(np.std([cluster.arrivals.gaps(rng) for _ in range(100)]))


def lengths(column, of, said):
    cluster, rng = Cluster(config(said).environment, 500), np.random.default_rng(0)
    cluster.reset(rng)
    return float(of(cluster.arrivals.lengths(rng)[column]))


def features(said):
    cluster = Cluster(config(said).environment, 1)
    cluster.reset(np.random.default_rng(0))
    return cluster.observe().shape[1]


def at_start(name, said):
    """The rate of requests, or the difference of speeds, of the first episode."""
    cluster = Cluster(config(said).environment, 1)
    cluster.reset(np.random.default_rng(0))
    return float(cluster.arrivals.rate[0] if name == "rate" else np.ptp(cluster.speeds[0]))


def paid_where(part, grew, said):
    found = played(said)
    return float(found[part][found[grew] > 0].mean())


def lag(said):
    """How far the average of the latency is behind the latency."""
    found = played(said)
    return float(np.abs(found["latency_ema"] - found["estimated_latency"]).mean())


BUSY = {"cluster.load": 1.1, "cluster.queue_limit": 6, "reward_config.latency_threshold": 1.0}
FIXED = {"cluster.qps": 18.0}
INSTANT = {**BUSY, "reward_config.mode": "instant"}
EASY = {"curriculum_learning.decisions": 300}
latency = partial(mean, "estimated_latency")
GAMMA = {"cluster.arrivals": "gamma"}
CLUSTER = {
    "replicas": (4, 5, full_rate, UP, {}),
    "speeds": ([1.0], [2.0], full_rate, UP, {}),
    "max_batch": (4, 32, latency, DOWN, FIXED),
    "kv_capacity": (7500, 24_000, latency, DOWN, {**FIXED, "cluster.prompt_mean": 2000.0}),
    "chunk": (16, 512, latency, DOWN, FIXED),
    "queue_limit": (1, 64, partial(mean, "rejected"), DOWN, {"cluster.load": 3.0}),
    "iteration_cost": (0.012, 0.03, latency, UP, FIXED),
    "prefill_cost": (6e-5, 2e-4, latency, UP, FIXED),
    "decode_cost": (2e-4, 1e-3, latency, UP, FIXED),
    "cache_cost": (2e-7, 2e-6, latency, UP, FIXED),
    "arrivals": ("poisson", "gamma", gaps, UP, {}),
    "load": (0.5, 1.0, full_rate, UP, {}),
    "qps": (5.0, 10.0, full_rate, UP, {}),
    "cv": (1.0, 4.0, gaps, UP, GAMMA),
    "prompt_mean": (100.0, 700.0, partial(lengths, 0, np.mean), UP, {}),
    "prompt_sigma": (0.3, 1.0, partial(lengths, 0, np.std), UP, {}),
    "output_mean": (90.0, 180.0, partial(lengths, 1, np.mean), UP, {}),
    "output_sigma": (0.1, 0.8, partial(lengths, 1, np.std), UP, {}),
    "max_prompt": (500, 1000, partial(lengths, 0, np.max), UP, {}),
    "max_output": (60, 120, partial(lengths, 1, np.max), UP, {}),
    "window": (8, 64, partial(most, "tail_latency_samples"), UP, {}),
    "queued_requests": (0, 2, features, UP, {}),
    "horizon": (10, 50, partial(mean, "ended"), DOWN, {}),
    "failures.mean_time_to_failure": (1.0, 9.0, partial(mean, "replicas_up"), UP, {}),
    "failures.mean_time_to_repair": (0.5, 5.0, partial(mean, "replicas_up"), DOWN,
                                     {"cluster.failures.mean_time_to_failure": 2.0}),
    "safety.queue_limit": (1, 8, partial(most, "queue_lengths"), UP, {"cluster.load": 1.0}),
    "safety.max_latency": (0.05, 5.0, partial(mean, "failed"), DOWN, {}),
    "safety.failure_penalty": (1.0, 9.0, partial(mean, "reward"), DOWN,
                               {"cluster.safety.max_latency": 0.05, "reward_config.limit": 99.0}),
}  # fmt: skip
PENALTIES = {
    "balance_penalty": "balance_penalty", "load_balance_penalty": "load_balance_penalty",
    "imbalance_penalty": "direct_imbalance_penalty",
    "extreme_imbalance_penalty": "extreme_imbalance_penalty",
    "asymmetry_penalty": "asymmetric_penalty", "tail_penalty": "tail_penalty",
    "rejection_penalty": "rejection_penalty", "kappa": "logistic_penalty",
}  # fmt: skip
REWARD = {
    **{name: (0.5, 5.0, partial(mean, part), DOWN, BUSY) for name, part in PENALTIES.items()},
    "mode": ("instant", "hybrid", partial(size, "delta_score"), UP, BUSY),
    "absolute_weight": (0.3, 0.6, partial(size, "absolute_score"), UP, BUSY),
    "delta_weight": (0.05, 0.5, partial(size, "delta_score"), UP, BUSY),
    "alpha": (1.0, 2.0, partial(mean, "absolute_score"), DOWN, BUSY),
    "beta": (0.0, 1.0, partial(paid_where, "delta_score", "delta_throughput"), UP, BUSY),
    "gamma": (0.1, 1.0, partial(paid_where, "delta_score", "delta_latency"), DOWN, BUSY),
    "latency_weight": (0.5, 2.0, partial(mean, "absolute_score"), DOWN, INSTANT),
    "ema_alpha": (0.1, 0.5, lag, DOWN, BUSY),
    "throughput_target": (5.0, 50.0, partial(mean, "absolute_score"), DOWN, BUSY),
    "latency_threshold": (1.0, 4.0, partial(mean, "absolute_score"), UP, BUSY),
    "sigma": (0.1, 3.0, partial(variation, "logistic_penalty"), DOWN,
              {**BUSY, "reward_config.kappa": 0.5}),
    "threshold_penalty": (0.5, 2.0, partial(mean, "latency_threshold_penalty"), DOWN, INSTANT),
    "trend_weight": (0.1, 1.0, partial(size, "temporal_trend_bonus"), UP, BUSY),
    "action_balance": (0.1, 1.0, partial(size, "action_balance_bonus"), UP, BUSY),
    "scale": (1.0, 2.0, partial(size, "absolute_score"), DOWN, BUSY),
    "limit": (0.2, 0.4, partial(most, "reward"), UP, BUSY),
}  # fmt: skip
CURRICULUM = {
    "decisions": (300, 3000, partial(mean, "curriculum_stage"), DOWN, {"cluster.horizon": 20}),
    "start_load": (0.2, 0.6, partial(at_start, "rate"), UP, EASY),
    "start_heterogeneity": (0.1, 0.9, partial(at_start, "speeds"), UP, EASY),
}  # fmt: skip


# -- numbers of the temperature -------------------------------------------------------------------


def temperatures(said, count=60, load=8.0, latency=4.0, busy=(0.5, 0.5)):
    """The temperatures of steps under twice the load and the latency that are aimed at."""
    own = config(said).temperature_control
    if not own.enabled:
        return np.ones(count), []
    led = Controller(own)
    found = []
    for _ in range(count):
        led.after({"qps": np.array([load]), "latency": np.array([latency]),
                   "throughput": np.array([3.0]), "utilisation": np.array([busy])})  # fmt: skip
        found.append(led.value)
    return np.array(found), list(led.pulses)


def last(said, count=60):
    return float(temperatures(said, count)[0][-1])


def highest(said):
    return float(temperatures(said)[0].max())


def idle(said):
    return float(temperatures(said, load=1.0, latency=1.0, busy=(1.0, 0.0))[0][-1])


def pulses(said):
    return len(temperatures(said)[1])


def pulsing(said):
    """The steps at more than half of a pulse."""
    return int((temperatures(said)[0] > 2.0).sum())


def first_pulse(said):
    return temperatures(said)[1][0].step


AIMED = {"enabled": True, "target_qps": 4.0, "target_latency": 2.0, "enable_pulse": False}
PULSED = {"enabled": True, "target_qps": 8.0, "target_latency": 4.0, "stagnation_window": 2,
          "stagnation_memory": 3}  # fmt: skip
TEMPERATURE = {
    "enabled": (True, False, last, UP, AIMED),
    "base_temperature": (1.0, 1.5, last, UP, AIMED),
    "min_temperature": (0.5, 0.9, last, UP, AIMED),
    "max_temperature": (1.02, 2.0, idle, UP, AIMED),
    "qps_sensitivity": (0.1, 0.3, last, DOWN, {**AIMED, "min_temperature": 0.1}),
    "latency_sensitivity": (0.1, 0.3, last, DOWN, {**AIMED, "min_temperature": 0.1}),
    "target_qps": (4.0, 8.0, last, UP, AIMED),
    "target_latency": (2.0, 4.0, last, UP, AIMED),
    "pressure_ema_alpha": (0.1, 0.6, partial(last, count=3), DOWN, AIMED),
    "enable_pulse": (False, True, pulses, UP, PULSED),
    "pulse_interval": (8, 30, pulses, DOWN, PULSED),
    "pulse_duration": (2, 4, pulsing, UP, PULSED),
    "pulse_magnitude": (0.5, 2.0, highest, UP, PULSED),
    "periodic_pulses": (False, True, pulses, UP, {**PULSED, "stagnation_threshold": 0.0}),
    "stagnation_window": (2, 5, first_pulse, UP, PULSED),
    "stagnation_memory": (3, 6, first_pulse, UP, PULSED),
    "stagnation_threshold": (0.0, 0.1, pulses, UP, PULSED),
}  # fmt: skip


def within(section, table):
    return {
        f"{section}.{name}": (*row, {**(
            {f"{section}.{key}": value for key, value in beside.items()}
            if section == "temperature_control" else beside
        )})
        for name, (*row, beside) in table.items()
    }  # fmt: skip


EFFECTS = {
    **UPDATE, **within("cluster", CLUSTER), **within("reward_config", REWARD),
    **within("curriculum_learning", CURRICULUM), **within("temperature_control", TEMPERATURE),
}  # fmt: skip
ELSEWHERE = {"cluster.trace", "cluster.backend"}  # in the tests of the cluster's physics


@pytest.mark.parametrize("name", sampled(EFFECTS, 2))
def test_a_setting_moves_its_number_its_way(name):
    smaller, larger, number, sign, beside = EFFECTS[name]
    before, after = (number({**beside, name: value}) for value in (smaller, larger))
    assert np.isfinite([before, after]).all()
    assert sign * (after - before) > 1e-6 * max(abs(before), abs(after)), (before, after)


def test_every_setting_of_these_sections_has_its_number():
    names = {key.name for key in schema.keys(Config) if key.path[0] in SECTIONS}
    assert EFFECTS.keys() == names - ELSEWHERE
