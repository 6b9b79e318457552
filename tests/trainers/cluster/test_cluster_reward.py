"""The reward: exact sums, formulas by hand, every weight alive, nothing left to chance."""

from dataclasses import fields

import numpy as np
import pytest
from effort import sampled
from hypothesis import given
from hypothesis import strategies as st

import rlvitals
from rlvitals.trainers.ppo.cluster import (
    REWARD_PARTS,
    Cluster,
    ClusterConfig,
    RewardConfig,
    SafetyConfig,
)
from rlvitals.trainers.ppo.cluster.reward import compress

FULL = {  # every weight of the reward at work
    "beta": 0.3,
    "delta_weight": 0.4,
    "kappa": 0.1,
    "imbalance_penalty": 2.0,
    "extreme_imbalance_penalty": 5.0,
    "asymmetry_penalty": 5.0,
    "trend_weight": 0.3,
    "action_balance": 0.2,
    "tail_penalty": 0.5,
    "latency_threshold": 1.0,
    "limit": 1.0,
}
BUSY = {"load": 1.1, "queue_limit": 6}  # requests wait and are refused


def rewards(reward, steps=250, **settings):
    """Rewards and infos of a fixed stream of decisions, each [steps, 3]."""
    cluster = Cluster(ClusterConfig(reward=RewardConfig(**reward), **settings), 3)
    rng, choice = np.random.default_rng(0), np.random.default_rng(1)
    cluster.reset(rng)
    found = [cluster.step(choice.integers(0, 4, 3), rng) for _ in range(steps)]
    names = found[0].info
    info = {name: np.array([each.info[name] for each in found]) for name in names}
    return np.array([each.reward for each in found]), info


@pytest.mark.parametrize("mode", ["hybrid", "instant", "delta"])
def test_the_parts_add_up_to_the_reward_bit_for_bit(mode):
    reward, info = rewards({"mode": mode, **FULL}, **BUSY)
    total = np.zeros_like(reward)
    for name in REWARD_PARTS:
        total += info[name]
    assert reward.dtype == np.float64
    assert np.array_equal(total, reward)
    assert (info["compression"] != 0).any()
    first = {name: float(info[name][9, 0]) for name in REWARD_PARTS}
    rlvitals.lab.reward_parts(first, float(reward[9, 0]))  # raises where they do not


NEUTRAL = {"mode"}


SETTINGS = [f.name for f in fields(RewardConfig) if f.name not in NEUTRAL]


@pytest.mark.parametrize("name", sampled(SETTINGS, 3))
def test_every_setting_of_the_reward_changes_it(name):
    changed = {"throughput_target": 9.0}.get(name)
    plain = {"latency_weight", "threshold_penalty"}
    base = {"mode": "instant" if name in plain else "hybrid", **FULL}
    value = base.get(name, getattr(RewardConfig(), name))
    one, _ = rewards(base, **BUSY)
    two, _ = rewards({**base, name: changed or value * 0.5}, **BUSY)
    assert not np.array_equal(one, two)
    if name.endswith("penalty"):
        assert two.sum() > one.sum()


def test_the_modes_are_what_they_say():
    hybrid, in_hybrid = rewards({"mode": "hybrid"}, **BUSY)
    instant, in_instant = rewards({"mode": "instant"}, **BUSY)
    delta, in_delta = rewards({"mode": "delta"}, **BUSY)
    assert (in_instant["delta_score"] == 0).all()
    assert (in_delta["absolute_score"] == 0).all()
    assert (in_hybrid["latency_threshold_penalty"] == 0).all()
    # A difference of levels is what delta means.
    levels = np.diff(in_instant["absolute_score"], axis=0)
    assert in_delta["delta_score"][1:] == pytest.approx(levels, abs=1e-12)
    assert (in_delta["delta_score"][0] == 0).all()
    assert not np.array_equal(hybrid, instant)
    assert not np.array_equal(instant, delta)


def test_the_absolute_score_by_hand():
    _, info = rewards({})
    rate = info["target_qps"]
    throughput = info["finished"] * rate / rate
    expected = 0.6 * (throughput - 1.5 * info["estimated_latency"] / 4.0) / 1.2
    assert info["absolute_score"] == pytest.approx(expected, rel=1e-12)


