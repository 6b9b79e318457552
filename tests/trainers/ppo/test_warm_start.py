"""Demonstrations, behaviour cloning, and weights from elsewhere."""

import numpy as np
import pytest
import torch

from rlvitals import UsageError
from rlvitals.trainers.ppo import demonstrations, environments, networks, warm_start
from rlvitals.trainers.ppo.cluster import ID, ClusterConfig
from rlvitals.trainers.ppo.config import PPOConfig, WarmStartConfig
from rlvitals.trainers.ppo.ppo import PPO

CLUSTER = ClusterConfig(window=16, horizon=64)


def trainer(config=CLUSTER, hidden=(32,)):
    torch.manual_seed(0)
    envs = environments.make(ID, 4, config=config)
    vector = envs.vector.unwrapped
    layout = networks.Layout(
        config.replicas, len(vector.replica_features), len(vector.global_features)
    )
    policy = networks.build(envs.features, envs.actions, layout=layout, hidden=hidden)
    return PPO(envs, policy, PPOConfig(rollout_length=8), total_steps=1000)


def made(policies=("lor/speed",), steps=60, loads=(0.5, 1.0), seed=0):
    return demonstrations.collect(
        CLUSTER, policies=policies, steps=steps, loads=loads, envs=8, seed=seed
    )


def test_what_is_collected():
    found = made(("lor", "random"))
    assert len(found) == 2 * 2 * 60 * 8
    assert found.names == ("lor", "random")
    assert np.bincount(found.policies).tolist() == [960, 960]
    assert set(found.actions) == {0, 1, 2, 3}
    facts = found.facts()
    assert facts["total_samples"] == 1920
    assert facts["state_dim"] == found.observations.shape[1]
    assert sum(facts["action_distribution"]) == pytest.approx(1, abs=1e-3)


def test_a_load_changes_what_is_seen():
    light, heavy = made(loads=(0.3,)), made(loads=(2.0,))
    assert light.observations.mean() != pytest.approx(heavy.observations.mean(), rel=0.01)


def test_two_collections_of_one_seed_are_one():
    one, two = made(("random",)), made(("random",))
    assert np.array_equal(one.observations, two.observations)
    assert np.array_equal(one.actions, two.actions)
    assert not np.array_equal(one.actions, made(("random",), seed=1).actions)


def test_they_read_back(tmp_path):
    held = made()
    demonstrations.save(held, tmp_path / "sub" / "demos.npz")
    again = demonstrations.load(tmp_path / "sub" / "demos.npz")
    assert again.names == held.names
    for name in ("observations", "actions", "policies"):
        assert np.array_equal(getattr(again, name), getattr(held, name))


