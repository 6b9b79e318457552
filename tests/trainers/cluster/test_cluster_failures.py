"""Replicas that fail and return: when, and what becomes of their requests."""

import numpy as np
import pytest

from rlvitals.trainers.ppo.cluster import Cluster, ClusterConfig, baselines, evaluate
from rlvitals.trainers.ppo.cluster.config import build_config
from rlvitals.trainers.ppo.cluster.failures import send_again
from rlvitals.trainers.ppo.cluster.replicas import idle_replicas, route
from rlvitals.trainers.ppo.cluster.vector import ClusterVectorEnv

OFTEN = {"mean_time_to_failure": 4.0, "mean_time_to_repair": 2.0}


def failing(**settings):
    return build_config(None, {"failures": OFTEN, **settings})


def begun(config, batch=16, seed=0):
    cluster, rng = Cluster(config, batch), np.random.default_rng(seed)
    cluster.reset(rng)
    return cluster, rng


@pytest.mark.soak
def test_the_share_of_time_up_and_the_lengths_are_those_of_the_settings():
    # So seldom that the last one up, which does not fail, plays no part.
    failures = {"mean_time_to_failure": 4.0, "mean_time_to_repair": 0.8}
    cluster, rng = begun(build_config(None, {"failures": failures, "qps": 20.0}), batch=128)
    ups, ends, seconds = [], 0, 0.0
    for _ in range(220):
        before, now = cluster.up, cluster.now.copy()
        cluster.step(baselines()["lor"](None, cluster), rng)
        ups.append(cluster.up.mean())
        ends += (before & ~cluster.up).sum()
        seconds += ((cluster.now - now)[:, None] * before).sum()
    assert np.mean(ups[100:]) == pytest.approx(4 / 4.8, abs=0.015)
    assert seconds / ends == pytest.approx(4.0, rel=0.08)


def test_failures_are_the_same_whatever_a_scheduler_decides():
    found = []
    for name in ("random", "lor/speed"):
        cluster, rng = begun(failing())
        policy, ups = baselines()[name], []
        for _ in range(300):
            cluster.step(policy(None, cluster), rng)
            ups.append(cluster.up)
        found.append((np.array(ups), cluster.now, cluster.prompt))
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))
    assert not found[0][0].all()


def test_one_replica_always_stays_up():
    failures = {"mean_time_to_failure": 0.2, "mean_time_to_repair": 5.0}
    cluster, rng = begun(build_config(None, {"failures": failures}))
    least = 4
    for _ in range(400):
        cluster.step(baselines()["lor"](None, cluster), rng)
        least = min(least, cluster.up.sum(axis=1).min())
    assert least == 1


@pytest.mark.soak
@pytest.mark.parametrize("name", baselines())
def test_no_request_is_routed_to_a_replica_that_is_down_and_none_disappears(name):
    cluster, rng = begun(failing(load=1.1, queue_limit=6))
    policy, rows = baselines()[name], np.arange(16)
    arrived, gone, again = 0, 0, 0
    for _ in range(500):
        chosen = policy(None, cluster)
        assert cluster.up[rows, chosen].all()
        info = cluster.step(chosen, rng).info
        assert not info["overridden"].any()
        arrived += 16
        gone += len(cluster.finished.latency) + info["rejected"].sum() + info["lost"].sum()
        again += info["sent_again"].sum()
        assert arrived == gone + cluster.replicas.outstanding.sum()
        assert (cluster.replicas.outstanding[~cluster.up] == 0).all()
        assert (cluster.replicas.cached[~cluster.up] == 0).all()
    assert again > 50


def test_a_choice_of_a_replica_that_is_down_is_overridden():
    cluster, rng = begun(failing())
    overridden = 0
    for _ in range(300):
        up, work = cluster.up, (cluster.replicas.outstanding + 1) / cluster.speeds
        info = cluster.step(np.full(16, 2), rng).info
        assert np.array_equal(info["overridden"], ~up[:, 2])
        least = np.where(up, work, np.inf).argmin(axis=1)
        assert np.array_equal(info["replica"], np.where(up[:, 2], 2, least))
        overridden += info["overridden"].sum()
    assert overridden > 100


