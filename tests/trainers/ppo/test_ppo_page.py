"""The algorithm: values worked out by hand, invariants, and a continuation bit for bit."""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rlvitals import UsageError, VitalsError
from rlvitals.trainers.ppo import environments, networks, sample_actions
from rlvitals.trainers.ppo.config import Config, PPOConfig, ReferenceConfig, ScheduleConfig
from rlvitals.trainers.ppo.normalizer import Moments, RewardNormaliser
from rlvitals.trainers.ppo.ppo import PPO
from rlvitals.trainers.ppo.rollout import (
    Rollout,
    estimate_advantages,
    explained_variance,
    ratio_stats,
    standardise,
)
from rlvitals.trainers.ppo.schedules import (
    Counters,
    coefficients,
    cosine_with_restarts,
    linear,
)

SMALL = PPOConfig(rollout_length=32, minibatch_size=64, learning_rate=1e-3, entropy_coef=0.01)


def trainer(name="CartPole-v1", config=SMALL, count=4, seed=3, native=True, **options):
    torch.manual_seed(seed)
    envs = environments.make(name, count) if native else synced(name, count)
    policy = networks.build(envs.features, envs.actions, continuous=envs.continuous, hidden=(16,))
    return PPO(envs, policy, config, total_steps=10_000, seed=seed, **options)


def synced(name, count, mode=AutoresetMode.SAME_STEP):
    makers = [lambda: gym.make(name)] * count
    return environments.Environments(SyncVectorEnv(makers, autoreset_mode=mode))


def rollout(rewards, values, next_values, terminated, done=None):
    rewards = np.array(rewards, np.float32)[:, None]
    terminated = np.array(terminated, bool)[:, None]
    done = terminated if done is None else np.array(done, bool)[:, None]
    zeros = np.zeros_like(rewards)
    return Rollout(
        observations=zeros[..., None], actions=zeros, log_probs=zeros,
        temperatures=zeros[:, 0], rewards=rewards, terminated=terminated, dones=done,
        valid=np.ones_like(done), values=np.array(values, np.float32)[:, None],
        next_values=np.array(next_values, np.float32)[:, None], facts={}, episodes=(),
    )  # fmt: skip


def test_layers_are_as_wide_as_the_setting_says_by_default():
    shapes = networks.parameters_of(networks.build(5, 3)).values()
    weights = [shape for shape in shapes if len(shape) == 2]
    first, second = Config().network.hidden_sizes
    inner = [(first, 5), (second, first)]
    assert weights == [*inner, (3, second), *inner, (1, second)]


def test_advantages_by_hand():
    held = rollout([1, 2, 3], [0.5, 1.0, 1.5], [1.0, 1.5, 2.0], [0, 0, 0])
    # delta = 1 + .9*1 - .5 = 1.4; 2 + .9*1.5 - 1 = 2.35; 3 + .9*2 - 1.5 = 3.3; decay .9*.8 = .72
    last, middle = 3.3, 2.35 + 0.72 * 3.3
    first = 1.4 + 0.72 * middle
    assert estimate_advantages(held, 0.9, 0.8)[:, 0] == pytest.approx([first, middle, last])


def test_a_terminated_step_bootstraps_from_nothing():
    held = rollout([1, 2, 3], [0.5, 1.0, 1.5], [1.0, 99.0, 2.0], [0, 1, 0])
    middle = 2 - 1.0
    assert estimate_advantages(held, 0.9, 0.8)[:, 0] == pytest.approx(
        [1.4 + 0.72 * middle, middle, 3.3]
    )


def test_a_truncated_step_bootstraps_from_where_it_led_and_leaks_nothing():
    held = rollout([1, 2, 3], [0.5, 1.0, 1.5], [1.0, 7.0, 2.0], [0, 0, 0], done=[0, 1, 0])
    middle = 2 + 0.9 * 7 - 1.0
    found = estimate_advantages(held, 0.9, 0.8)[:, 0]
    assert found == pytest.approx([1.4 + 0.72 * middle, middle, 3.3])
    other = rollout([1, 2, -50], [0.5, 1.0, 1.5], [1.0, 7.0, 2.0], [0, 0, 0], done=[0, 1, 0])
    assert estimate_advantages(other, 0.9, 0.8)[:2, 0] == pytest.approx(found[:2])