def test_files_that_hold_none_are_named(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        demonstrations.load(tmp_path / "none.npz")
    (tmp_path / "odd.npz").write_bytes(b"not a file of arrays")
    with pytest.raises(UsageError, match="holds no demonstrations"):
        demonstrations.load(tmp_path / "odd.npz")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(UsageError, match="holds no demonstrations"):
        demonstrations.load(tmp_path / "other.npz")
    with pytest.raises(UsageError, match="no scheduler is called 'lorr'"):
        made(("lorr",))


def test_cloning_beats_the_commonest_action_by_far():
    held = trainer()
    config = WarmStartConfig(bc_epochs=8, bc_batch_size=64, bc_learning_rate=3e-3)
    told = list(warm_start.clone(held, made(("lor",), steps=150), config))
    assert [one.epoch for one in told] == list(range(1, 9))
    assert told[-1].current.loss < told[0].current.loss
    assert told[-1].current.accuracy > 0.85 > told[-1].blind.accuracy + 0.2
    assert held.normalise_obs.moments.count == 150 * 8 * 2


def cloned(policies, **settings):
    held = trainer()
    config = WarmStartConfig(**{"bc_epochs": 8, "bc_batch_size": 64, **settings})
    *_, last = warm_start.clone(held, made(policies, steps=150), config)
    return held, last


def test_a_warm_start_that_took_agrees_with_the_demonstrations():
    _, last = cloned(("lor",), bc_learning_rate=3e-3)
    assert last.untrained.loss > last.blind.loss  # an untrained network knows nothing
    assert last.current.loss < 0.5 * last.blind.loss
    assert last.verdict().startswith("the warm start took: agreement with the demonstrations ")
    for one in (last.untrained, last.current):
        assert f"{one.accuracy:.1%}" in last.verdict()
        assert f"{one.loss:.3f}" in last.verdict()


@pytest.mark.parametrize(
    ("policies", "settings"),
    [(("lor",), {"bc_learning_rate": 1e-12}), (("random",), {"bc_learning_rate": 1e-3})],
    ids=["not taught", "nothing to learn"],
)
def test_a_warm_start_that_did_not_take_is_told(policies, settings):
    held, last = cloned(policies, **settings)
    assert last.verdict().startswith("the warm start did NOT take")
    # The copy that is frozen now is 0 nats away from the policy, and says nothing of this.
    held.hold_to_reference()
    assert last.verdict(last.held_out.agreement(held)).startswith("the warm start did NOT take")


def test_what_the_first_update_spoils_did_not_take():
    held, last = cloned(("lor",), bc_learning_rate=3e-3)
    for parameter in held.policy.actor.parameters():
        torch.nn.init.zeros_(parameter)
    later = last.held_out.agreement(held)
    assert later.loss == pytest.approx(np.log(4), abs=1e-6)
    assert last.verdict(later).startswith("the warm start did NOT take")
    assert f"{last.current.loss:.3f} -> {later.loss:.3f} nats" in last.verdict(later)


def test_a_scheduler_weighs_the_same_however_much_it_did():
    held = demonstrations.Demos(
        np.zeros((4, 1), np.float32), np.zeros(4, np.int64), np.array([0, 0, 0, 1]), ("a", "b")
    )
    weights = warm_start._weights(held)
    assert weights[:3].sum() == pytest.approx(weights[3])
    assert weights.mean() == pytest.approx(1.0)


def test_states_that_do_not_fit_are_refused():
    odd = demonstrations.Demos(np.zeros((8, 3), np.float32), np.zeros(8, np.int64),
                      np.zeros(8, np.int64), ("lor",))  # fmt: skip
    with pytest.raises(UsageError, match="have 3 numbers, the environment's"):
        list(warm_start.clone(trainer(), odd, WarmStartConfig()))


def test_weights_come_back_with_their_normaliser(tmp_path):
    one, two = trainer(), trainer()
    list(warm_start.clone(one, made(), WarmStartConfig(bc_epochs=1)))
    warm_start.save(one, tmp_path / warm_start.PRETRAINED_FILE)
    warm_start.load(two, tmp_path / warm_start.PRETRAINED_FILE)
    for a, b in zip(one.policy.actor.parameters(), two.policy.actor.parameters(), strict=True):
        assert torch.equal(a, b)
    assert np.array_equal(one.normalise_obs.moments.mean, two.normalise_obs.moments.mean)
    assert one.normalise_obs.moments.count == two.normalise_obs.moments.count


def test_weights_that_do_not_fit_are_named(tmp_path):
    warm_start.save(trainer(hidden=(16,)), tmp_path / "w.safetensors")
    held = trainer()
    before = [p.clone() for p in held.policy.parameters()]
    with pytest.raises(UsageError, match=r"score.0.bias is 16 there and 32 here"):
        warm_start.load(held, tmp_path / "w.safetensors")
    assert all(map(torch.equal, before, held.policy.parameters()))
    # The scorer's weights fit any number of replicas; what its inputs are normalised by does not.
    warm_start.save(trainer(ClusterConfig(replicas=5)), tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match=r"observe.mean is 102 there and 84 here"):
        warm_start.load(held, tmp_path / "w.safetensors")
    assert held.normalise_obs.moments.mean.shape == (84,)
    (tmp_path / "odd.safetensors").write_bytes(b"nothing")
    for name in ("odd.safetensors", "none.safetensors"):
        with pytest.raises(UsageError, match="cannot be read"):
            warm_start.load(held, tmp_path / name)
