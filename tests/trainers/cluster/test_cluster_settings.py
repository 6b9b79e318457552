"""Settings: each does something, nonsense is refused by name, limits and curricula hold."""

import logging
from dataclasses import fields

import numpy as np
import pytest
from effort import sampled

import rlvitals
from rlvitals.trainers.ppo.cluster import (
    Cluster,
    ClusterConfig,
    CurriculumConfig,
    SafetyConfig,
    backends,
    baselines,
)
from rlvitals.trainers.ppo.cluster.config import build_config

OTHER = {
    "replicas": 5,
    "speeds": (1.0,),
    "max_batch": 5,
    "kv_capacity": 8000,
    "chunk": 64,
    "queue_limit": 3,
    "iteration_cost": 0.02,
    "prefill_cost": 1e-4,
    "decode_cost": 1e-3,
    "cache_cost": 1e-6,
    "arrivals": "gamma",
    "load": 0.5,
    "qps": 40.0,
    "cv": 4.0,
    "prompt_mean": 300.0,
    "prompt_sigma": 0.3,
    "output_mean": 90.0,
    "output_sigma": 0.1,
    "max_prompt": 900,
    "max_output": 200,
    "window": 16,
    "queued_requests": 2,
    "horizon": 20,
    "reward": {"alpha": 1.0},
    "curriculum": {"decisions": 1000},
    "safety": {"queue_limit": 1},
    "failures": {"mean_time_to_failure": 1.0},
}


def played(config, steps=150):
    """What a cluster does under fixed decisions."""
    cluster, rng = Cluster(config, 2), np.random.default_rng(0)
    choice, found = np.random.default_rng(1), []
    cluster.reset(rng)
    for _ in range(steps):
        outcome = cluster.step(choice.integers(0, 4, 2), rng)
        found += [*cluster.observe().sum(axis=1), *outcome.reward, *outcome.truncated]
    return found


@pytest.mark.parametrize("name", sampled(OTHER, 3))
def test_every_setting_changes_something(name):
    base = ClusterConfig(load=1.2, arrivals="gamma" if name == "cv" else "poisson")
    assert played(base) != played(build_config(base, {name: OTHER[name]}))


def test_all_settings_are_tried():
    elsewhere = {"trace", "backend"}  # in the tests of the physics
    assert set(OTHER) | elsewhere == {each.name for each in fields(ClusterConfig)}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"replcas": 3}, "did you mean replicas"),
        ({"reward": {"alfa": 1}}, "did you mean alpha"),
        ({"replicas": 1}, "2 to 64"),
        ({"replicas": 65}, "2 to 64"),
        ({"speeds": (1, 0)}, "speeds above 0"),
        ({"replicas": 2}, "1 to 2 speeds"),
        ({"arrivals": "weibull"}, "one of poisson"),
        ({"arrivals": "trace"}, "CSV"),
        ({"trace": "a.csv"}, "CSV"),
        ({"kv_capacity": 7000}, "room for"),
        ({"load": 0.0}, "load"),
        ({"qps": "many"}, "a number"),
        ({"qps": float("nan")}, "qps"),
        ({"max_batch": True}, "a number"),
        ({"max_batch": 3.5}, "a whole number"),
        ({"reward": {"mode": "both"}}, "one of instant"),
        ({"reward": {"sigma": 0}}, "sigma"),
        ({"safety": {"queue_limit": -1}}, "safety.queue_limit"),
        ({"failures": {"mean_time_to_failure": -1}}, "mean_time_to_failure"),
        ({"failures": {"mean_time_to_repair": 0}}, "mean_time_to_repair"),
        ({"curriculum": {"start_load": -1}}, "start_load"),
    ],
)
def test_nonsense_is_refused_by_name(settings, said):
    with pytest.raises(rlvitals.UsageError) as told:
        build_config(None, settings)
    assert said in str(told.value)


