"""The Gymnasium side: spaces, autoreset, final observations, saved states."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import rlvitals
from rlvitals.trainers.ppo.cluster import ID, REWARD_PARTS, ClusterConfig, RewardConfig, register
from rlvitals.trainers.ppo.cluster.vector import ClusterVectorEnv

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


def run(envs, steps, seed=0):
    """Fixed decisions; what came back, as one list for each of the five."""
    rng = np.random.default_rng(seed)
    found = [
        envs.step(rng.integers(0, envs.single_action_space.n, envs.num_envs)) for _ in range(steps)
    ]
    return [list(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("mode", ["hybrid", "delta"])
def test_gymnasium_finds_nothing_wrong(mode):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_env(gymnasium.make(ID, reward={"mode": mode}).unwrapped)
    # Bounds of -4 and 16 are ours and meant; no other complaint.
    assert [str(each.message) for each in told] == []


def test_registering_twice_is_no_error():
    register()
    register()
    assert ID in gymnasium.registry


def test_without_gymnasium_the_simulator_works():
    code = """
import sys
sys.modules["gymnasium"] = None
import importlib.util
importlib.util.find_spec = lambda name: None
import rlvitals.trainers.ppo.cluster as ours
print(ours.evaluate(ours.baselines()["lor"], envs=2, steps=20).finished)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0
    assert "numpy" in done.stderr


def test_sections_may_be_mappings_or_configs():
    one = gymnasium.make(ID, reward={"alpha": 1.0}, horizon=9).unwrapped.config
    two = gymnasium.make(ID, config=ClusterConfig(reward=RewardConfig(alpha=1.0), horizon=9))
    three = gymnasium.make(ID, config={"horizon": 9}, reward=RewardConfig(alpha=1.0))
    assert one == two.unwrapped.config == three.unwrapped.config
    with pytest.raises(rlvitals.UsageError, match=r"there is no reward\.alfa"):
        gymnasium.make(ID, reward={"alfa": 1.0})


def test_an_episode_lasts_its_horizon():
    env = gymnasium.make(ID, horizon=40, max_batch=8)
    observation, info = env.reset(seed=1)
    assert info == {}
    for step in range(1, 41):
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, info = env.step(step % 4)
        assert isinstance(reward, float)
        assert (terminated, truncated) == (False, step == 40)
    assert sum(info[name] for name in REWARD_PARTS) == pytest.approx(reward, abs=1e-12)
    assert info["utilisation"].shape == (4,)


def test_features_have_names_and_vary():
    envs = gymnasium.make_vec(ID, num_envs=32, replicas=3, speeds=(1, 0.6), load=1.2)
    envs.reset(seed=0)
    observations = np.array(run(envs, 400)[0])
    count = len(envs.replica_features)
    assert observations.shape[-1] == 3 * count + len(envs.global_features)
    replicas = observations[..., : 3 * count].reshape(-1, count)
    for name, spread in zip(envs.replica_features, replicas.std(axis=0), strict=True):
        assert spread > 1e-4, name
    whole = observations[..., 3 * count :].reshape(-1, len(envs.global_features))
    for name, spread in zip(envs.global_features, whole.std(axis=0), strict=True):
        assert spread > 1e-4, name
    assert replicas[0, list(envs.replica_features).index("speed")] == 1.0


def test_the_oldest_requests_are_seen_one_by_one():
    envs = gymnasium.make_vec(ID, num_envs=2, load=3.0, queued_requests=3, queue_limit=8)
    plain = gymnasium.make_vec(ID, num_envs=2, load=3.0, queue_limit=8)
    assert envs.replica_features[-2:] == ("request_2_age", "request_2_prompt")
    for each in (envs, plain):
        each.reset(seed=0)
    rng, replicas, config = np.random.default_rng(0), envs.cluster.replicas, envs.config
    filled = 0
    for _ in range(300):
        actions = rng.integers(0, 4, 2)
        seen = envs.step(actions)[0][:, :-12].reshape(2, 4, -1)
        whole = plain.step(actions)[0][:, :-12].reshape(2, 4, -1)
        assert np.array_equal(seen[..., : whole.shape[-1]], whole)  # they are added, and no more
        for b, r, i in np.ndindex(2, 4, 3):
            place = (int(replicas.head[b, r]) + i) % 8
            waits = i < replicas.size[b, r]
            age = min(envs.cluster.now[b] - replicas.queue_born[b, r, place], 10.0) if waits else 0
            prompt = replicas.queue_prompt[b, r, place] / config.max_prompt if waits else 0.0
            told = seen[b, r, whole.shape[-1] + 2 * i :][:2]
            assert told == pytest.approx([np.log1p(age) / np.log(11), prompt], abs=1e-6)
            filled += waits
    assert filled > 1000


