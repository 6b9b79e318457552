"""Wrappers for Gymnasium that record episodes, actions and observations.

`env = Record(gym.make("CartPole-v1"), run)`, or of several environments
`envs = RecordVector(gym.make_vec("CartPole-v1", 8), run)`.
"""

from time import perf_counter
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from rlvitals.integrations.environment_statistics import Statistics, episode
from rlvitals.integrations.guard import Guard

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

DEFAULT_LOG_STEPS = 1000  # environment steps between two summaries


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Records one environment: each episode as it ends, the rest every `every` steps."""

    def __init__(
        self, env: gym.Env[Any, Any], run: "Run", *, every: int = DEFAULT_LOG_STEPS
    ) -> None:
        """Record `env` into `run`; the run counts this environment's steps."""
        super().__init__(env)
        self.guard = Guard(run)
        self.statistics = Statistics(run, env.action_space, 1, every)
        self.episodes, self.total, self.length, self.began = 0, 0.0, 0, perf_counter()

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override] # Gymnasium's is one too
        """The environment's own spec, without the recorder."""
        return self.env.spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and discard an unfinished episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.total, self.length, self.began = 0.0, 0, perf_counter()
        self.guard("observations", lambda: self.statistics.add_observation(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment and record the result."""
        result = self.env.step(action)
        observation, reward, terminated, truncated, _ = result
        self.guard("steps", lambda: self.statistics.add(observation, action, reward))
        is_over = bool(terminated or truncated)
        self.guard("episodes", lambda: self._count(float(reward), is_over=is_over))
        return result

    def close(self) -> None:
        """Log the last summary and close the environment; the run stays open."""
        self.guard("steps", self.statistics.log)
        super().close()

    def _count(self, reward: float, *, is_over: bool) -> None:
        self.total += reward
        self.length += 1
        if is_over:
            self.episodes += 1
            numbers = episode(self.total, self.length, perf_counter() - self.began)
            self.statistics.run.log(self.statistics.step, numbers, episode=self.episodes)
            self.total, self.length = 0.0, 0


class RecordVector(VectorWrapper[Any, Any, Any, Any, Any]):
    """Records a vector of environments, whatever its autoreset mode."""

    def __init__(
        self, env: "VectorEnv[Any, Any, Any]", run: "Run", *, every: int = DEFAULT_LOG_STEPS
    ) -> None:
        """Record `env` into `run`; one step of all counts as `num_envs` steps of the run."""
        super().__init__(env)
        self.guard = Guard(run)
        self.statistics = Statistics(run, env.single_action_space, env.num_envs, every)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        # In the step after an episode's end the action is ignored and the environment reset.
        self.idles = AutoresetMode(mode) is not AutoresetMode.SAME_STEP
        self.episodes = 0
        self.totals = np.zeros(env.num_envs)
        self.lengths = np.zeros(env.num_envs, dtype=np.int64)
        self.began = np.full(env.num_envs, perf_counter())
        self.over = np.zeros(env.num_envs, dtype=bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`."""
        mask = (options or {}).get("reset_mask")
        reset_mask = np.ones(self.num_envs, bool) if mask is None else np.array(mask, bool)
        result = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type] # lists too
        self.guard("episodes", lambda: self._begin(reset_mask))
        self.guard("observations", lambda: self.statistics.add_observation(result[0]))
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all environments and record the result."""
        result = self.env.step(actions)
        observations, rewards, terminations, truncations, _ = result
        self.guard("steps", lambda: self.statistics.add(observations, actions, rewards))
        self.guard("episodes", lambda: self._count(rewards, terminations, truncations))
        return result

    def close(self, **kwargs: Any) -> None:
        """Log the last summary and close the environments; the run stays open."""
        self.guard("steps", self.statistics.log)
        super().close(**kwargs)

    def _begin(self, mask: NDArray[np.bool_]) -> None:
        self.totals[mask] = 0
        self.lengths[mask] = 0
        self.began[mask] = perf_counter()
        self.over[mask] = False

    def _count(self, rewards: Any, terminations: Any, truncations: Any) -> None:
        is_stepped = ~self.over if self.idles else np.ones(self.num_envs, bool)
        self.totals[is_stepped] += np.asarray(rewards)[is_stepped]
        self.lengths[is_stepped] += 1
        is_over = np.asarray(terminations) | np.asarray(truncations)
        for i in np.flatnonzero(is_over & is_stepped):
            self.episodes += 1
            numbers = episode(
                float(self.totals[i]), int(self.lengths[i]), perf_counter() - self.began[i]
            )
            self.statistics.run.log(self.statistics.step, numbers, episode=self.episodes)
        if self.idles:
            self._begin(~is_stepped & ~is_over)
            self.over = is_over
        else:
            self._begin(is_over)
