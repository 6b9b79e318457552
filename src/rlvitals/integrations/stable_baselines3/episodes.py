"""Episodes one by one, as they end: from the monitor where there is one, else counted here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_wrapper

if TYPE_CHECKING:
    from rlvitals.tracking.run import Run


class Episodes:
    """Logs return and length of every episode at the step it ended in."""

    def __init__(self, run: "Run", env: VecEnv | None) -> None:
        """Log into `run`. `env` is counted here; None where its monitor counts."""
        self.run = run
        self.count = 0
        self.own = env is not None
        n = 0 if env is None else env.num_envs
        self.returns, self.lengths = np.zeros(n), np.zeros(n, dtype=np.int64)
        # What agents are given may be scaled: the environment's own reward is what counts.
        self.scaled = None if env is None else unwrap_vec_wrapper(env, VecNormalize)

    def wants(self, found: Mapping[str, Any]) -> bool:
        """Tell in a microsecond whether a step is to be looked at: one ended, or all count."""
        dones = found.get("dones")
        return self.own or not isinstance(dones, np.ndarray) or True in dones.tolist()

    def step(self, step: int, found: dict[str, Any]) -> None:
        """Look at one step of all environments, as the collecting function's locals have it."""
        dones = found["dones"]
        if self.own:
            rewards = found["rewards"] if self.scaled is None else self.scaled.get_original_reward()
            self.returns += rewards
            self.lengths += 1
        for i in np.flatnonzero(dones):
            self._over(step, int(i), found["infos"][i])

    def _over(self, step: int, i: int, info: dict[str, Any]) -> None:
        if self.own:
            reward, length = float(self.returns[i]), int(self.lengths[i])
            self.returns[i], self.lengths[i] = 0.0, 0
        elif "episode" in info:
            reward, length = float(info["episode"]["r"]), int(info["episode"]["l"])
        else:
            return  # a reset without an end: the monitor goes on counting
        self.count += 1
        ended = {"rollout/episode_return": reward, "rollout/episode_length": length}
        if (success := info.get("is_success")) is not None:
            ended["rollout/episode_success"] = float(success)
        self.run.log(step, ended, episode=self.count)