def test_changes_of_the_queues_and_recent_arrivals_by_hand():
    envs = ClusterVectorEnv(2, stagger=False, load=3.0, queue_limit=8)
    first, _ = envs.reset(seed=0)
    column = {name: i - 12 for i, name in enumerate(envs.global_features)}
    assert (first[:, [column["qps"], column["qps_recent"]]] == 1.0).all()  # the rate, at first
    cluster, waiting, seconds, mean_gap = envs.cluster, np.zeros(2), np.zeros(2), None
    changes = []
    for step in range(40):
        observation = envs.step(np.full(2, step % 4))[0]
        gap, change = cluster.now - seconds, cluster.replicas.size.sum(axis=1) / 32 - waiting
        mean_gap = gap if mean_gap is None else mean_gap + 0.2 * (gap - mean_gap)
        recent = np.minimum(1 / (mean_gap * cluster.arrivals.rate), 4.0)
        assert observation[:, column["queue_total_delta"]] == pytest.approx(change, abs=1e-6)
        assert observation[:, column["qps_recent"]] == pytest.approx(recent, rel=1e-5)
        waiting, seconds = waiting + change, cluster.now.copy()
        changes.append(change)
    assert np.min(changes) < 0 < np.max(changes)


def test_replicas_can_be_relabelled():
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        speeds = np.array([2.0, 1.0, 0.5])[order]
        envs = gymnasium.make_vec(ID, num_envs=4, replicas=3, speeds=tuple(speeds), stagger=False)
        envs.reset(seed=0)
        place = np.argsort(order)
        rng = np.random.default_rng(0)
        for _ in range(300):
            found_now = envs.step(place[rng.integers(0, 3, 4)])
        count = 3 * len(envs.replica_features)
        rows = found_now[0][:, :count].reshape(4, 3, -1)[:, place]
        found.append((rows, found_now[0][:, count:], found_now[1]))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_autoreset_follows_gymnasium(mode):
    """The scalar environments under Gymnasium's own vector are the reference for the flags."""
    ours = ClusterVectorEnv(5, stagger=False, autoreset_mode=mode, horizon=20)
    made = [lambda: gymnasium.make(ID, horizon=20).unwrapped] * 5
    theirs = SyncVectorEnv(made, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is mode
    ours.reset(seed=0)
    theirs.reset(seed=0)
    (_, reward, *one, info), (_, their_reward, *two, _) = run(ours, 50), run(theirs, 50)
    assert np.array_equal(np.array(one), np.array(two))
    still = np.array(their_reward) == 0  # the steps that only reset
    assert np.array_equal(np.array(reward) == 0, still)
    assert still.any() == (mode is AutoresetMode.NEXT_STEP)
    told = [step for step, each in enumerate(info) if "final_obs" in each]
    assert told == ([19, 39] if mode is AutoresetMode.SAME_STEP else [])


def test_final_observations_are_those_before_the_reset():
    same = ClusterVectorEnv(4, autoreset_mode="SameStep", horizon=30)
    free = ClusterVectorEnv(4, autoreset_mode="SameStep", horizon=10_000)
    for envs in (same, free):
        envs.reset(seed=3)
    same.cluster.age[:] = [0, 12, 0, 0]
    rng = np.random.default_rng(0)
    for _ in range(18):
        action = rng.integers(0, 4, 4)
        observation, _, _, truncated, info = same.step(action)
        unbroken = free.step(action)[0]
    assert truncated.tolist() == info["_final_obs"].tolist() == [False, True, False, False]
    assert np.array_equal(info["final_obs"][1], unbroken[1])
    assert info["final_obs"][0] is None
    assert info["final_info"]["qps"][1] == info["qps"][1]
    assert np.array_equal(observation[[0, 2, 3]], unbroken[[0, 2, 3]])
    assert not np.array_equal(observation[1], unbroken[1])


def test_the_step_that_resets_decides_nothing():
    envs = ClusterVectorEnv(2, stagger=False, horizon=5)
    envs.reset(seed=0)
    *_, before = run(envs, 5)
    assert before[-1]["_qps"].all()
    observation, reward, _, truncated, info = envs.step(np.array([1, 1]))
    assert reward.tolist() == [0.0, 0.0]
    assert not truncated.any()
    assert not info["_qps"].any()
    assert envs.cluster.replicas.outstanding.sum() == 0
    assert (envs.cluster.age == 0).all()
    queue = list(envs.replica_features).index("running")
    assert (observation[:, queue] == 0).all()


def test_starts_are_staggered():
    envs = ClusterVectorEnv(8, horizon=80)
    envs.reset(seed=0)
    ends = np.array(run(envs, 80)[3])
    assert ends.argmax(axis=0).tolist() == [79, 69, 59, 49, 39, 29, 19, 9]
    assert ends.sum(axis=1).max() == 1


def test_a_chosen_few_can_be_reset():
    envs = ClusterVectorEnv(3, autoreset_mode="Disabled")
    envs.reset(seed=0)
    before = run(envs, 20)[0][-1]
    after, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert np.array_equal(before[1:], after[1:])
    assert envs.cluster.age.tolist()[0] == 0


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_wrappers_work(mode):
    envs = RecordEpisodeStatistics(ClusterVectorEnv(4, autoreset_mode=mode, horizon=25))
    envs.reset(seed=0)
    lengths = [each["episode"]["l"].max() for each in run(envs, 80)[4] if "episode" in each]
    assert max(lengths) in (25, 26)


def trace_file(folder):
    rng, path = np.random.default_rng(0), folder / "trace.csv"
    rows = np.c_[rng.exponential(0.05, 300).cumsum(), rng.integers(5, 900, (300, 2))]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    return str(path)


@pytest.mark.parametrize("kind", ["poisson", "gamma", "trace"])
@pytest.mark.parametrize("mode", MODES)
def test_a_saved_state_goes_on_bit_for_bit(kind, mode, tmp_path):
    trace = trace_file(tmp_path) if kind == "trace" else ""
    made = {"arrivals": kind, "trace": trace, "horizon": 60, "reward": {"trend_weight": 0.5}}
    curriculum = {"decisions": 5000}
    fresh = lambda: ClusterVectorEnv(6, autoreset_mode=mode, curriculum=curriculum, **made)
    envs = fresh()
    envs.reset(seed=4)
    run(envs, 130)
    facts = rlvitals.State(envs=envs).save(tmp_path)
    assert facts["not_saved"] == []
    expected = run(envs, 200, seed=9)
    other = fresh()
    other.reset(seed=77)
    rlvitals.State(envs=other).load(tmp_path)
    found = run(other, 200, seed=9)
    assert np.array_equal(np.array(expected[:4][0]), np.array(found[0]))
    for one, two in zip(expected[1:4], found[1:4], strict=True):
        assert np.array_equal(np.array(one), np.array(two))
    keys = [name for name in expected[4][-1] if not name.startswith(("_", "final"))]
    assert all(np.array_equal(expected[4][-1][key], found[4][-1][key]) for key in keys)


def test_a_scalar_environment_goes_on_too(tmp_path):
    env, other = gymnasium.make(ID), gymnasium.make(ID)
    env.reset(seed=4)
    for step in range(50):
        env.step(step % 4)
    rlvitals.State(env=env).save(tmp_path)
    expected = [env.step(step % 3) for step in range(50)]
    other.reset(seed=1)
    rlvitals.State(env=other).load(tmp_path)
    for step in range(50):
        observation, reward, *_ = other.step(step % 3)
        assert np.array_equal(observation, expected[step][0])
        assert reward == expected[step][1]


def test_the_state_of_another_cluster_is_refused(tmp_path):
    rlvitals.State(envs=ClusterVectorEnv(2)).save(tmp_path)
    with pytest.raises(rlvitals.BadCheckpoint, match=r"shape \(2, 4"):
        rlvitals.State(envs=ClusterVectorEnv(2, replicas=5)).load(tmp_path)


@pytest.mark.parametrize("action", [[4, 0], [-1, 0], [0]])
def test_an_action_that_is_no_replica_is_refused(action):
    envs = ClusterVectorEnv(2)
    envs.reset(seed=0)
    with pytest.raises(rlvitals.UsageError, match="no replica"):
        envs.step(np.array(action))


def test_one_seed_is_one_stream():
    found = []
    for seed in (5, 5, 6):
        envs = ClusterVectorEnv(3, config=ClusterConfig(horizon=30))
        first, _ = envs.reset(seed=seed)
        found.append(np.array([first, *run(envs, 70)[0]]))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