def test_requests_of_a_failed_replica_start_again_elsewhere_by_hand():
    """One decodes, one is being prefilled, one waits; the first has generated 5 of 20 tokens."""
    config = ClusterConfig(replicas=3, speeds=(1.0,), max_batch=4)
    s, one = idle_replicas(1, config), np.array([0])
    at = 0, 0
    s.ends[0, 0, 2], s.tick[at], s.totals[0, 0, 2], s.born[0, 0, 2] = 115, 100, 320, 1.0
    s.decoding[at], s.next_end[at], s.cached[at], s.reserved[at] = 1, 115, 305 + 64, 320 + 210
    s.todo[at], s.prefill_output[at], s.prefill_total[at], s.prefill_born[at] = 136, 10, 210, 2.0
    route(s, one, one, np.array([3.0]), np.array([50]), np.array([7]))
    route(s, one, np.array([1]), np.array([3.5]), np.array([80]), np.array([9]))
    up = np.array([[False, True, True]])
    again, lost = send_again(s, ~up, up, np.ones((1, 3)), np.array([6.0]))
    assert (again.tolist(), lost.tolist()) == ([3], [0])
    assert s.outstanding.tolist() == [[0, 2, 2]]
    assert [array[at] for array in (s.cached, s.reserved, s.todo, s.waiting_tokens)] == [0] * 4
    # The oldest first, each to where the least is outstanding: 2 is empty, then they are even.
    held = {
        replica: [*zip(s.queue_born[0, replica, :2], s.queue_prompt[0, replica, :2],
                       s.queue_output[0, replica, :2], strict=True)]
        for replica in (1, 2)
    }  # fmt: skip
    assert held == {1: [(3.5, 80, 9), (2.0, 200, 10)], 2: [(1.0, 305, 15), (3.0, 50, 7)]}
    assert s.waiting_born[0].tolist() == [0.0, 5.5, 4.0]
    assert s.clock[0, 2] == 6.0


def test_a_request_that_finds_all_queues_full_is_lost_and_counts_as_refused():
    config = ClusterConfig(replicas=2, speeds=(1.0,), queue_limit=2)
    s, one = idle_replicas(1, config), np.array([0])
    for replica in (0, 0, 1):
        route(s, one, np.array([replica]), np.array([1.0]), np.array([50]), np.array([7]))
    up = np.array([[False, True]])
    again, lost = send_again(s, ~up, up, np.ones((1, 2)), np.array([2.0]))
    assert (again.tolist(), lost.tolist()) == ([1], [1])
    crowded = failing(load=1.5, queue_limit=3)
    found = evaluate(baselines()["lor"], crowded, envs=4, steps=400)
    cluster, rng = begun(crowded, batch=4)
    lost = 0
    for _ in range(400):
        lost += cluster.step(baselines()["lor"](None, cluster), rng).info["lost"].sum()
    assert lost > 0
    assert found.rejected > 0


def test_the_policy_sees_which_are_up_and_is_not_penalised_for_those_that_are_not():
    envs = ClusterVectorEnv(8, failures=OFTEN, stagger=False)
    assert envs.replica_features[-1] == "up"
    envs.reset(seed=0)
    down = 0
    for _ in range(200):
        observation, _, _, _, info = envs.step(np.zeros(8, int))
        seen = observation[:, : 4 * len(envs.replica_features)].reshape(8, 4, -1)[..., -1]
        assert np.array_equal(seen, envs.action_masks())
        assert np.array_equal(info["replicas_up"], seen.sum(axis=1))
        down += (seen == 0).sum()
    assert down > 100
    plain = ClusterVectorEnv(8)
    assert plain.action_masks() is None
    assert "up" not in plain.replica_features


def test_a_penalty_for_uneven_load_leaves_out_replicas_that_are_down():
    cluster, _ = begun(failing(), batch=1)
    cluster.failures.up = np.array([[True, True, False, True]])
    assert cluster._fill_missing(np.array([[4.0, 2.0, 0.0, 6.0]])).tolist() == [
        [4.0, 2.0, 4.0, 6.0]
    ]


def test_both_backends_agree_where_replicas_fail():
    found = []
    for backend in ("numpy", "numba"):
        cluster, rng = begun(failing(load=0.9, backend=backend))
        for _ in range(300):
            outcome = cluster.step(baselines()["lor"](None, cluster), rng)
        found.append({**cluster.state_dict(), "reward": outcome.reward})
    assert {"failures.up", "failures.due"} < set(found[0])
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