def test_explained_variance():
    returns = np.array([1.0, 2.0, 3.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.zeros(3), returns) == 0.0
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert math.isnan(explained_variance(returns, np.ones(3)))


def test_categorical_by_hand():
    held = networks.Categorical(torch.log(torch.tensor([[0.5, 0.25, 0.25]])))
    other = networks.Categorical(torch.log(torch.tensor([[0.25, 0.5, 0.25]])))
    assert float(held.entropy()) == pytest.approx(1.5 * math.log(2))
    assert float(held.kl(other)) == pytest.approx(0.5 * math.log(2) - 0.25 * math.log(2))
    assert float(held.log_prob(torch.tensor([1]))) == pytest.approx(math.log(0.25))


def test_gaussian_agrees_with_torch():
    mean, log_std = torch.randn(5, 3), torch.randn(5, 3) * 0.3
    other_mean, other_std = torch.randn(5, 3), torch.randn(5, 3) * 0.3
    held, other = networks.Gaussian(mean, log_std), networks.Gaussian(other_mean, other_std)
    known = torch.distributions.Normal(mean, log_std.exp())
    known_other = torch.distributions.Normal(other_mean, other_std.exp())
    action = torch.randn(5, 3)
    assert torch.allclose(held.log_prob(action), known.log_prob(action).sum(-1), atol=1e-5)
    assert torch.allclose(held.entropy(), known.entropy().sum(-1), atol=1e-5)
    kl = torch.distributions.kl_divergence(known, known_other).sum(-1)
    assert torch.allclose(held.kl(other), kl, atol=1e-5)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_the_first_minibatch_is_at_ratio_one(name, temperature):
    held = trainer(name)
    held.temperature.value = temperature
    for _ in range(3):
        made = held.collect_rollout()
        batch = held._batch(made)
        now = held.policy.distribution(batch.observations, batch.temperatures)
        away = (now.log_prob(batch.actions) - batch.log_probs).detach().exp().sub(1).abs()
        assert float(away.max()) <= 1e-5
        assert float(away.mean()) <= 1e-6
        assert held.update(made)["first_clipfrac"] == 0.0


def test_features_vary_with_the_state():
    held = trainer()
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for sub in (held.policy.actor, held.policy.critic):
        out = sample_actions.forward(sub, rows)
        assert np.abs(np.diff(out, axis=0)).min() > 0
        # One row alone is judged as among others: nothing is normalised over the batch.
        assert np.allclose(sample_actions.forward(sub, rows[:1]), out[:1], atol=1e-6)


def test_kl_estimators_and_clip_fraction_by_hand():
    """Ratios 2, 1/2, 1 and 1.1: k1 is -mean(log), k3 is mean(ratio - 1 - log)."""
    found = ratio_stats(torch.log(torch.tensor([2.0, 0.5, 1.0, 1.1])), 0.2)
    assert found["approx_kl_k1"] == pytest.approx(-0.0953102 / 4, abs=1e-6)
    assert found["approx_kl"] == pytest.approx((0.3068528 + 0.1931472 + 0.0 + 0.0046898) / 4)
    assert found["clipfrac"] == 0.5
    assert (found["ratio_mean"], found["ratio_max"]) == pytest.approx((1.15, 2.0))


def test_a_value_that_moved_beyond_its_clip_counts_by_its_worse_error():
    held = trainer(config=PPOConfig(rollout_length=8, value_clip_ratio=0.1))
    batch = held._batch(held.collect_rollout())
    values = held.policy.value(batch.observations).detach()
    moves = torch.tensor([0.0, 0.05, 0.5, -0.5]).repeat(len(batch) // 4)  # since the rollout
    to_go = torch.tensor([1.0, 1.0, 1.0, -1.0]).repeat(len(batch) // 4)
    rows = replace(batch, values=values - moves, returns=values + to_go)
    # Within the clip the error is 1; a move of 0.5 counts as 0.1, and so the error as 1.4.
    expected = 0.5 * (1 + 1 + 1.96 + 1.96) / 4
    assert held._value_loss(rows).item() == pytest.approx(expected, 1e-5)
    plain = trainer(config=PPOConfig(rollout_length=8))
    assert plain._value_loss(rows).item() == pytest.approx(0.5, 1e-5)


def test_the_stated_estimators():
    held = trainer()
    made = held.collect_rollout()
    batch = held._batch(made)
    with torch.no_grad():
        held.policy.actor[-1].bias += torch.tensor([0.3, -0.2])
    stats = ratio_stats(held._loss(batch, held.coefficients(), None)[1]["log_ratio"], 0.2)
    now = held.policy.distribution(batch.observations, batch.temperatures)
    shift = (now.log_prob(batch.actions) - batch.log_probs).detach()
    assert float(stats["approx_kl_k1"]) == pytest.approx(float(-shift.mean()), abs=1e-7)
    assert float(stats["approx_kl"]) == pytest.approx(
        float((shift.exp() - 1 - shift).mean()), abs=1e-7
    )
    assert float(stats["ratio_mean"]) == pytest.approx(float(shift.exp().mean()), rel=1e-6)
    assert 1 < float(stats["ratio_max"]) == pytest.approx(float(shift.exp().max()), rel=1e-6)
    outside = ((shift.exp() - 1).abs() > 0.2).float().mean()
    assert 0 < float(stats["clipfrac"]) == pytest.approx(float(outside))


ALONE = {"rollout_length": 16, "value_coef": 0.0, "entropy_coef": 0.0}  # no other term of the loss


def without_advantages(batch):
    return replace(batch, advantages=torch.zeros_like(batch.advantages))


def slope_of(held, batch):
    """The gradient at the biases of the two actions, and what the loss is made of."""
    reference = held._reference_distribution(batch)(slice(None))
    loss, stats = held._loss(batch, held.coefficients(), reference)
    held.policy.zero_grad()
    loss.backward()
    return held.policy.actor[-1].bias.grad, stats


def test_the_entropy_floor_has_a_gradient():
    config = PPOConfig(**ALONE, entropy_min=0.69, entropy_floor_coef=1.0)
    held = trainer(config=config)
    with torch.no_grad():
        held.policy.actor[-1].bias += torch.tensor([3.0, -3.0])
    slope, stats = slope_of(held, without_advantages(held._batch(held.collect_rollout())))
    assert float(stats["entropy"]) < 0.69
    assert slope[0] > 0 > slope[1]  # a step down it makes the likelier action less likely
    with torch.no_grad():
        held.policy.actor[-1].bias.zero_()  # an entropy of ln 2, above the floor
    assert not slope_of(held, without_advantages(held._batch(held.collect_rollout())))[0].any()


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)], ids=["kl_coef", "kl_ref_coef"])
def test_the_kl_penalty_and_the_reference_pull_back(weights):
    to_collector, to_reference = weights
    config = PPOConfig(**ALONE, kl_coef=to_collector)
    reference = ReferenceConfig(to_reference, to_reference)
    held = trainer(config=config, reference=reference)
    held.hold_to_reference()
    batch = without_advantages(held._batch(held.collect_rollout()))
    with torch.no_grad():
        held.policy.actor[-1].bias += torch.tensor([1.0, 0.0])
    slope, stats = slope_of(held, batch)
    assert stats["kl_ref"] > 0
    assert slope[0] > 0 > slope[1]


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_the_loss_and_its_gradient_are_those_of_the_formula(name):
    """Every term at work, and a policy that left the one that collected by more than the clip."""
    config = PPOConfig(
        rollout_length=64, clip_ratio=0.1, value_coef=0.7, entropy_coef=0.3, entropy_min=9.0,
        entropy_floor_coef=0.4, kl_coef=0.6,
    )  # fmt: skip
    held = trainer(name, config=config, reference=ReferenceConfig(kl_ref_coef_initial=0.8))
    held.hold_to_reference()
    batch = held._batch(held.collect_rollout())
    with torch.no_grad():
        for weight in held.policy.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    weights = list(held.policy.parameters())
    reference = held._reference_distribution(batch)(slice(None))
    loss, _ = held._loss(batch, held.coefficients(), reference)
    found = torch.autograd.grad(loss, weights)

    now = held.policy.distribution(batch.observations, batch.temperatures)
    away = now.log_prob(batch.actions) - batch.log_probs
    ratio, gain = away.exp(), batch.advantages
    gain = (gain - gain.mean()) / gain.std(correction=0)
    good = gain > 0
    assert ((ratio > 1.1) & good).any()
    assert ((ratio < 0.9) & ~good).any()
    clipped = torch.where(good, ratio.clamp(max=1.1), ratio.clamp(min=0.9))
    error = held.policy.value(batch.observations) - batch.returns
    entropy = now.entropy().mean()
    expected = (
        -(clipped * gain).mean() + 0.7 * 0.5 * (error**2).mean() - 0.3 * entropy
        + 0.4 * (9.0 - entropy) + 0.6 * (ratio - 1 - away).mean() + 0.8 * now.kl(reference).mean()
    )  # fmt: skip
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for one, other in zip(found, torch.autograd.grad(expected, weights), strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)
        assert other.abs().max() > 0


