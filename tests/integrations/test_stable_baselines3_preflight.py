"""The preflight of Stable-Baselines3: each fault is found, and named with variable and value."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from held import events
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

import rlvitals
from rlvitals.integrations.stable_baselines3 import Preflight

PPO_OF = {"n_steps": 64, "batch_size": 32, "n_epochs": 1, "seed": 0, "device": "cpu"}


def flown(env, run=None, policy=None, steps=64, **more):
    check = Preflight(run, **more)
    PPO("MlpPolicy", env, policy_kwargs=policy, **PPO_OF).learn(steps, callback=check)
    return {one.name: one.outcome for one in check.report.failed}, check.report


class OneSeed(gym.Wrapper):
    """Resets with the same seed as every other environment of its kind."""

    def __init__(self, env):
        super().__init__(env)
        self.own = np.random.default_rng(7)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - the seed is what is ignored
        return self.env.reset(seed=int(self.own.integers(1000)), options=options)


def test_environments_of_one_seed(capsys):
    env = make_vec_env("CartPole-v1", 3, wrapper_class=OneSeed)
    found, _ = flown(env, steps=64 * 3)
    assert found["seeds-differ"].variable == "first observation of environment 1"
    assert "environments 0 and 1 begin alike" in found["seeds-differ"].why
    assert "not ready" in capsys.readouterr().err


class Frozen(gym.ObservationWrapper):
    """A sensor that has died."""

    def observation(self, observation):
        return np.full_like(observation, 0.25)


def test_observations_that_never_change(tmp_path):
    run = rlvitals.start(tmp_path / "run")
    found, report = flown(Frozen(gym.make("CartPole-v1")), run)
    run.finish()
    assert (found["observations-vary"].variable, found["observations-vary"].value) == (
        "observations",
        "0.25",
    )
    (event,) = events(run.folder, "preflight")
    assert event["failed"] == [one.name for one in report.failed]
    first = rlvitals.diagnose(run.folder).tldr[0]
    assert (first.topic, first.sign) == ("preflight", "bad")
    assert first.text.startswith("The preflight failed: ")
    assert "observations-vary: observations = 0.25: " in first.text


def test_dropout_moves_the_ratio_off_one(capsys):
    class Forgetful(torch.nn.ReLU):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(super().forward(x))

    found, _ = flown(gym.make("CartPole-v1"), policy={"activation_fn": Forgetful})
    ratio = found["ratio-is-one"]
    assert ratio.variable.startswith("ratio in training mode[")
    assert float(ratio.value) != 1
    assert "dropout" in ratio.why
    assert "ratio in training mode" in capsys.readouterr().err


def test_weights_that_nothing_trains():
    check = Preflight()
    model = PPO("MlpPolicy", "CartPole-v1", learning_rate=0.0, **PPO_OF)
    model.learn(64, callback=check)
    (found,) = [one.outcome for one in check.report.failed]
    assert (found.variable, found.value) == ("change of the weights", "0")


def test_check_env_runs_on_an_environment_of_its_own():
    found, report = flown(
        gym.make("CartPole-v1"), make_env=lambda: gym.make("CartPole-v1", disable_env_checker=True)
    )
    assert found == {}
    assert "check-env" in {one.name for one in report.passed}


def test_an_environment_without_a_name_is_said_not_passed():
    class Nameless(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
            super().reset(seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action):
            return (
                self.observation_space.sample(),
                float(action),
                self.np_random.random() < 0.1,
                False,
                {},
            )

    found, report = flown(DummyVecEnv([Nameless]))
    assert found == {}
    (left,) = [one for one in report.unchecked if one.name == "check-env"]
    assert "give make_env" in left.outcome.why


def test_stop_raises_with_variable_and_value():
    with pytest.raises(rlvitals.VitalsError, match=r"observations = 0.25"):
        flown(Frozen(gym.make("CartPole-v1")), stop=True)


def test_a_training_too_short_for_an_update_is_not_called_sound():
    check = Preflight()
    PPO("MlpPolicy", "CartPole-v1", **PPO_OF).learn(0, callback=check)
    assert check.report.ok  # the environment was checked
    assert "weights-moved" not in {one.name for one in check.report.passed}
