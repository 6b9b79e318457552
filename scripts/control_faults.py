"""Faults of control agents: environment wrappers and training callbacks.

Two small worlds of its own among it, whose reward pays for something else than success.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# --------------------------------------------------------------------------- faults in the world


class FlipReward(gym.RewardWrapper):
    """The sign of the reward is wrong."""

    def reward(self, reward: float) -> float:
        return -reward


class ZeroReward(gym.RewardWrapper):
    """The reward function always answers 0."""

    def reward(self, reward: float) -> float:
        return 0.0 * reward


class HugeReward(gym.RewardWrapper):
    """The reward is in the wrong unit: 1000 times too large."""

    def reward(self, reward: float) -> float:
        return 1000.0 * reward


class NoisyReward(gym.RewardWrapper):
    """Every reward carries Gaussian noise of standard deviation 50."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.noise = np.random.default_rng(7)

    def reward(self, reward: float) -> float:
        return reward + 50.0 * self.noise.standard_normal()


class OutlierReward(gym.RewardWrapper):
    """After 7,680 steps of this copy of the environment one step in 500 pays 10,000."""

    after_steps, every = 7_680, 500

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.seen = 0

    def reward(self, reward: float) -> float:
        self.seen += 1
        strikes = self.seen > self.after_steps and self.seen % self.every == 0
        return 1e4 if strikes else reward


class OneOutlierReward(OutlierReward):
    """Only step 7,700 pays 10,000: a glitch, not a fault."""

    after_steps, every = 0, 7_700


class ConstantObservation(gym.ObservationWrapper):
    """The agent is blind: it sees zeros."""

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros_like(observation)


class NoisyObservation(gym.ObservationWrapper):
    """Gaussian noise of standard deviation 2 drowns the observation."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.noise = np.random.default_rng(7)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        drowned = observation + 2.0 * self.noise.standard_normal(observation.shape)
        return drowned.astype(observation.dtype)


class FlipObservationLater(gym.ObservationWrapper):
    """The sensors change sign once this copy of the environment has made 7,680 steps."""

    after_steps = 7_680

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.seen = 0

    def observation(self, observation: np.ndarray) -> np.ndarray:
        self.seen += 1
        return -observation if self.seen > self.after_steps else observation


class RandomAction(gym.ActionWrapper):
    """The environment ignores the policy and acts at random."""

    def action(self, action: Any) -> Any:
        return type(action)(self.action_space.sample())


class NeverTerminal(gym.Wrapper):
    """The end of an episode is never reported; only the time limit ends it."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, _, truncated, info = self.env.step(action)
        return observation, float(reward), False, truncated, info


# --------------------------------------------------------------------------- two small worlds


class Exam(gym.Env):
    """Ten questions an episode: choose an answer (one of 4) and how long to talk (0 to 7).

    Four numbers are shown; the right answer tells by two bits whether the first two have one sign
    and whether the last two have: no policy is right by accident. `is_success`: at least four of
    the ten were right (22 % by chance). The honest grader pays for right answers, the other one
    for length alone, so return rises while success stays at chance.
    """

    def __init__(self, *, pays_for_length: bool = False) -> None:
        self.pays_for_length = pays_for_length
        self.observation_space = spaces.Box(-4.0, 4.0, (4,), np.float32)
        self.action_space = spaces.MultiDiscrete([4, 8])

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed, options=options)
        self.asked, self.right = 0, 0
        return self._ask(), {}

    def _ask(self) -> np.ndarray:
        self.question = self.np_random.standard_normal(4).astype(np.float32).clip(-4, 4)
        return self.question

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict]:
        same_sign = self.question[::2] * self.question[1::2] > 0
        right = int(action[0]) == 2 * same_sign[0] + same_sign[1]
        self.right += right
        self.asked += 1
        reward = float(action[1]) / 7.0 if self.pays_for_length else float(right)
        is_done = self.asked == 10
        return (
            self._ask(),
            reward,
            is_done,
            False,
            {"is_success": self.right >= 4} if is_done else {},
        )


class Corridor(gym.Env):
    """Sixteen cells, start in cell 3, the goal is cell 15; left or right, at most 64 steps.

    A coin lies in cell 5. Where it is paid once, walking to the goal is best. Where it grows back,
    stepping to and fro over it pays more than the goal, and the goal is forgotten.
    """

    def __init__(self, *, coin_grows_back: bool = False) -> None:
        self.coin_grows_back = coin_grows_back
        self.observation_space = spaces.Box(0.0, 1.0, (17,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed, options=options)
        self.cell, self.steps, self.coin = 3, 0, True
        return self._look(), {}

    def _look(self) -> np.ndarray:
        view = np.zeros(17, np.float32)
        view[self.cell] = 1.0
        view[16] = self.coin
        return view

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.cell = max(0, self.cell + (1 if action == 1 else -1))
        self.steps += 1
        at_goal, reward = self.cell == 15, -0.01
        if self.cell == 5 and self.coin:
            reward += 0.5
            self.coin = self.coin_grows_back
        reward += 1.0 * at_goal
        info = {"is_success": at_goal} if at_goal or self.steps == 64 else {}
        return self._look(), reward, at_goal, self.steps >= 64, info


OWN_WORLDS: Mapping[str, Callable[[], gym.Env]] = {
    "Exam": Exam,
    "ExamPaidByLength": lambda: Exam(pays_for_length=True),
    "Corridor": Corridor,
    "CorridorCoinGrowsBack": lambda: Corridor(coin_grows_back=True),
}


# --------------------------------------------------------------------------- what acts during a run


class GradNorm(BaseCallback):
    """Log `train/grad_norm`: the global norm before clipping, averaged over a row's updates."""

    def _on_training_start(self) -> None:
        self.squares: list[torch.Tensor] = []
        self.norms: list[float] = []
        for weight in self.model.policy.parameters():
            weight.register_post_accumulate_grad_hook(
                lambda w: self.squares.append(w.grad.detach().square().sum())
            )
        self.model.policy.optimizer.register_step_pre_hook(self._on_update)

    def _on_update(self, *_: object) -> None:
        self.norms.append(float(torch.stack(self.squares).sum().sqrt()))
        self.squares.clear()

    def _on_rollout_end(self) -> None:
        if self.norms:
            self.logger.record_mean("train/grad_norm", float(np.mean(self.norms)))
            self.norms.clear()

    def _on_step(self) -> bool:
        return True


class Advantages(BaseCallback):
    """Log mean and standard deviation of each rollout's advantages, not normalised."""

    def _on_rollout_end(self) -> None:
        advantages = self.model.rollout_buffer.advantages
        self.logger.record_mean("advantage_mean", float(advantages.mean()))
        self.logger.record_mean("advantage_std", float(advantages.std()))

    def _on_step(self) -> bool:
        return True


class SleepInSecondHalf(BaseCallback):
    """Each environment step of the second half takes 8 ms longer."""

    def _on_step(self) -> bool:
        if self.num_timesteps > self.locals["total_timesteps"] / 2:
            time.sleep(0.008)
        return True


class NanWeight(BaseCallback):
    """One weight becomes NaN at 60 % of the run."""

    def _on_rollout_end(self) -> None:
        if self.num_timesteps > 0.6 * self.locals["total_timesteps"]:
            with torch.no_grad():
                next(self.model.policy.parameters())[0, 0] = float("nan")

    def _on_step(self) -> bool:
        return True
