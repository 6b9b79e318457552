"""Build the environment of a world by its name, with a vector as its observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from worlds import small_environments, unseen_environments
from worlds.small_environments import Small


class OneHot(gym.ObservationWrapper):
    """Turn the numbered states of a toy-text environment into one-hot vectors."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.sizes = (
            [env.observation_space.n]
            if isinstance(env.observation_space, spaces.Discrete)
            else [part.n for part in env.observation_space]
        )
        self.observation_space = spaces.Box(0, 1, (sum(self.sizes),), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        numbers = np.atleast_1d(observation)
        return np.concatenate(
            [np.eye(n, dtype=np.float32)[int(i)] for n, i in zip(self.sizes, numbers, strict=True)]
        )


class Flat(gym.ObservationWrapper):
    """Flatten an image into floats."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        size = int(np.prod(env.observation_space.shape))
        self.observation_space = spaces.Box(0, np.inf, (size,), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return np.asarray(observation, np.float32).reshape(-1)


OWN = {
    name: cls
    for module in (small_environments, unseen_environments)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Small) and cls is not Small
}


def make(env_id: str) -> gym.Env:
    """Build an environment with a vector observation (a number for `tabular/<id>`)."""
    if env_id in OWN:
        return OWN[env_id]()
    if env_id.startswith("tabular/"):
        env = gym.make(env_id.removeprefix("tabular/"), disable_env_checker=True)
        return gym.wrappers.TimeLimit(env, 100) if "Cliff" in env_id else env
    if env_id.startswith("MinAtar/"):
        return gym.wrappers.TimeLimit(Flat(_minatar(env_id)), 300)
    if env_id.startswith("MiniGrid"):
        import minigrid  # noqa: F401 - registers its environments
        from minigrid.wrappers import ImgObsWrapper

        env = gym.make(env_id, max_steps=60, disable_env_checker=True)
        return Flat(ImgObsWrapper(env))
    options = {"is_slippery": False} if env_id == "FrozenLake-v1" else {}
    env = gym.make(env_id, disable_env_checker=True, **options)
    if env_id.startswith("Cliff"):
        env = gym.wrappers.TimeLimit(env, 100)
    box = isinstance(env.observation_space, spaces.Box)
    return env if box else OneHot(env)


def _minatar(env_id: str) -> gym.Env:
    from minatar.gym import BaseEnv

    return BaseEnv(game=env_id.split("/")[1], use_minimal_action_set=True)
