"""Faults that sit between the environment and the trainer, and the record of true returns."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

if TYPE_CHECKING:
    from worlds.run import Run

# Faults of what the agent sees and does stay when a policy is evaluated: it meets that world.
# Faults of rewards and ends of episodes do not: an evaluation pays the true reward.


class Senses(gym.Wrapper):
    """Break observations and actions."""

    def __init__(self, env: gym.Env, run: Run) -> None:
        super().__init__(env)
        self.run = run
        self.last: Any = None
        self.queue: deque[Any] = deque(maxlen=7)
        self.stuck = 0

    def reset(self, **options: Any) -> tuple[Any, dict]:
        _follow(self.env, self.run)
        observation, info = self.env.reset(**options)
        self.queue.clear()
        return self._see(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        observation, *others = self.env.step(self._do(action))
        return (self._see(observation), *others)

    def _see(self, seen: Any) -> Any:  # noqa: PLR0911 - a case for each fault
        run = self.run
        self.queue.append(seen)
        if run.has("observation-blank"):
            return np.zeros_like(seen)
        if run.has("observation-frozen-midway"):
            self.last = seen if self.last is None else self.last
            return self.last
        if run.has("observations-exchanged"):
            return np.roll(seen, 1) if np.ndim(seen) else (seen * 7 + 3) % self._states()
        if run.has("observation-late"):
            return self.queue[0]
        if run.has("observation-noise"):
            noise = 3.0 * run.noise.standard_normal(np.shape(seen))
            return (seen + noise).astype(np.float32)
        if run.has("observation-nan") and run.noise.random() < 0.01:
            return np.full_like(seen, np.nan)
        return seen

    def _states(self) -> int:
        return int(self.env.observation_space.n)

    def _do(self, action: Any) -> Any:
        run, space = self.run, self.env.action_space
        if run.has("action-mapping-changed"):
            return (int(action) + 1) % space.n if isinstance(space, spaces.Discrete) else -action
        if run.has("action-ignored"):
            return space.sample()
        if run.has("action-clipped-away"):
            return 0.02 * np.asarray(action)
        return action


class Pay(gym.Wrapper):
    """Break rewards and ends of episodes; note the true return of each episode."""

    def __init__(self, env: gym.Env, run: Run) -> None:
        super().__init__(env)
        self.run = run
        self.count = 0
        self.true_return = 0.0
        self.owed: deque[float] = deque()

    def reset(self, **options: Any) -> tuple[Any, dict]:
        if self.count:
            self.run.paid.append((self.run.steps_done, self.true_return))
        self.count, self.true_return = 0, 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        run = self.run
        run.steps_done += 1
        self.count += 1
        seen, reward, terminated, truncated, info = self.env.step(action)
        self.true_return += float(reward)
        if run.has("end-not-reported") and terminated:
            # The environment is started again unseen; only a time limit ends the episode.
            seen, _ = self.env.reset()
            terminated = False
        if run.has("end-not-reported") and self.count >= 200:
            truncated = True
        if run.has("ends-after-three-steps") and self.count >= 3:
            terminated = True
        return seen, self._pay(float(reward)), terminated, truncated, info

    def _pay(self, reward: float) -> float:  # noqa: PLR0911 - a case for each fault
        run = self.run
        if run.has("reward-sign"):
            return -reward
        if run.has("reward-clipped-away"):
            return float(np.clip(reward, -1e-3, 1e-3))
        if run.has("reward-zero"):
            return 0.0
        if run.has("reward-x1000"):
            return 1000.0 * reward
        if run.has("reward-noise"):
            return reward + 30.0 * float(run.noise.standard_normal())
        if run.has("reward-shuffled"):
            self.owed.append(reward)
            return self.owed.popleft() if len(self.owed) > 60 else 0.0
        if run.has("alive-bonus"):
            return reward * 0.05 + 1.0
        if run.has("reward-nan") and run.noise.random() < 0.02:
            return float("nan")
        return reward


def _follow(env: gym.Env, run: Run) -> None:
    """Give environments that change in the course of a training its share."""
    if hasattr(env.unwrapped, "share"):
        env.unwrapped.share = run.share
