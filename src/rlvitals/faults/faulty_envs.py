"""Environment wrappers that inject faults from a given step on.

Each wraps a Gymnasium environment between the measurement of the true return and the trainer: the
logged return is that of the faulty environment.
"""

import time
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rlvitals.faults.fault import Clock

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class TrueReturn(gym.Wrapper[Any, Any, Any, Any]):
    """Report the true return of an episode in `info["true_return"]` at its end."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self.paid, self.over = 0.0, False
        return self.env.reset(**options)

    def step(self, action: Any) -> Step:
        """Add up the reward; what comes after the end does not count."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not self.over:
            self.paid += float(reward)
            self.over = terminated or truncated
            if self.over:
                info["true_return"] = self.paid
        return obs, float(reward), terminated, truncated, info


class World(gym.Wrapper[Any, Any, Any, Any]):
    """Base class of the faults: passes everything through until the onset."""

    def __init__(self, env: gym.Env[Any, Any], clock: Clock, seed: int) -> None:
        super().__init__(env)
        self.clock = clock
        self.random = np.random.default_rng(seed)
        self.env.action_space.seed(seed)
        self.first: NDArray[np.float32]

    def action(self, action: Any) -> Any:
        """Return the action that is carried out."""
        return action

    def reward(self, reward: float) -> float:
        """Return the reward for the agent."""
        return reward

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the observation for the agent."""
        return obs

    def ends(self, terminated: bool) -> bool:  # noqa: FBT001 - Gymnasium's own
        """Return `terminated` for the agent."""
        return terminated

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self.first, info = self.env.reset(**options)
        self.count = 0
        return (self.observation(self.first) if self.clock.struck else self.first), info

    def step(self, action: Any) -> Step:
        """Step the environment; from the onset on, apply the fault."""
        if not self.clock.struck:
            obs, reward, terminated, truncated, info = self.env.step(action)
            return obs, float(reward), terminated, truncated, info
        self.count += 1
        obs, reward, terminated, truncated, info = self.env.step(self.action(action))
        paid_reward = self.reward(float(reward))
        return self.observation(obs), paid_reward, self.ends(terminated), truncated, info


class FlippedReward(World):
    """The sign of the reward is wrong."""

    def reward(self, reward: float) -> float:
        """Return the negative."""
        return -reward


class ZeroReward(World):
    """The reward function always answers 0."""

    def reward(self, reward: float) -> float:  # noqa: ARG002
        """Return nothing."""
        return 0.0


class HugeReward(World):
    """The reward is in the wrong unit: 1,000 times too large."""

    def reward(self, reward: float) -> float:
        """Return it in the wrong unit."""
        return 1000.0 * reward


class NoisyReward(World):
    """Each reward carries Gaussian noise of standard deviation 50."""

    def reward(self, reward: float) -> float:
        """Return it with noise."""
        return reward + 50.0 * float(self.random.standard_normal())


class OutlierReward(World):
    """One step in 500 pays 10,000."""

    def reward(self, reward: float) -> float:
        """Return a glitch now and then."""
        return 1e4 if self.random.random() < 1 / 500 else reward


class ConstantObservation(World):
    """The agent is blind: it sees zeros."""

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return zeros."""
        return np.zeros_like(obs)


class NoisyObservation(World):
    """Gaussian noise of standard deviation 2 drowns what the agent sees."""

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return it with noise."""
        noise = 2.0 * self.random.standard_normal(obs.shape)
        return np.asarray(obs + noise, dtype=np.float32)


class StaleObservation(World):
    """The observation is never updated: the agent sees its episode's first one."""

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:  # noqa: ARG002
        """Return the first observation again."""
        return self.first


class FlippedObservation(World):
    """The sensors have changed sign."""

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the negative."""
        return np.asarray(-obs, dtype=np.float32)


class RandomAction(World):
    """The environment does not do what the policy says, but anything."""

    def action(self, action: Any) -> Any:  # noqa: ARG002
        """Return a random action."""
        return self.action_space.sample()


class SwappedAction(World):
    """Left is right and right is left."""

    def action(self, action: Any) -> Any:
        """Return the opposite."""
        if isinstance(self.action_space, gym.spaces.Discrete):
            return type(action)(self.action_space.n - 1 - int(action))
        return -action


class StuckAction(World):
    """The actuator is stuck: the first action, or none, is carried out."""

    def action(self, action: Any) -> Any:
        """Return the same action whatever was chosen."""
        return action * 0


class NeverTerminal(World):
    """The end of an episode is never reported: only the time limit ends it."""

    def ends(self, terminated: bool) -> bool:  # noqa: ARG002, FBT001
        """Return that it goes on."""
        return False


class AlwaysTerminal(World):
    """Report the end of the episode after ten steps."""

    def ends(self, terminated: bool) -> bool:  # noqa: FBT001
        """Return that it is over."""
        return terminated or self.count >= 10


class SlowStep(World):
    """Each step of the environment takes 0.6 ms of processor time longer."""

    def observation(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return it late."""
        deadline = time.process_time() + 6e-4
        while time.process_time() < deadline:
            pass
        return obs
