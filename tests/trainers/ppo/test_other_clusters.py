"""One policy for clusters of any size: what replicas share, and what is moved to another size."""

import numpy as np
import programs
import pytest

from rlvitals import UsageError
from rlvitals.trainers import schema
from rlvitals.trainers.ppo import cluster, evaluate, factory
from rlvitals.trainers.ppo.cluster.observation import CLUSTER_FEATURES, REPLICA_FEATURES
from rlvitals.trainers.ppo.config import Config
from rlvitals.trainers.ppo.normalizer import Moments, ObservationNormaliser

FEATURES, GLOBALS = len(REPLICA_FEATURES), len(CLUSTER_FEATURES)


def test_moments_over_all_replicas_are_numpys():
    rng = np.random.default_rng(0)
    rows = [rng.normal(range(8), 2.0, (n, 8)) for n in (5, 1, 40)]
    made = Moments(8, replica_shape=(3, 2))
    for each in rows:
        made.update(each)
    whole = np.concatenate(rows)
    each = whole[:, :6].reshape(-1, 2)
    mean, var = each.mean(axis=0), each.var(axis=0)
    np.testing.assert_allclose(made.mean, [*np.tile(mean, 3), *whole[:, 6:].mean(axis=0)])
    np.testing.assert_allclose(made.var, [*np.tile(var, 3), *whole[:, 6:].var(axis=0)])
    assert made.count == len(whole)


def test_a_speed_that_never_changes_is_seen_only_by_a_shared_normaliser():
    speeds = np.array([[2.0, 1.0, 1.0, 0.5]])
    alone, shared = ObservationNormaliser(4), ObservationNormaliser(4, replica_shape=(4, 1))
    for _ in range(3):
        assert alone(speeds, learn=True).tolist() == [[0.0] * 4]
        seen = shared(speeds, learn=True)[0]
    assert seen[0] > seen[1] == seen[2] > seen[3]


@pytest.fixture
def trained(tmp_path):
    programs.run(tmp_path, programs.CLUSTER)
    return evaluate.load(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("replicas", [2, 4, 7])
def test_a_policy_moves_to_another_size_and_scores_each_replica_alike(trained, replicas):
    moved = evaluate.on_other_cluster(trained, {"replicas": replicas, "load": 0.9})
    assert (moved.config.cluster.replicas, moved.config.cluster.load) == (replicas, 0.9)
    serving = cluster.Cluster(moved.config.environment, 8)
    seen = np.random.default_rng(0).random((8, replicas * FEATURES + GLOBALS), np.float32)
    chosen = moved.schedule(seen, serving)
    # The replicas in another order are chosen in that order.
    order = np.random.default_rng(2).permutation(replicas)
    each = seen[:, : replicas * FEATURES].reshape(8, replicas, FEATURES)[:, order]
    mixed = np.concatenate([each.reshape(8, -1), seen[:, replicas * FEATURES :]], axis=1)
    assert (order[moved.schedule(mixed, serving)] == chosen).all()
    assert len(np.unique(chosen)) > 1
    if replicas == 4:
        assert (trained.schedule(seen, serving) == chosen).all()


@pytest.mark.soak
def test_a_moved_policy_is_evaluated_beside_schedulers_of_its_new_cluster(trained):
    moved = evaluate.on_other_cluster(trained, {"replicas": 8})
    found = evaluate.on_cluster(moved, seeds=[0], envs=4, steps=60, baselines=True)
    expected = cluster.evaluate(
        cluster.baselines()["lor"], moved.config.environment, envs=4, steps=60
    )
    assert found["lor"] == (expected,)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["network.shared_scorer", "network.shared_normaliser"])
def test_a_policy_that_fits_its_own_size_alone_is_refused(tmp_path, name):
    programs.run(tmp_path, programs.CLUSTER, **{name: False})
    with pytest.raises(UsageError, match="for its own 4 replicas alone"):
        evaluate.on_other_cluster(evaluate.load(tmp_path), {"replicas": 8})


def test_moments_taken_on_from_a_run_without_a_shared_normaliser_are_not_moved():
    """As where a run of an earlier version is loaded: the means of its replicas differ."""
    ppo = factory.build(schema.load(Config, None, programs.CLUSTER))
    ppo.normalise_obs.moments.mean[:FEATURES] = 1.0
    moments = ppo.normalise_obs.moments
    assert moments.for_replicas(8) is None
    moments.keep_separate()
    rows = np.random.default_rng(0).random((5, 4 * FEATURES + GLOBALS))
    alone = Moments(4 * FEATURES + GLOBALS)
    alone.mean, alone.var, alone.count = moments.mean.copy(), moments.var.copy(), moments.count
    for each in (moments, alone):
        each.update(rows)
    assert np.array_equal(moments.mean, alone.mean)


def test_equal_moments_stay_shared_after_a_resume():
    made = Moments(4, replica_shape=(2, 2))
    for _ in range(2):
        made.keep_separate()
        assert made.replica_shape == (2, 2)
        made.update(np.arange(8.0).reshape(2, 4))
