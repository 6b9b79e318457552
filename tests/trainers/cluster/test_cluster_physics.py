"""The replicas: against hand computation, a plain simulation, each other, and queueing theory."""

from dataclasses import replace

import numpy as np
import pytest
from cluster_plain import PlainReplica, Request
from effort import cases, sampled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvitals.trainers.ppo.cluster import Cluster, ClusterConfig, baselines
from rlvitals.trainers.ppo.cluster.arrivals import capacity
from rlvitals.trainers.ppo.cluster.backends import advance_of
from rlvitals.trainers.ppo.cluster.replicas import costs, idle_replicas, route

BACKENDS = ("numpy", "numba")
SMALL = ClusterConfig(
    max_batch=4, kv_capacity=900, max_prompt=400, max_output=60, queue_limit=5, chunk=64
)


def route_one(replicas, replica, now, prompt, output):
    one = lambda value: np.array([value])
    at = one(0), one(replica), one(now), one(prompt), one(output)
    return route(replicas, *at)[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_request_alone_takes_what_its_iterations_take(backend):
    config = ClusterConfig()
    replicas, speeds = idle_replicas(1, config), np.array([config.all_speeds])
    route_one(replicas, 0, 1.0, 600, 3)
    done = advance_of(backend)(replicas, costs(config), np.array([100.0]), speeds)
    prefill = (0.012 + 6e-5 * 512) + (0.012 + 6e-5 * 88 + 2e-7 * 512)
    decode = sum(0.012 + 2e-4 + 2e-7 * (600 + i) for i in range(3))
    assert done.latency == pytest.approx([(prefill + decode) / 2.0], rel=1e-12)
    assert replicas.cached.sum() == replicas.reserved.sum() == replicas.outstanding.sum() == 0


@settings(max_examples=cases(8, 25), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    gap=st.sampled_from([0.01, 0.1, 0.5]),
    backend=st.sampled_from(BACKENDS),
)
def test_bulk_iterations_are_the_single_ones(seed, gap, backend):
    rng, config = np.random.default_rng(seed), replace(SMALL, speeds=(0.7, 1.0))
    plain = [PlainReplica(config, speed) for speed in config.all_speeds]
    replicas, speeds = idle_replicas(1, config), np.array([config.all_speeds])
    now, found = 0.0, []
    for _ in range(60):
        chosen, prompt = int(rng.integers(config.replicas)), int(rng.integers(1, 400))
        output = int(rng.integers(1, 60))
        route_one(replicas, chosen, now, prompt, output)
        plain[chosen].add(Request(now, prompt, output))
        now += float(rng.exponential(gap))
        until = np.array([now])
        found += list(advance_of(backend)(replicas, costs(config), until, speeds).latency)
        for each in plain:
            each.run(now)
        assert replicas.size[0].tolist() == [len(each.queue) for each in plain]
        assert replicas.running[0].tolist() == [len(each.batch) for each in plain]
    expected = [latency for each in plain for latency in each.latencies]
    assert sorted(found) == pytest.approx(sorted(expected), rel=1e-9)


@st.composite
def configs(draw):
    return ClusterConfig(
        replicas=draw(st.integers(2, 5)),
        speeds=tuple(draw(st.lists(st.sampled_from([0.5, 1.0, 1.7]), min_size=1, max_size=2))),
        max_batch=draw(st.integers(1, 8)),
        kv_capacity=draw(st.integers(460, 3000)),
        max_prompt=400,
        max_output=60,
        chunk=draw(st.integers(16, 512)),
        queue_limit=draw(st.integers(1, 9)),
        qps=draw(st.floats(2, 60)),
        arrivals=draw(st.sampled_from(["poisson", "gamma"])),
        cv=draw(st.floats(0.3, 4)),
        prompt_mean=200,
        output_mean=30,
        horizon=draw(st.integers(50, 500)),
    )


@settings(max_examples=cases(6, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=configs(), seed=st.integers(0, 1000))
def test_requests_are_conserved_and_no_limit_is_broken(config, seed):
    cluster, rng = Cluster(config, 6), np.random.default_rng(seed)
    cluster.reset(rng)
    arrived, refused, finished = 0, 0, 0
    for _ in range(200):
        outcome = cluster.step(rng.integers(0, config.replicas, 6), rng)
        arrived, refused = arrived + 6, refused + outcome.info["rejected"].sum()
        finished += len(cluster.finished.latency)
        replicas = cluster.replicas
        assert arrived == finished + refused + replicas.outstanding.sum()
        assert (replicas.cached >= 0).all()
        assert (replicas.cached <= replicas.reserved).all()
        assert (replicas.reserved <= config.kv_capacity).all()
        assert (replicas.running <= config.max_batch).all()
        assert (replicas.size <= config.queue_limit).all()
        busy = replicas.outstanding > 0  # works, and has worked up to now
        assert (replicas.clock >= cluster.now[:, None])[busy].all()


@pytest.mark.soak
@pytest.mark.parametrize("kind", sampled(["poisson", "gamma", "trace"], 3))
def test_both_backends_give_the_same_bits(kind, tmp_path):
    trace = ""
    if kind == "trace":
        rng, path = np.random.default_rng(3), tmp_path / "trace.csv"
        rows = np.c_[rng.exponential(0.05, 400).cumsum(), rng.integers(1, 7000, (400, 2))]
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
        trace = str(path)
    clusters = [
        Cluster(ClusterConfig(backend=backend, arrivals=kind, trace=trace, horizon=700), 8)
        for backend in BACKENDS
    ]
    streams = [np.random.default_rng(0) for _ in BACKENDS]
    choice = np.random.default_rng(1)
    for cluster, stream in zip(clusters, streams, strict=True):
        cluster.reset(stream)
    for step in range(800):  # beyond the first end
        action = baselines()["lor"](None, clusters[0])
        if step % 3 == 0:
            action = choice.integers(0, 4, 8)
        one, two = (c.step(action, s) for c, s in zip(clusters, streams, strict=True))
        assert np.array_equal(one.reward, two.reward)
        assert np.array_equal(clusters[0].finished.latency, clusters[1].finished.latency)
        if one.truncated.any():
            for cluster, stream in zip(clusters, streams, strict=True):
                cluster.reset(stream, one.truncated)
        assert np.array_equal(clusters[0].observe(), clusters[1].observe())
    one, two = (cluster.state_dict() for cluster in clusters)
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.soak
@settings(max_examples=cases(5, 15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=configs(), seed=st.integers(0, 1000))
def test_both_backends_agree_on_any_cluster(config, seed):
    found = []
    for backend in BACKENDS:
        cluster, rng = Cluster(replace(config, backend=backend), 4), np.random.default_rng(seed)
        cluster.reset(rng)
        for _ in range(150):
            outcome = cluster.step(rng.integers(0, config.replicas, 4), rng)
        found.append({**cluster.state_dict(), "reward": outcome.reward})
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_littles_law_holds():
    cluster, rng = Cluster(ClusterConfig(load=0.6), 64), np.random.default_rng(5)
    cluster.reset(rng)
    choose = baselines()["lor"]
    for _ in range(400):
        cluster.step(choose(None, cluster), rng)
    began, inside, latencies = cluster.now.copy(), [], []
    for _ in range(1200):
        # Poisson arrivals see time averages: what is there just before each of them.
        inside.append(cluster.replicas.outstanding.sum(axis=1).mean())
        cluster.step(choose(None, cluster), rng)
        latencies.append(cluster.finished.latency)
    latencies = np.concatenate(latencies)
    rate = len(latencies) / (cluster.now - began).sum()
    assert np.mean(inside) == pytest.approx(rate * latencies.mean(), rel=0.03)


def test_no_latency_is_below_the_time_of_service_alone(tmp_path):
    path = tmp_path / "alike.csv"
    path.write_text("time,prompt,output\n" + "\n".join(f"{i * 0.02},300,40" for i in range(50)))
    config = ClusterConfig(arrivals="trace", trace=str(path))
    service = 0.012 + 6e-5 * 300 + sum(0.012 + 2e-4 + 2e-7 * (300 + i) for i in range(40))
    cluster, rng = Cluster(config, 8), np.random.default_rng(0)
    cluster.reset(rng)
    least = []
    for _ in range(500):
        cluster.step(rng.integers(0, 4, 8), rng)
        least.extend(cluster.finished.latency)
    assert min(least) >= service / 2.0 - 1e-12


def test_clusters_of_a_batch_do_not_touch_each_other():
    found = []
    for other in (0, 3):
        cluster, rng = Cluster(ClusterConfig(), 4), np.random.default_rng(2)
        cluster.reset(rng)
        for step in range(300):
            action = np.full(4, step % 4)
            action[2] = other
            reward = cluster.step(action, rng).reward
        found.append((cluster.observe(), reward))
    (one, one_reward), (two, two_reward) = found
    rest = [0, 1, 3]
    assert np.array_equal(one[rest], two[rest])
    assert np.array_equal(one_reward[rest], two_reward[rest])
    assert not np.array_equal(one[2], two[2])


@pytest.mark.soak
def test_latency_grows_with_load_and_refusals_begin_beyond_capacity():
    means, refused = [], []
    for load in (0.4, 0.7, 1.4):
        cluster, rng = Cluster(ClusterConfig(load=load), 16), np.random.default_rng(0)
        cluster.reset(rng)
        latencies, count = [], 0
        for _ in range(900):
            outcome = cluster.step(baselines()["lor"](None, cluster), rng)
            latencies.append(cluster.finished.latency)
            count += outcome.info["rejected"].sum()
        means.append(np.concatenate(latencies).mean())
        refused.append(count)
    assert means[0] < means[1] < means[2]
    assert refused[0] == refused[1] == 0 < refused[2]
    assert capacity(ClusterConfig()) == pytest.approx(26.08, rel=0.01)