def test_target_kl_ends_the_epochs():
    config = PPOConfig(rollout_length=64, minibatch_size=32, learning_rate=0.05, epochs=20)
    far = trainer(config=config).iterate()[1]
    near = trainer(config=PPOConfig(**{**as_dict(config), "target_kl": 0.01})).iterate()[1]
    assert near["stopped_early"] == 1.0
    assert near["minibatches"] < far["minibatches"] == 160


def test_the_first_minibatch_beyond_target_kl_is_the_last_of_the_update():
    held = trainer()
    exceeded = iter([False, True])  # a later minibatch would be within the target again
    held._kl_exceeded = lambda _: next(exceeded, False)
    stats = held.iterate()[1]
    assert (stats["minibatches"], stats["stopped_early"]) == (1.0, 1.0)


def test_the_adaptive_coefficient_moves_towards_its_target():
    config = PPOConfig(rollout_length=16, kl_coef=1.0, kl_adaptive=True, kl_coef_target=0.01)
    held = trainer(config=config)
    held._adapt({"approx_kl": 0.1, "pg_grad_norm": 0.0})
    assert held.counters.kl_coef == 2.0
    held._adapt({"approx_kl": 0.01, "pg_grad_norm": 0.0})
    assert held.counters.kl_coef == 2.0
    held._adapt({"approx_kl": 0.001, "pg_grad_norm": 0.0})
    assert held.counters.kl_coef == 1.0


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_episodes_are_the_same_in_every_autoreset_mode(mode):
    """The observation that ended an episode bootstraps, and a step that only resets is left out."""
    envs = synced("CartPole-v1", 2, mode)
    envs.reset(7)
    ended, invalid = [], 0
    for i in range(120):
        before = envs.observations.copy()
        step, over = envs.step(np.array([i % 2, 1]))
        ended += over
        invalid += int((~step.valid).sum())
        for env in np.flatnonzero(step.terminated | step.truncated):
            assert abs(step.final[env, 2]) > 0.2  # the pole lies: not where the next one begins
        for env in np.flatnonzero(step.valid):
            assert np.abs(step.final[env] - before[env]).max() < 1.5
    assert len(ended) > 10
    assert all(total == length for total, length in ended)  # CartPole gives 1 a step
    assert (invalid > 0) == (mode is AutoresetMode.NEXT_STEP)


