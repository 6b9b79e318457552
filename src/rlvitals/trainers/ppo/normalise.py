"""Running moments of what flows through training, and the two normalisers built on them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPSILON = 1e-8  # under the root: a feature that never varies stays 0


class Moments:
    """Mean and variance of all rows seen so far (Chan, Golub and LeVeque 1979, merged by batch)."""

    def __init__(self, *shape: int) -> None:
        """Start with no row seen."""
        self.mean: Floats = np.zeros(shape)
        self.var: Floats = np.ones(shape)
        self.count = 0.0

    def update(self, rows: NDArray[Any]) -> None:
        """Take in `rows` of shape [n, *shape]."""
        if not len(rows):
            return
        rows = np.asarray(rows, np.float64)
        n = len(rows)
        mean = np.add.reduce(rows) / n  # numpy's own mean and var cost three times that
        away = rows - mean
        var = np.add.reduce(away * away) / n
        total = self.count + n
        shift = mean - self.mean
        squares = self.var * self.count + var * n + shift * shift * (self.count * n / total)
        self.mean = self.mean + shift * (n / total)
        self.var = squares / total
        self.count = total


class ObservationNormaliser:
    """Centre and scale each feature by its running moments, and clip at `clip` deviations."""

    def __init__(self, features: int, *, enabled: bool = True, clip: float = 10.0) -> None:
        """Normalise rows of `features` numbers; disabled, rows pass as they are."""
        self.moments, self.enabled, self.clip = Moments(features), enabled, clip
        self.frozen = False

    def __call__(self, rows: NDArray[Any], *, learn: bool) -> NDArray[np.float32]:
        """Return float32 [n, features]; with `learn` the moments take the rows in first."""
        if not self.enabled:
            return np.asarray(rows, np.float32)
        if learn and not self.frozen:
            self.moments.update(rows)
        scaled = (rows - self.moments.mean) / np.sqrt(self.moments.var + EPSILON)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class RewardNormaliser:
    """Divide rewards by the running deviation of the discounted return.

    The mean is not taken away: a good reward keeps its sign (Engstrom et al. 2020, section 3).
    """

    def __init__(
        self, envs: int, gamma: float, *, enabled: bool = True, clip: float = 10.0
    ) -> None:
        """Follow `envs` discounted returns."""
        self.moments, self.gamma, self.enabled, self.clip = Moments(), gamma, enabled, clip
        self.returns: Floats = np.zeros(envs)
        self.frozen = False

    def __call__(self, rewards: Floats, done: NDArray[np.bool_]) -> Floats:
        """Return the scaled rewards [envs] of one step; a `done` environment's return restarts."""
        if not self.enabled:
            return rewards
        self.returns = self.returns * self.gamma + rewards
        if not self.frozen:
            self.moments.update(self.returns)
        self.returns[done] = 0.0
        return np.clip(rewards / np.sqrt(self.moments.var + EPSILON), -self.clip, self.clip)
