"""The judgement of schedulers: what the latencies are, and that all meet the same requests."""

from dataclasses import replace

import numpy as np
import pytest

from rlvitals.trainers.ppo.cluster import (
    Cluster,
    ClusterConfig,
    CurriculumConfig,
    SafetyConfig,
    baselines,
    evaluate,
    evaluate_all,
    lead,
    sentence,
    table,
)


def test_requests_do_not_depend_on_who_schedules_them():
    met = {}
    for name, policy in baselines().items():
        seen = []

        def spy(observation, cluster, policy=policy, seen=seen):
            seen.append((cluster.now.copy(), cluster.prompt.copy(), cluster.output.copy()))
            return policy(observation, cluster)

        evaluate(spy, envs=3, steps=60, seed=4)
        met[name] = np.array(seen)
    assert all(np.array_equal(each, met["lor"]) for each in met.values())
    one, two = (evaluate(baselines()["lor"], envs=3, steps=60, seed=seed) for seed in (4, 5))
    assert one != two
    assert one == evaluate(baselines()["lor"], envs=3, steps=60, seed=4)


def test_held_out_requests_are_not_those_of_training():
    training, held_out = Cluster(ClusterConfig(), 4), []
    training.reset(np.random.default_rng(0))
    evaluate(
        lambda _, c: held_out.append(c.prompt.copy()) or np.zeros(4, int), envs=4, steps=2, seed=0
    )
    assert not np.array_equal(training.prompt, held_out[0])


def test_the_numbers_are_those_of_the_finished_requests():
    latencies, refused = [], 0

    def policy(_, cluster):
        if cluster.age[0] > 25:  # 25 % of the 100 decisions warm up
            latencies.extend(cluster.finished.latency)
        last.append(cluster)
        return np.full(cluster.batch, 3)

    last = []
    found = evaluate(policy, ClusterConfig(queue_limit=2, load=1.0), envs=4, steps=100)
    latencies.extend(last[-1].finished.latency)
    assert found.finished == len(latencies)
    assert found.mean == pytest.approx(np.mean(latencies))
    assert found.p99 == pytest.approx(np.percentile(latencies, 99))
    assert found.p50 <= found.p90 <= found.p95 <= found.p99
    assert found.rejected > refused


def test_curriculum_horizon_and_latency_limit_do_not_cut_an_evaluation():
    plain = evaluate(baselines()["lor"], ClusterConfig(), envs=4, steps=80)
    config = ClusterConfig(
        horizon=10,
        curriculum=CurriculumConfig(decisions=10**9),
        safety=SafetyConfig(max_latency=0.001),
    )
    assert evaluate(baselines()["lor"], config, envs=4, steps=80) == plain


def test_the_table_holds_every_scheduler_and_its_distance():
    found = evaluate_all(baselines(), seeds=(0, 1), envs=4, steps=100)
    text = table(found)
    lines = text.splitlines()
    assert len(lines) == 1 + len(found)
    means = [np.mean([each.mean for each in found[line.split()[0]]]) for line in lines[1:]]
    assert means == sorted(means, reverse=True)
    assert max(map(len, lines)) <= 100
    distance = lead(found["random"], found["lor"])
    line = next(line for line in lines if line.startswith("random"))
    assert f"{np.mean([each.mean for each in found['random']]):7.2f}" in line
    assert f"{distance.mean:+.1%} ±{distance.high - distance.mean:.1%}" in line
    assert "±" not in table({name: each[:1] for name, each in found.items()})
    assert "against" not in table({"lor": found["lor"]}, against="nobody")


def test_a_lead_is_taken_seed_by_seed():
    other = lambda mean: replace(evaluation, mean=mean)
    evaluation = evaluate(baselines()["lor"], envs=2, steps=40)
    found = lead([other(0.9), other(1.6), other(3.3)], [other(1.0), other(2.0), other(3.0)])
    shares = np.array([-0.1, -0.2, 0.1])
    assert found.mean == pytest.approx(shares.mean())
    # Student's t with 2 degrees of freedom.
    assert found.high - found.mean == pytest.approx(4.303 * shares.std(ddof=1) / np.sqrt(3))
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    assert np.isnan(lead([evaluation], [evaluation]).low)
    with pytest.raises(ValueError, match="shorter"):
        lead([evaluation] * 2, [evaluation])


def test_the_sentence_compares_with_the_best_in_each_and_says_when_nothing_can_be_told():
    base = evaluate(baselines()["lor"], envs=2, steps=40)
    made = lambda mean, p95: replace(base, mean=mean, p95=p95, finished=99, rejected=1)
    found = {
        "lor": [made(2.0, 9.0), made(2.2, 9.2)],
        "lor/speed": [made(4.0, 5.0), made(4.4, 5.0)],
        "ppo": [made(1.80, 5.0), made(1.98, 5.2)],
    }
    assert sentence(found) == (
        "On 2 streams of held-out arrivals, ppo has a mean latency of 1.89 s, 10.0% below that of"
        " lor (95 % interval -10.0% to -10.0%), and a p95 latency of 5.10 s, not distinguishable"
        " from that of lor/speed (+2.0%, 95 % interval -23.4% to +27.4%) (each time the best of 2"
        " other schedulers); it refuses 1.0% of the requests."
    )
    alone = sentence({"ppo": [replace(base, mean=2.0, p95=5.0, rejected=0)]})
    assert alone == (
        "On 1 stream of held-out arrivals, ppo has a mean latency of 2.00 s, and a p95 latency of"
        " 5.00 s."
    )
    one = sentence({name: each[:1] for name, each in found.items()})
    assert "10.0% below that of lor, and a p95 latency of 5.00 s, 0.0% above that" in one


@pytest.mark.soak
def test_heterogeneous_replicas_are_where_scheduling_matters():
    found = evaluate_all(baselines(), envs=16, steps=900)
    mean = {name: each[0].mean for name, each in found.items()}
    p95 = {name: each[0].p95 for name, each in found.items()}
    assert mean["lor"] < 0.7 * mean["round_robin"]
    assert mean["lor"] < 0.7 * mean["random"]
    assert mean["lor"] < mean["lor/speed"]
    assert p95["lor/speed"] < p95["lor"]
    assert found["lor"][0].rejected == 0 < found["random"][0].rejected