def test_the_delta_score_by_hand():
    _, info = rewards({"beta": 0.5, "delta_weight": 0.4})
    throughput = info["finished"] * info["target_qps"]
    latency, target = info["estimated_latency"], info["target_qps"]
    tp_ema, lat_ema = throughput[0], latency[0]
    throughput_emas, latency_emas = [tp_ema], [lat_ema]
    assert (info["delta_score"][0] == 0).all()
    for t in range(1, len(latency)):
        faster = (throughput[t] - tp_ema) / np.maximum(tp_ema, 0.1 * target[t])
        slower = (latency[t] - lat_ema) / np.maximum(lat_ema, 0.4)
        expected = 0.4 * (0.5 * faster - 0.6 * slower) / 1.2
        assert info["delta_score"][t] == pytest.approx(expected, abs=1e-12)
        # Once for each decision, and only after they were compared with.
        tp_ema, lat_ema = (
            tp_ema + 0.2 * (throughput[t] - tp_ema),
            lat_ema + 0.2 * (latency[t] - lat_ema),
        )
        throughput_emas.append(tp_ema)
        latency_emas.append(lat_ema)
    # Of each decision, not of the last: a later decision leaves an earlier `info` as it was.
    assert info["throughput_ema"] == pytest.approx(np.array(throughput_emas))
    assert info["latency_ema"] == pytest.approx(np.array(latency_emas))


def test_evenly_spread_decisions_earn_the_most():
    def spread(choose):
        cluster = Cluster(ClusterConfig(reward=RewardConfig(action_balance=0.6, scale=1.0)), 2)
        rng = np.random.default_rng(0)
        cluster.reset(rng)
        chosen = np.array([choose(t) for t in range(120)])
        infos = [cluster.step(np.full(2, one), rng).info for one in chosen]
        return chosen, np.array([info["action_balance_bonus"] for info in infos])

    _, even = spread(lambda t: t % 4)
    assert even[47::4] == pytest.approx(0.6, abs=2e-3)
    _, one = spread(lambda _: 3)
    assert one == pytest.approx(-0.6)
    chosen, turned = spread(lambda t: 0 if t < 60 else 1 + t % 3)
    shares = np.bincount(chosen[40:90], minlength=4) / 50  # of the last 50, by hand
    expected = 0.6 * (2 * -(shares * np.log(shares)).sum() / np.log(4) - 1)
    assert turned[89] == pytest.approx(expected)


def test_changes_are_those_since_the_last_decision():
    _, info = rewards({})
    for name in ("throughput", "latency"):
        found, level = info[f"delta_{name}"], info[f"estimated_{name}"]
        assert (found[0] == 0).all()
        assert found[1:] == pytest.approx(np.diff(level, axis=0), abs=1e-12)


def test_violations_are_the_requests_above_the_threshold():
    _, info = rewards({"latency_threshold": 2.0}, load=1.2, window=64)
    samples, late = info["tail_latency_samples"], info["tail_latency_violations"]
    assert (late <= samples).all()
    assert samples.max() == 64
    # A percentile above the threshold is what that share of violations means.
    assert ((info["latency_p90"] > 2.0) == (late > samples - np.ceil(0.9 * samples))).all()
    assert 0 < (info["latency_p90"] > 2.0).mean() < 1


def test_balance_is_the_gap_of_utilisation_and_counts():
    _, info = rewards({"balance_penalty": 0.7}, **BUSY)
    use = info["utilisation"]
    assert info["utilisation_gap"] == pytest.approx(use.max(axis=2) - use.min(axis=2))
    assert info["balance_penalty"] == pytest.approx(-0.7 * info["utilisation_gap"] / 1.2)
    assert (info["balance_penalty"] < 0).any()


def test_the_same_decisions_earn_the_same():
    assert np.array_equal(rewards(FULL, **BUSY)[0], rewards(FULL, **BUSY)[0])


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.01, 10))
def test_compression_keeps_sign_and_order(a, b, limit):
    low, high = compress(np.array(sorted((a, b))), limit)
    assert low <= high
    assert np.sign(low) == np.sign(min(a, b))
    if abs(a) <= limit:
        assert compress(np.array([a]), limit)[0] == a


def test_an_episode_that_breaks_the_latency_limit_ends_and_costs():
    safety = SafetyConfig(max_latency=1.0, failure_penalty=6.0)
    cluster, rng = Cluster(ClusterConfig(safety=safety), 4), np.random.default_rng(0)
    cluster.reset(rng)
    while not (found := cluster.step(np.zeros(4, int), rng)).terminated.any():
        assert (found.info["failure_penalty"] == 0).all()
    failed = found.terminated
    assert (found.info["latency"][failed] > 1.0).all()
    assert found.info["failure_penalty"][failed] == pytest.approx(-6.0 / 1.2)
    assert not found.truncated[failed].any()
