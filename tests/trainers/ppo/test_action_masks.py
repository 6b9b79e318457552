"""Actions that are ruled out: probability 0, in the rollout as in the update."""

import numpy as np
import programs
import pytest
import torch

from rlvitals.trainers import schema
from rlvitals.trainers.ppo import factory, networks, sample_actions
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.evaluate import Trained

FAILING = programs.CLUSTER | {
    "cluster.failures.mean_time_to_failure": 2.0, "cluster.failures.mean_time_to_repair": 1.0,
    "training.num_envs": 16, "kl_regularization.kl_ref_coef_initial": 0.1,
}  # fmt: skip


def built(**said):
    return factory.build(schema.load(Config, None, FAILING | said))


@pytest.fixture
def masked():
    """A policy of three actions, rows, and masks that leave one, two and all of them."""
    torch.manual_seed(0)
    policy = networks.build(5, 3)
    for parameter in policy.parameters():
        parameter.data *= 5.0
    rows = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    masks = np.array([[False, True, False], [True, False, True], [True, True, True]] * 100)
    return policy, rows, masks


def distribution(policy, rows, masks, temperature=1.5):
    at = torch.full((len(rows), 1), temperature)
    return policy.distribution(
        torch.from_numpy(rows), at, None if masks is None else torch.from_numpy(masks)
    )


def test_probability_is_exactly_0_and_the_rest_is_the_plain_policy_made_to_sum_to_1(masked):
    policy, rows, masks = masked
    now, plain = distribution(policy, rows, masks), distribution(policy, rows, None)
    chances = now.log_probs.detach().exp().numpy()
    assert (chances[~masks] == 0.0).all()
    expected = plain.log_probs.detach().exp().numpy() * masks
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(chances, expected, atol=1e-6)
    entropy = -np.where(masks, expected * np.log(np.where(masks, expected, 1.0)), 0.0).sum(1)
    np.testing.assert_allclose(now.entropy().detach().numpy(), entropy, atol=1e-5)
    other = networks.Categorical(distribution(policy, rows[::-1].copy(), masks).log_probs)
    theirs = np.where(masks, other.log_probs.detach().exp().numpy(), 1.0)
    mine = np.where(masks, expected, 1.0)
    kl = np.where(masks, expected * np.log(mine / theirs), 0.0).sum(1)
    np.testing.assert_allclose(now.kl(other).detach().numpy(), kl, atol=1e-5)


def test_what_is_ruled_out_is_never_drawn_and_log_probabilities_are_those_of_the_update(masked):
    policy, rows, masks = masked
    rng, at = np.random.default_rng(1), np.arange(len(rows))
    now = distribution(policy, rows, masks)
    for _ in range(50):
        actions, log_probs = sample_actions.draw(policy, rows, 1.5, rng, masks)
        assert masks[at, actions].all()
        again = now.log_prob(torch.from_numpy(actions)).detach().numpy()
        np.testing.assert_allclose(log_probs, again, atol=1e-5)
    assert masks[at, sample_actions.best(policy, rows, masks)].all()
    assert not masks[at, sample_actions.best(policy, rows)].all()


def test_gradients_are_finite_and_those_of_a_ruled_out_logit_are_0():
    logits = torch.randn(4, 3, requires_grad=True)
    masks = torch.tensor([[True, True, False]] * 4)
    policy = networks.Policy(torch.nn.Identity(), torch.nn.Identity())
    now = policy.distribution(logits, torch.ones(4, 1), masks)
    (now.entropy().sum() + now.log_prob(torch.tensor([0, 1, 0, 1])).sum()).backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 2] == 0).all()
    assert (logits.grad[:, :2] != 0).all()


def test_a_rollout_and_its_update_use_the_same_masked_distribution():
    ppo = built(**{"ppo_config.epochs": 1, "ppo_config.minibatch_size": 4096})
    rollout, stats = ppo.iterate(120)
    taken = np.take_along_axis(rollout.masks, rollout.actions[..., None], 2)[..., 0]
    assert taken[rollout.valid].all()
    assert 0.3 < rollout.masks.mean() < 0.95
    assert rollout.facts["overridden"] == 0.0
    assert stats["first_ratio_max"] == pytest.approx(1.0, abs=1e-4)
    assert stats["approx_kl"] == pytest.approx(0.0, abs=1e-8)
    assert stats["kl_ref"] == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < stats["entropy"] < np.log(4)


def test_without_masks_the_choice_is_overridden_instead():
    ppo = built(**{"ppo_config.mask_actions": False})
    rollout, _ = ppo.iterate(120)
    assert rollout.masks is None
    assert rollout.facts["overridden"] > 0.05


def test_nothing_is_masked_where_no_replica_fails():
    ppo = built(**{"cluster.failures.mean_time_to_failure": 0.0})
    assert ppo.collect_rollout(4).masks is None


def test_a_trained_policy_routes_to_no_replica_that_is_down():
    ppo = built()
    trained = Trained(ppo, schema.load(Config, None, FAILING), 0)
    serving = ppo.envs.vector.unwrapped.cluster
    serving.failures.up[:] = np.array([False, True, False, False])
    assert (trained.schedule(serving.observe(), serving) == 1).all()
