"""Small environments of the unseen worlds: nothing but the score of the rules rests on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from worlds.small_environments import Small


class Landing(Small):
    """Land softly: an engine against gravity; a crash costs 20, and so does flying off."""

    limit = 60
    width = 2
    actions = spaces.Discrete(2)

    def begin(self) -> None:
        self.height, self.speed = self.np_random.uniform(4, 8), 0.0

    def look(self) -> np.ndarray:
        return np.array([self.height / 8, self.speed], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        self.speed += 0.12 * int(action) - 0.05 + 0.01 * self.np_random.normal()
        self.height += self.speed
        if self.height > 12:
            return -20.0, True
        if self.height > 0:
            return -0.05 * int(action), False
        return (10.0 if self.speed > -0.4 else -20.0), True


class Harvest(Small):
    """Let a crop grow and cut it before it rots: it pays its square, and nothing once rotten."""

    limit = 60
    width = 2
    actions = spaces.Discrete(2)

    def begin(self) -> None:
        self.size, self.weather = 0.0, 0.0

    def look(self) -> np.ndarray:
        return np.array([self.size / 5, self.weather], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        if int(action):
            pay, self.size = self.size**2 / 5 - 0.3, 0.0
            return pay, False
        self.weather = 0.8 * self.weather + 0.3 * self.np_random.normal()
        self.size += max(0.5 + self.weather, 0.0)
        if self.size > 6:
            self.size = 0.0
        return 0.0, False


class Chase(Small):
    """Catch a wandering point on a torus; each step costs a little."""

    limit = 40
    width = 2
    actions = spaces.Discrete(4)
    size = 9

    def begin(self) -> None:
        self.gap = self.np_random.integers(-4, 5, size=2)

    def look(self) -> np.ndarray:
        return self.gap.astype(np.float32) / 4

    def act(self, action: Any) -> tuple[float, bool]:
        move = ((1, 0), (-1, 0), (0, 1), (0, -1))[int(action)]
        drift = self.np_random.integers(-1, 2, size=2) if self.np_random.random() < 0.3 else 0
        self.gap = (self.gap + move + drift + 4) % self.size - 4
        caught = not self.gap.any()
        return (5.0 if caught else -0.1), caught


class Auction(Small):
    """Continuous: bid for goods of a known worth against a rival who bids a share of it."""

    limit = 30
    width = 2
    actions = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def begin(self) -> None:
        self.worth, self.mood = self.np_random.uniform(0, 10), self.np_random.normal()

    def look(self) -> np.ndarray:
        return np.array([self.worth / 10, self.mood], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        bid = 6 * (1 + float(np.clip(np.asarray(action).reshape(-1)[0], -1, 1)))
        rival = self.worth * (0.5 + 0.1 * self.mood) + 0.5 * self.np_random.normal()
        pay = self.worth - bid if bid > rival else 0.0
        self.worth, self.mood = self.np_random.uniform(0, 10), self.np_random.normal()
        return pay, False


class Crossing(Small):
    """Traffic light of two roads: switching costs, waiting cars cost more."""

    limit = 100
    width = 3
    actions = spaces.Discrete(2)

    def begin(self) -> None:
        self.cars, self.green = self.np_random.integers(0, 8, size=2).astype(float), 0

    def look(self) -> np.ndarray:
        return np.array([*self.cars / 20, self.green], np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        cost = 2.0 if int(action) != self.green else 0.0
        self.green = int(action)
        self.cars = np.minimum(self.cars + self.np_random.poisson((1.0, 0.5)), 30)
        if not cost:  # nobody drives while the light changes
            self.cars[self.green] = max(self.cars[self.green] - 3, 0)
        return -(cost + self.cars.sum() / 5), False