def test_a_truncated_episode_is_worth_what_follows_it():
    class Endless(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (1,))
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.left = 5
            return np.zeros(1, np.float32), {}

        def step(self, action):
            self.left -= 1
            return np.zeros(1, np.float32), 1.0, False, self.left == 0, {}

    envs = environments.Environments(
        SyncVectorEnv([Endless] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    )
    config = PPOConfig(
        rollout_length=40, gamma=0.9, normalise_rewards=False, value_clip_ratio=0.0,
        learning_rate=5e-3, minibatch_size=80, epochs=8,
    )  # fmt: skip
    held = PPO(envs, networks.build(1, 2, hidden=(8,)), config, total_steps=10_000)
    for _ in range(60):
        made, _ = held.iterate()
    assert made.values.mean() == pytest.approx(10.0, rel=0.05)  # 1 / (1 - .9), not 4.1 of 5 steps


@pytest.mark.parametrize("native", [True, False])
def test_a_run_that_goes_on_from_its_state_equals_one_that_never_stopped(tmp_path, native):
    whole = trainer(native=native)
    for _ in range(3):
        whole.iterate()
    whole.state().save(tmp_path)
    ahead = [whole.iterate()[1] for _ in range(2)]
    other = trainer(native=native, seed=99)
    other.state().load(tmp_path)
    again = [other.iterate()[1] for _ in range(2)]
    for one, two in zip(ahead, again, strict=True):
        for name in one.keys() - {"collect_seconds", "learn_seconds", "sps"}:
            assert one[name] == two[name], name
    for a, b in zip(whole.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    assert whole.counters == other.counters
    assert np.array_equal(whole.envs.observations, other.envs.observations)


def test_two_runs_of_one_seed_are_one():
    one, two = trainer(seed=5), trainer(seed=5)
    for _ in range(2):
        one.iterate()
        two.iterate()
    assert all(map(torch.equal, one.policy.parameters(), two.policy.parameters()))


def test_the_replica_scorer_permutes_with_its_replicas():
    layout = networks.Layout(replicas=3, features=2, shared=1)
    policy = networks.build(7, 3, layout=layout, hidden=(8,))
    rows = torch.randn(4, 7)
    order = [2, 0, 1]
    moved = torch.cat([rows[:, :6].view(4, 3, 2)[:, order].reshape(4, 6), rows[:, 6:]], 1)
    assert torch.allclose(policy.actor(rows)[:, order], policy.actor(moved), atol=1e-6)


def test_rewards_keep_their_sign():
    scale = RewardNormaliser(2, 0.99)
    done = np.zeros(2, bool)
    scaled = np.stack([scale(np.array([1.0, -1.0]), done) for _ in range(200)])
    assert (scaled[:, 0] > 0).all()
    assert (scaled[:, 1] < 0).all()


def test_moments_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal(3, 2, (500, 2))
    moments = Moments(2)
    for part in np.array_split(rows, 7):
        moments.update(part)
    assert moments.mean == pytest.approx(rows.mean(0))
    assert moments.var == pytest.approx(rows.var(0))


def test_schedules():
    assert [linear(1.0, 0.0, x) for x in (-1, 0, 0.25, 1, 2)] == [1, 1, 0.75, 0, 0]
    factor = [cosine_with_restarts(i, warmup=2, period=4, floor=0.1) for i in range(8)]
    assert factor[:3] == [0.5, 1.0, 1.0]
    assert factor[4] == pytest.approx(0.55)
    assert factor[6] == 1.0
    assert min(factor[2:]) > 0.1


@pytest.mark.parametrize(("final", "expected"), [(0.0, 0.0), (0.1, 0.1), (-1.0, 0.2)])
def test_an_entropy_coefficient_goes_to_0_and_stays_below_it(final, expected):
    config = PPOConfig(entropy_coef=0.2, entropy_coef_final=final)
    found = coefficients(config, ScheduleConfig(), ReferenceConfig(), Counters(), 1.0)
    assert found["entropy_coef"] == pytest.approx(expected)


def test_standardised():
    found = standardise(torch.tensor([1.0, 2.0, 3.0]))
    assert float(found.mean()) == pytest.approx(0, abs=1e-6)
    assert found.tolist() == pytest.approx([-1.2247, 0, 1.2247], abs=1e-3)
    assert standardise(torch.tensor([4.0])).tolist() == [0.0]


def test_what_an_environment_does_wrong_is_named():
    class Broken(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,))
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}

        def step(self, action):
            if action:
                raise RuntimeError("the motor is gone")
            return np.array([0.0, np.nan], np.float32), 0.0, False, False, {}

    made = SyncVectorEnv([Broken] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    envs = environments.Environments(made)
    envs.reset(0)
    with pytest.raises(VitalsError, match="environment 0 observes nan at feature 1"):
        envs.step(np.zeros(3, np.int64))
    with pytest.raises(VitalsError, match="RuntimeError: the motor is gone"):
        envs.step(np.ones(3, np.int64))


def test_spaces_that_cannot_be_played_are_refused():
    class Odd(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,))
        action_space = gym.spaces.MultiBinary(3)

    with pytest.raises(UsageError, match="cannot act in MultiBinary"):
        environments.Environments(SyncVectorEnv([Odd]))
    with pytest.raises(UsageError, match="no environment Cartpole"):
        environments.make("Cartpole-v77", 1)


def as_dict(config):
    return {name: getattr(config, name) for name in config.__slots__}


def test_actions_that_begin_above_0_arrive_as_the_environment_counts_them():
    taken = []

    class Shifted(gym.Env):
        observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
        action_space = gym.spaces.Discrete(2, start=5)

        def reset(self, **_):
            return np.zeros(1, np.float32), {}

        def step(self, action):
            taken.append(int(action))
            return np.zeros(1, np.float32), 0.0, False, False, {}

    envs = environments.Environments(SyncVectorEnv([Shifted]))
    envs.reset(0)
    for action in (0, 1):
        envs.step(np.array([action]))
    assert taken == [5, 6]
