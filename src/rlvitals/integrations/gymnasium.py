"""Gymnasium: wrappers that record episodes, actions and observations, and change nothing.

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
from rlvitals.integrations.guard import Careful

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run

EVERY = 1000  # steps between two points of what is summed up


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Records one environment: each episode as it ends, the rest every `every` steps."""

    def __init__(self, env: gym.Env[Any, Any], run: "Run", *, every: int = EVERY) -> None:
        """Record `env` into `run`, whose steps are then this environment's."""
        super().__init__(env)
        self.careful = Careful(run)
        self.statistics = Statistics(run, env.action_space, 1, every)
        self.episodes, self.total, self.length, self.began = 0, 0.0, 0, perf_counter()

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override] # Gymnasium's is one too
        """The environment's own: whoever makes it again makes it without its recorder."""
        return self.env.spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment: an episode that was not over is forgotten."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.total, self.length, self.began = 0.0, 0, perf_counter()
        self.careful("observations", lambda: self.statistics.observed(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment, and look at what comes back."""
        found = self.env.step(action)
        observation, reward, terminated, truncated, _ = found
        self.careful("steps", lambda: self.statistics.add(observation, action, reward))
        over = bool(terminated or truncated)
        self.careful("episodes", lambda: self._count(float(reward), over=over))
        return found

    def close(self) -> None:
        """Log what is left, and close the environment; the run goes on."""
        self.careful("steps", self.statistics.log)
        super().close()

    def _count(self, reward: float, *, over: bool) -> None:
        self.total += reward
        self.length += 1
        if over:
            self.episodes += 1
            ended = episode(self.total, self.length, perf_counter() - self.began)
            self.statistics.run.log(self.statistics.step, ended, episode=self.episodes)
            self.total, self.length = 0.0, 0


class RecordVector(VectorWrapper[Any, Any, Any, Any, Any]):
    """Records a vector of environments, whatever its autoreset mode."""

    def __init__(self, env: "VectorEnv[Any, Any, Any]", run: "Run", *, every: int = EVERY) -> None:
        """Record `env` into `run`; one step of all counts as `num_envs` steps of the run."""
        super().__init__(env)
        self.careful = Careful(run)
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
        chosen = np.ones(self.num_envs, bool) if mask is None else np.array(mask, bool)
        found = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type] # lists too
        self.careful("episodes", lambda: self._begin(chosen))
        self.careful("observations", lambda: self.statistics.observed(found[0]))
        return found

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all environments, and look at what comes back."""
        found = self.env.step(actions)
        observations, rewards, terminations, truncations, _ = found
        self.careful("steps", lambda: self.statistics.add(observations, actions, rewards))
        self.careful("episodes", lambda: self._count(rewards, terminations, truncations))
        return found

    def close(self, **kwargs: Any) -> None:
        """Log what is left, and close the environments; the run goes on."""
        self.careful("steps", self.statistics.log)
        super().close(**kwargs)

    def _begin(self, chosen: NDArray[np.bool_]) -> None:
        self.totals[chosen] = 0
        self.lengths[chosen] = 0
        self.began[chosen] = perf_counter()
        self.over[chosen] = False

    def _count(self, rewards: Any, terminations: Any, truncations: Any) -> None:
        stepped = ~self.over if self.idles else np.ones(self.num_envs, bool)
        self.totals[stepped] += np.asarray(rewards)[stepped]
        self.lengths[stepped] += 1
        ended = np.asarray(terminations) | np.asarray(truncations)
        for i in np.flatnonzero(ended & stepped):
            self.episodes += 1
            said = episode(
                float(self.totals[i]), int(self.lengths[i]), perf_counter() - self.began[i]
            )
            self.statistics.run.log(self.statistics.step, said, episode=self.episodes)
        if self.idles:
            self._begin(~stepped & ~ended)
            self.over = ended
        else:
            self._begin(ended)
