"""Small environments of several kinds: mazes, bandits, markets, queues, points to be moved."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Small(gym.Env):
    """Base of the environments below: counts the steps and truncates at `limit`."""

    limit = 50
    actions: spaces.Space = spaces.Discrete(4)
    width = 4

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.width,), np.float32)
        self.action_space = self.actions
        self.share = 0.0  # of the training, set by the recorder
        self.count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed, options=options)
        self.count = 0
        self.begin()
        return self.look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.count += 1
        reward, terminated = self.act(action)
        truncated = self.count >= self.limit and not terminated
        return self.look(), float(reward), terminated, truncated, {}

    def begin(self) -> None:
        raise NotImplementedError

    def look(self) -> np.ndarray:
        raise NotImplementedError

    def act(self, action: Any) -> tuple[float, bool]:
        raise NotImplementedError


class Maze(Small):
    """Sparse maze: 1 at the goal, nothing elsewhere; the position is one-hot."""

    rows = ("....", ".##.", "..#.", "#..G")
    limit = 40
    width = 16
    moves = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def begin(self) -> None:
        self.place = (0, 0)

    def look(self) -> np.ndarray:
        seen = np.zeros(self.width, np.float32)
        seen[self.place[0] * len(self.rows[0]) + self.place[1]] = 1.0
        return seen

    def act(self, action: Any) -> tuple[float, bool]:
        row, column = (a + b for a, b in zip(self.place, self.moves[int(action)], strict=True))
        inside = 0 <= row < len(self.rows) and 0 <= column < len(self.rows[0])
        if inside and self.rows[row][column] != "#":
            self.place = (row, column)
        goal = self.rows[self.place[0]][self.place[1]] == "G"
        return float(goal), goal


class WideMaze(Maze):
    """Larger sparse maze: healthy runs are flat for a long time and then take off."""

    rows = ("......", ".####.", ".#....", ".#.##.", ".#.#G.", "...##.")
    limit = 80
    width = 36


class Lessons(Small):
    """Curriculum: the line to the goal gets longer at 1/3 and 2/3 of the training."""

    limit = 60
    width = 3
    actions = spaces.Discrete(2)

    @property
    def stage(self) -> int:
        return min(int(3 * self.share), 2)

    def begin(self) -> None:
        self.goal = (4, 8, 14)[self.stage] * self.np_random.choice((-1, 1))
        self.place = 0

    def look(self) -> np.ndarray:
        return np.array([self.place / 10, np.sign(self.goal), self.stage], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        slip = self.np_random.random() < 0.1
        self.place += (2 * int(action) - 1) * (-1 if slip else 1)
        return (10.0, True) if self.place == self.goal else (-0.5, False)


class Bandit(Small):
    """Contextual bandit: episodes of one step, noisy pay."""

    limit = 1
    width = 5
    actions = spaces.Discrete(5)
    pay = np.random.default_rng(3).normal(size=(5, 5))

    def begin(self) -> None:
        self.context = self.np_random.normal(size=5)

    def look(self) -> np.ndarray:
        return self.context.astype(np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        return float(self.context @ self.pay[int(action)] + self.np_random.normal()), True


class Market(Small):
    """Trading: short, flat or long in a noisy, slightly predictable price."""

    limit = 100
    width = 4
    actions = spaces.Discrete(3)

    def begin(self) -> None:
        self.moves = list(self.np_random.normal(size=4))

    def look(self) -> np.ndarray:
        return np.array(self.moves[-4:], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.moves.append(0.35 * self.moves[-1] + self.np_random.normal())
        position = int(action) - 1
        return position * self.moves[-1] - 0.02 * abs(position), False


class Balance(Small):
    """Long horizon: 400 steps of holding a drifting point near 0; pays 1 a step there."""

    limit = 400
    width = 2
    actions = spaces.Discrete(3)

    def begin(self) -> None:
        self.place, self.speed = self.np_random.normal(size=2) * (2.0, 0.1)

    def look(self) -> np.ndarray:
        return np.array([self.place / 3, self.speed], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.speed = 0.9 * self.speed + 0.15 * (int(action) - 1) + 0.05 * self.np_random.normal()
        self.place = float(np.clip(self.place + self.speed, -6, 6))
        return float(abs(self.place) < 0.5), False


class Reach(Small):
    """Continuous: move a point to a target; pays minus the distance."""

    limit = 40
    width = 4
    actions = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def begin(self) -> None:
        self.place = self.np_random.uniform(-1, 1, 2)
        self.goal = self.np_random.uniform(-1, 1, 2)

    def look(self) -> np.ndarray:
        return np.concatenate([self.place, self.goal]).astype(np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.place = np.clip(self.place + 0.15 * np.clip(action, -1, 1), -1.5, 1.5)
        return -float(np.linalg.norm(self.place - self.goal)), False


class Thermostat(Small):
    """Continuous and noisy: hold a temperature with one heater against changing weather."""

    limit = 60
    width = 3
    actions = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def begin(self) -> None:
        self.inside = self.np_random.normal() * 5
        self.outside, self.wish = self.np_random.normal() * 5, self.np_random.normal() * 2

    def look(self) -> np.ndarray:
        return np.array([self.inside, self.outside, self.wish], np.float32) / 5

    def act(self, action: Any) -> tuple[float, bool]:
        self.outside += self.np_random.normal() * 0.3
        heat = 4 * float(np.clip(np.asarray(action).reshape(-1)[0], -1, 1))
        self.inside += 0.2 * (self.outside - self.inside) + heat + self.np_random.normal() * 0.2
        return 2000 / self.limit - abs(self.inside - self.wish), False  # returns near 2,000


class Inventory(Small):
    """Order goods against random demand: all rewards are costs, returns near -1,000."""

    limit = 40
    width = 2
    actions = spaces.Discrete(6)

    def begin(self) -> None:
        self.stock, self.season = 5.0, self.np_random.uniform(0, 6)

    def look(self) -> np.ndarray:
        return np.array([self.stock / 10, np.sin(self.season)], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.season += 0.3
        demand = self.np_random.poisson(4 + 3 * np.sin(self.season))
        self.stock = min(self.stock + 2 * int(action), 20.0)
        missing = max(demand - self.stock, 0.0)
        self.stock = max(self.stock - demand, 0.0)
        return -(20 + 5 * missing + self.stock), False


class Queues(Small):
    """Send each job to one of three servers of unequal speed; pays minus the waiting."""

    limit = 120
    width = 3
    actions = spaces.Discrete(3)
    speeds = np.array([1.2, 0.7, 0.35])

    def begin(self) -> None:
        self.lengths = np.zeros(3)

    def look(self) -> np.ndarray:
        return (self.lengths / 10).astype(np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.lengths[int(action)] += self.np_random.exponential(2.0)
        self.lengths = np.clip(self.lengths - self.speeds, 0.0, 40.0)
        return -float(self.lengths.sum()) / 10, False


class Duel(Small):
    """Self-play: guess the hand of an opponent, who changes habits at half of the training."""

    limit = 30
    width = 6
    actions = spaces.Discrete(3)

    def begin(self) -> None:
        self.past = list(self.np_random.integers(0, 3, 2))

    def look(self) -> np.ndarray:
        return np.eye(3, dtype=np.float32)[self.past[-2:]].reshape(-1)

    def act(self, action: Any) -> tuple[float, bool]:
        habit = (self.past[-1] + 1) % 3 if self.share < 0.5 else (self.past[-2] + 2) % 3
        hand = habit if self.np_random.random() < 0.8 else self.np_random.integers(0, 3)
        self.past.append(int(hand))
        return (1.0 if int(action) == hand else -0.5), False


class Hold(Small):
    """Saturated from the start: nearly every action is right."""

    limit = 30
    width = 2
    actions = spaces.Discrete(4)

    def begin(self) -> None:
        self.cue = self.np_random.normal(size=2)

    def look(self) -> np.ndarray:
        return self.cue.astype(np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.cue = self.np_random.normal(size=2)
        wrong = int(action) == 3 and self.cue[0] > 2.5
        return 0.0 if wrong else 1.0, False


class Cues(Small):
    """Name one of eight cues; the match pays 1."""

    limit = 20
    width = 8
    actions = spaces.Discrete(8)
    order = np.random.default_rng(5).permutation(8)

    def begin(self) -> None:
        self.cue = int(self.np_random.integers(8))

    def look(self) -> np.ndarray:
        return np.eye(8, dtype=np.float32)[self.cue]

    def act(self, action: Any) -> tuple[float, bool]:
        right = int(action) == self.order[self.cue]
        self.cue = int(self.np_random.integers(8))
        return float(right), False