def test_speeds_are_repeated_over_more_replicas():
    config = build_config(None, {"replicas": 6, "speeds": [2, 1]})
    assert config.all_speeds == (2.0, 1.0, 2.0, 1.0, 2.0, 1.0)
    assert config.speeds == (2.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "two rows"),
        ("0,1,1\n", "two rows"),
        ("0,1,1\n2,x,1\n", "x"),
        ("0,1,1\n2,3\n", "trace"),
        ("1,5,5\n0,5,5\n", "order of time"),
        ("0,5,5\n0,5,5\n", "at once"),
        ("0,5,5\nnan,5,5\n", "finite"),
    ],
)
def test_a_bad_trace_is_told(text, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(rlvitals.VitalsError, match=said) as told:
        Cluster(ClusterConfig(arrivals="trace", trace=str(path)))
    assert str(path) in str(told.value)


def test_a_trace_is_played_as_it_is_and_over_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("time,prompt,output\n10,100,10\n10.5,200,20\n12,300,30\n")
    cluster = Cluster(ClusterConfig(arrivals="trace", trace=str(path)), 3)
    rng = np.random.default_rng(0)
    cluster.reset(rng)
    rows = {100: 0.5, 200: 1.5, 300: 1.0}  # the last gap is the mean one
    assert set(cluster.prompt) <= set(rows)
    for _ in range(7):
        expected = cluster.now + [rows[p] for p in cluster.prompt]
        after = {100: 200, 200: 300, 300: 100}
        prompts = [after[p] for p in cluster.prompt]
        cluster.step(np.zeros(3, int), rng)
        assert cluster.now == pytest.approx(expected)
        assert cluster.prompt.tolist() == prompts
        assert (cluster.output * 10 == cluster.prompt).all()
    twice = Cluster(ClusterConfig(arrivals="trace", trace=str(path), qps=2.0), 1)
    twice.reset(np.random.default_rng(1))
    gap = rows[int(twice.prompt[0])]
    twice.step(np.zeros(1, int), np.random.default_rng(0))
    assert twice.now[0] == pytest.approx(gap / 2)


@pytest.mark.parametrize(("kind", "cv"), [("poisson", 1.0), ("gamma", 2.0), ("gamma", 0.5)])
def test_arrivals_have_the_rate_and_the_variation_asked_for(kind, cv):
    cluster = Cluster(ClusterConfig(qps=7.0, arrivals=kind, cv=cv), 500)
    rng = np.random.default_rng(0)
    gaps = np.array([cluster.arrivals.gaps(rng) for _ in range(100)])
    assert gaps.mean() == pytest.approx(1 / 7, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_no_queue_is_pushed_over_the_safety_limit():
    config = ClusterConfig(load=1.0, safety=SafetyConfig(queue_limit=4))
    cluster, rng = Cluster(config, 8), np.random.default_rng(0)
    cluster.reset(rng)
    moved = 0
    for _ in range(400):
        before = cluster.replicas.size.copy()
        info = cluster.step(np.full(8, 3), rng).info  # the slowest, always
        full = before[:, 3] >= 4
        others = ~(before >= 4).all(axis=1)
        assert np.array_equal(info["overridden"], full & others)
        assert (info["replica"][~info["overridden"]] == 3).all()
        chosen = before[np.arange(8), info["replica"]]
        assert (chosen[info["overridden"]] < 4).all()
        moved += info["overridden"].sum()
    assert moved > 100


def test_a_curriculum_ramps_load_and_differences_of_speed():
    curriculum = CurriculumConfig(decisions=400, start_load=0.2, start_heterogeneity=0.0)
    cluster, rng = Cluster(ClusterConfig(curriculum=curriculum), 2), np.random.default_rng(0)
    full = cluster.arrivals.full_rate
    rates, spreads = [], []
    for _ in range(5):
        cluster.reset(rng)
        rates.append(cluster.arrivals.rate[0] / full)
        spreads.append(np.ptp(cluster.speeds[0]))
        for _ in range(50):
            info = cluster.step(np.zeros(2, int), rng).info
            assert (info["target_qps"] == cluster.arrivals.rate[0]).all()
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert spreads == pytest.approx([0, 0.375, 0.75, 1.125, 1.5])
    assert info["curriculum_stage"][0] == 1.0
    assert cluster.speeds[0].tolist() == [2.0, 1.0, 1.0, 0.5]


@pytest.fixture
def without_numba(monkeypatch):
    backends.resolve_backend.cache_clear()
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    yield
    backends.resolve_backend.cache_clear()


@pytest.mark.usefixtures("without_numba")
def test_without_numba_one_line_says_so(caplog):
    with caplog.at_level(logging.WARNING):
        made = [Cluster(ClusterConfig()) for _ in range(3)]
    assert {each.backend for each in made} == {"numpy"}
    assert len(caplog.records) == 1
    assert "pip install" in caplog.text
    made[0].reset(np.random.default_rng(0))
    made[0].step(np.zeros(1, int), np.random.default_rng(0))
    with pytest.raises(rlvitals.VitalsError, match="not installed"):
        Cluster(ClusterConfig(backend="numba"))


def test_baselines_choose_what_they_are_named_for():
    cluster, rng = Cluster(ClusterConfig(load=1.0), 16), np.random.default_rng(0)
    cluster.reset(rng)
    known = baselines()
    for step in range(60):
        assert (known["round_robin"](None, cluster) == step % 4).all()
        cluster.step(rng.integers(0, 4, 16), rng)
    count, rows = cluster.replicas.outstanding, np.arange(16)
    chosen = {name: policy(None, cluster) for name, policy in known.items()}
    assert (count[rows, chosen["lor"]] == count.min(axis=1)).all()
    work = (count + 1) / cluster.speeds
    assert (work[rows, chosen["lor/speed"]] == work.min(axis=1)).all()
    assert (chosen["lor"] != chosen["lor/speed"]).any()
    assert (chosen["tokens/speed"] != chosen["lor/speed"]).any()
    many = np.concatenate([known["random"](None, cluster) for _ in range(500)])
    assert np.bincount(many) / len(many) == pytest.approx([0.25] * 4, abs=0.02)


def test_tokens_are_counted_with_the_request_s_own():
    cluster, rng = Cluster(ClusterConfig(load=1.0), 16), np.random.default_rng(0)
    cluster.reset(rng)
    rows, replicas = np.arange(16), cluster.replicas
    for _ in range(100):
        chosen = baselines()["tokens/speed"](None, cluster)
        running = replicas.reserved - replicas.cached + replicas.waiting_tokens
        tokens = (running + (cluster.prompt + cluster.output)[:, None]) / cluster.speeds
        assert (tokens[rows, chosen] == tokens.min(axis=1)).all()
        cluster.step(rng.integers(0, 4, 16), rng)


def test_numbers_of_a_step_are_not_changed_by_the_next():
    cluster, rng = Cluster(ClusterConfig(), 4), np.random.default_rng(0)
    cluster.reset(rng)
    info = cluster.step(np.zeros(4, int), rng)[-1]
    before = {name: np.array(value) for name, value in info.items()}
    for _ in range(50):
        cluster.step(rng.integers(0, 4, 4), rng)
    for name, value in info.items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
