"""Gymnasium's wrappers: nothing changes, and every episode is there in every autoreset mode."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from held import events, log, notes, rows, unmapped

import rlvitals
from rlvitals.integrations.gymnasium import Record, RecordVector


@pytest.fixture
def run(tmp_path):
    with rlvitals.start(tmp_path / "run") as run:
        yield run


def walked(env, steps=300):
    """Everything that an environment returned, with actions from its own seeded space."""
    env.action_space.seed(5)
    found = [env.reset(seed=5)]
    for _ in range(steps):
        found.append(env.step(env.action_space.sample()))
        if found[-1][2] or found[-1][3]:
            found.append(env.reset())
    return found


def same(a, b):
    np.testing.assert_equal(a, b)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Taxi-v4"])
def test_trajectories_are_the_same(run, name):
    same(walked(gym.make(name)), walked(Record(gym.make(name), run)))


@pytest.mark.filterwarnings("ignore::UserWarning")  # its advice: bounds of CartPole's own space
def test_check_env_passes(run):
    check_env(Record(gym.make("CartPole-v1"), run), skip_render_check=True)


def test_returns_lengths_actions_and_observations(run):
    env = Record(gym.make("CartPole-v1"), run, every=100)
    found = walked(env, 500)
    env.close()
    run.flush()
    read = log(run.folder).series
    steps = [one for one in found if len(one) == 5]
    lengths, length = [], 0
    for one in steps:
        length += 1
        if one[2] or one[3]:
            lengths.append(length)
            length = 0
    np.testing.assert_array_equal(read["outcome/return"].values, lengths)
    np.testing.assert_array_equal(read["outcome/episode_length"].values, lengths)
    np.testing.assert_array_equal(read["outcome/return"].steps, np.cumsum(lengths))
    assert (read["throughput/phase_time/episode"].values > 0).all()
    counts = [read[f"policy/action_count/{i}"].values for i in (0, 1)]
    np.testing.assert_array_equal(sum(counts), [100] * 5)
    assert set(read["observation/varying_share"].values) == {1.0}
    assert set(read["observation/finite_share"].values) == {1.0}
    largest = max(np.abs(one[0]).max() for one in found)
    assert read["observation/largest"].values.max() == pytest.approx(largest)
    assert unmapped(run.folder) == set()
    assert notes(run.folder) == []


def test_continuous_actions_at_their_bounds(run):
    env = Record(gym.make("Pendulum-v1"), run, every=4)
    env.reset(seed=0)
    for action in (2.0, -2.0, 0.0, 1.5):
        env.step(np.array([action], np.float32))
    run.flush()
    assert list(log(run.folder).series["policy/action_at_bound_share"].values) == [0.5]


class Sensor(gym.ObservationWrapper):
    """Two of its four numbers stand still; one breaks."""

    def __init__(self, env, breaks_at):
        super().__init__(env)
        self.breaks_at, self.seen = breaks_at, 0

    def observation(self, observation):
        self.seen += 1
        found = observation.copy()
        found[:2] = 0.5
        if self.seen == self.breaks_at:
            found[3] = np.nan
        return found


def test_a_sensor_that_breaks_and_one_that_stands_still(run):
    env = Record(Sensor(gym.make("CartPole-v1"), 8), run, every=10)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(10):
        env.step(env.action_space.sample())
    run.flush()
    (said,) = events(run.folder, "not-a-number")
    assert (said["step"], said["at"], said["value"]) == (7, [3], "nan")
    read = log(run.folder).series
    assert read["observation/varying_share"].values[0] == 0.5
    assert read["observation/finite_share"].values[0] == pytest.approx(1 - 1 / 44)


def vector(mode, n=3):
    def make(i):
        return lambda: gym.make("CartPole-v1", max_episode_steps=20 + 5 * i)

    return SyncVectorEnv([make(i) for i in range(n)], autoreset_mode=mode)


def driven(envs, steps=120):
    envs.action_space.seed(3)
    found = [envs.reset(seed=3)]
    disabled = envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    for _ in range(steps):
        got = envs.step(envs.action_space.sample())
        found.append([np.copy(part) for part in got[:4]])
        over = got[2] | got[3]
        if disabled and over.any():
            found.append(envs.reset(options={"reset_mask": over})[0].copy())
    return found


def ended(found, *, idles):
    """Lengths of the episodes in the order of their ends, counted by hand."""
    lengths, running, over = [], np.zeros(3, int), np.zeros(3, bool)
    for step in (one for one in found if isinstance(one, list)):
        running[~over] += 1
        ends = step[2] | step[3]
        lengths += [int(n) for n in running[ends & ~over]]
        running[ends | over] = 0
        over = ends if idles else np.zeros(3, bool)
    return lengths


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_s_episodes_are_gymnasium_s_own_in_every_mode(run, mode):
    theirs = RecordEpisodeStatistics(vector(mode), buffer_length=1000)
    ours = RecordVector(vector(mode), run, every=60)
    found = driven(theirs)
    same(found, driven(ours))
    ours.close()
    run.flush()
    read = log(run.folder).series
    lengths = ended(found, idles=mode is AutoresetMode.NEXT_STEP)
    assert len(lengths) > 10
    if mode is not AutoresetMode.DISABLED:  # Gymnasium 1.4 forgets all episodes at a masked reset
        assert lengths == list(theirs.length_queue)
    np.testing.assert_array_equal(read["outcome/episode_length"].values, lengths)
    np.testing.assert_array_equal(read["outcome/return"].values, lengths)
    counted = sum(read[f"policy/action_count/{i}"].values.sum() for i in (0, 1))
    assert counted == 120 * 3
    assert max(step for step, _ in rows(run.folder)) == 120 * 3
    assert unmapped(run.folder) == set()
    assert notes(run.folder) == []


def test_dictionaries_of_observations_are_opened(run):
    class Two(gym.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            own = env.observation_space
            pixels = gym.spaces.Box(0, 255, (2, 2), np.uint8)
            self.observation_space = gym.spaces.Dict({"pixels": pixels, "state": own})

        def observation(self, observation):
            return {"pixels": np.zeros((2, 2), np.uint8), "state": observation}

    env = Record(Two(gym.make("CartPole-v1")), run, every=10)
    env.reset(seed=0)
    for step in range(10):
        env.step(step % 2)  # the pole stands that long
    run.flush()
    assert log(run.folder).series["observation/varying_share"].values[0] == 1.0
    assert notes(run.folder) == []


def test_what_cannot_be_recorded_is_noted_once_and_the_environment_goes_on(run):
    class Odd(gym.Wrapper):
        def step(self, action):
            observation, _, *rest = self.env.step(action)
            return observation, "much", *rest

    env = Record(Odd(gym.make("CartPole-v1")), run)
    env.reset(seed=0)
    for _ in range(5):
        assert env.step(0)[1] == "much"
    run.flush()
    assert len([one for one in notes(run.folder) if "not recorded from here on" in one]) >= 1
