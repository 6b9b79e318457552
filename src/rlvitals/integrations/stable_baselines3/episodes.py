"""Log each episode as it ends, from the monitor if there is one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_wrapper

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Episodes:
    """Logs return and length of every episode at the step it ended in."""

    def __init__(self, run: "Run", env: VecEnv | None) -> None:
        """Log into `run`. Episodes of `env` are counted here; None: by its monitor."""
        self.run = run
        self.count = 0
        self.own = env is not None
        n = 0 if env is None else env.num_envs
        self.returns, self.lengths = np.zeros(n), np.zeros(n, dtype=np.int64)
        # The agent's reward may be normalised: count the environment's own.
        self.scaled = None if env is None else unwrap_vec_wrapper(env, VecNormalize)

    def wants(self, step_locals: Mapping[str, Any]) -> bool:
        """Return whether a step is needed: an episode ended, or all steps count. About 1 us."""
        dones = step_locals.get("dones")
        return self.own or not isinstance(dones, np.ndarray) or True in dones.tolist()

    def step(self, step: int, step_locals: dict[str, Any]) -> None:
        """Process one step of all environments, from the locals of `collect_rollouts`."""
        dones = step_locals["dones"]
        if self.own:
            rewards = (
                step_locals["rewards"] if self.scaled is None else self.scaled.get_original_reward()
            )
            self.returns += rewards
            self.lengths += 1
        for i in np.flatnonzero(dones):
            self._finish_episode(step, int(i), step_locals["infos"][i])

    def _finish_episode(self, step: int, i: int, info: dict[str, Any]) -> None:
        if self.own:
            reward, length = float(self.returns[i]), int(self.lengths[i])
            self.returns[i], self.lengths[i] = 0.0, 0
        elif "episode" in info:
            reward, length = float(info["episode"]["r"]), int(info["episode"]["l"])
        else:
            return  # a reset without an end: the monitor continues counting
        self.count += 1
        numbers = {"rollout/episode_return": reward, "rollout/episode_length": length}
        if (success := info.get("is_success")) is not None:
            numbers["rollout/episode_success"] = float(success)
        self.run.log(step, numbers, episode=self.count)
