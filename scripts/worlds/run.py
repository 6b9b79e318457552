"""A run: its settings, its fault, its clock, and the evaluation that its log does not hold."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from worlds.environments import make
from worlds.wrappers import Pay, Senses

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium as gym

EVALUATIONS = 12  # in a run
EVALUATED_EPISODES = 8  # side by side
EVALUATED_STEPS = 400  # at most
CLOCK_RATE = 60.0  # the logs' clock is the processor's, so many times as fast


@dataclass
class Run:
    """A run while it is trained; trainers ask `has` where a fault may set in."""

    world: str
    env_id: str
    steps: int  # environment steps
    seed: int
    settings: dict[str, Any]  # by Stable-Baselines3's names
    folder: Path
    fault: str = ""
    onset: float = 0.0  # share of the run
    n_envs: int = 1
    steps_done: int = 0
    truth: list[tuple[int, float]] = field(default_factory=list)
    paid: list[tuple[int, float]] = field(default_factory=list)  # true returns in training
    noise: np.random.Generator = field(init=False)
    spent: float = 0.0  # CPU seconds of evaluations, which the logs' clock leaves out

    def __post_init__(self) -> None:
        self.noise = np.random.default_rng(1000 + self.seed)
        self.judges = [Senses(make(self.env_id), self) for _ in range(EVALUATED_EPISODES)]

    @property
    def share(self) -> float:
        return min(self.steps_done / self.steps, 1.0)

    def has(self, fault: str) -> bool:
        """Tell whether this fault is the run's and has set in."""
        return self.fault == fault and self.share >= self.onset

    def env(self) -> gym.Env:
        """Build the environment that the trainer meets."""
        return Pay(Senses(make(self.env_id), self), self)

    def rate(self) -> float:
        """Return the learning rate of now."""
        rate = self.settings["learning_rate"]
        if self.has("schedule-ends-early"):
            return 0.0
        if self.settings.get("anneal"):
            return rate * (1.0 - self.share)
        return rate

    def follow(self, act: Callable[[Any], Any]) -> None:
        """Evaluate the policy where a twelfth of the run is over; `act`: batch to actions."""
        due = int(self.share * EVALUATIONS)
        if len(self.truth) > due:
            return
        start, state = time.process_time(), torch.get_rng_state()
        numpy_state = np.random.get_state()
        self.truth.append((self.steps_done, self._evaluate(act)))
        torch.set_rng_state(state)
        np.random.set_state(numpy_state)
        self.spent += time.process_time() - start

    def _evaluate(self, act: Callable[[Any], Any]) -> float:
        count = self.steps_done
        seed = 10_000 + 97 * self.seed
        seen = [env.reset(seed=seed + i)[0] for i, env in enumerate(self.judges)]
        returns, open_ = np.zeros(len(self.judges)), np.ones(len(self.judges), bool)
        for _ in range(EVALUATED_STEPS):
            actions = act(np.array(seen))
            for i in np.flatnonzero(open_):
                seen[i], reward, terminated, truncated, _ = self.judges[i].step(actions[i])
                returns[i] += reward
                open_[i] = not (terminated or truncated)
            if not open_.any():
                break
        self.steps_done = count
        return round(float(returns.mean()), 4)


def random_level(env_id: str) -> float:
    """Return the mean return of random actions."""
    run = Run("", env_id, 1, 0, {}, Path())
    space = run.judges[0].action_space
    space.seed(0)
    returns = []
    for _ in range(4):
        run.seed += 1
        returns.append(run._evaluate(lambda seen: [space.sample() for _ in seen]))
    return round(float(np.mean(returns)), 4)


def network(*sizes: int) -> torch.nn.Sequential:
    """Build a multilayer perceptron with tanh between its layers."""
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])
