"""Facts of environments: found under every spelling, and consistent with themselves."""

import math

import pytest

from rlvitals.metrics.environments import ENVIRONMENTS, lookup


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "CartPole"),
        ("CartPole-v0", "CartPole-v0"),
        ("phys2d/CartPole-v1", "CartPole"),
        ("LunarLander-v2", "LunarLander"),
        ("LunarLander-v3", "LunarLander"),
        ("LunarLanderContinuous-v2", "LunarLanderContinuous"),
        ("ALE/Breakout-v5", "Breakout"),
        ("BreakoutNoFrameskip-v4", "Breakout"),
        ("BreakoutDeterministic-v0", "Breakout"),
        ("Breakout-ram-v4", "Breakout"),
        ("Pong-ramNoFrameskip-v4", "Pong"),
        ("QbertNoFrameskip-v4", "Qbert"),
        ("HalfCheetah-v2", "HalfCheetah"),
        ("HalfCheetah-v5", "HalfCheetah"),
        ("AntBulletEnv-v0", "AntBulletEnv"),
        ("procgen:procgen-coinrun-v0", "procgen-coinrun"),
        ("MiniGrid-Empty-8x8-v0", "MiniGrid"),
        ("MiniGrid-DoorKey-16x16-v0", "MiniGrid"),
        ("mountaincar-V0", "MountainCar"),
    ],
)
def test_an_environment_is_found_whatever_its_version_and_namespace(env_id, name):
    assert lookup(env_id).name == name


@pytest.mark.parametrize("env_id", ["", "MyCartPole-v1", "CartPole-v1-hard", "None", "-v1"])
def test_an_unknown_environment_is_not_guessed(env_id):
    assert lookup(env_id) is None


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=lambda e: e.name)
def test_facts_do_not_contradict_each_other(env):
    assert env.source
    assert (env.actions is None) != (env.action_dim is None)
    levels = (env.random_return, env.best_return, env.solved_return)
    low = -math.inf if env.min_return is None else env.min_return
    high = math.inf if env.max_return is None else env.max_return
    assert low < high
    assert all(level is None or low <= level <= high for level in levels)
    if env.way is not None:
        assert env.way > 0, "a solved environment pays more than chance"


def test_names_are_unique():
    names = [env.name.lower() for env in ENVIRONMENTS]
    assert len(names) == len(set(names)) >= 60


@pytest.mark.parametrize("version", ["0", "1"])
def test_cartpole_bounds_show_a_flipped_reward(version):
    assert lookup(f"CartPole-v{version}").min_return > 0


def test_the_top_is_what_can_be_reached_and_not_a_bound_nobody_reaches():
    assert lookup("CartPole-v1").top == 500
    assert lookup("MountainCar-v0").top == -101
    assert lookup("HalfCheetah-v4").top == 4800
    assert lookup("Humanoid-v4").top is None


def test_max_entropy_is_the_log_of_the_actions():
    assert lookup("Acrobot-v1").max_entropy == pytest.approx(math.log(3))
    assert lookup("Pendulum-v1").max_entropy is None
