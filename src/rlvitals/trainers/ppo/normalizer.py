"""Running moments, and the normalisers of observations and rewards."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VARIANCE_EPSILON = 1e-8  # under the root: a feature that never varies stays 0


class Moments:
    """Mean and variance of all rows seen so far (Chan, Golub and LeVeque 1979, merged by batch).

    `replica_shape` is (N, F) where the first N * F numbers of a row are F features of each of N
    replicas: a feature then has one mean and one variance, over all replicas.
    """

    def __init__(self, *shape: int, replica_shape: tuple[int, int] | None = None) -> None:
        """Start with no row seen."""
        self.replica_shape = replica_shape
        self.mean: Floats = np.zeros(shape)
        self.var: Floats = np.ones(shape)
        self.count = 0.0

    def for_replicas(self, replicas: int) -> "Moments | None":
        """Return the moments for another number of replicas; None where replicas differ."""
        if self.replica_shape is None:
            return None
        count, width = self.replica_shape[0] * self.replica_shape[1], self.replica_shape[1]
        moments = Moments(replica_shape=(replicas, width))
        moments.count = self.count
        for name in ("mean", "var"):
            values = getattr(self, name)
            each = values[:count].reshape(-1, width)
            if not np.allclose(each, each[0]):
                return None
            setattr(moments, name, np.concatenate([np.tile(each[0], replicas), values[count:]]))
        return moments

    def keep_separate(self) -> None:
        """Go on with moments for each replica where they differ: loaded from an earlier version."""
        if self.replica_shape is not None and self.for_replicas(1) is None:
            self.replica_shape = None

    def update(self, rows: NDArray[Any]) -> None:
        """Take in `rows` of shape [n, *shape]."""
        if not len(rows):
            return
        rows = np.asarray(rows, np.float64)
        n = len(rows)
        mean = np.add.reduce(rows) / n  # numpy's own mean and var cost three times that
        deviations = rows - mean
        var = np.add.reduce(deviations * deviations) / n
        if self.replica_shape is not None:
            mean, var = pool_moments(mean, var, self.replica_shape)
        total = self.count + n
        shift = mean - self.mean
        squares = self.var * self.count + var * n + shift * shift * (self.count * n / total)
        self.mean = self.mean + shift * (n / total)
        self.var = squares / total
        self.count = total


def pool_moments(
    mean: Floats, var: Floats, replica_shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return moments in which each feature has those over all replicas; see `Moments`."""
    count, width = replica_shape[0] * replica_shape[1], replica_shape[1]
    each, spread = mean[:count].reshape(-1, width), var[:count].reshape(-1, width)
    middle, wide = each.mean(axis=0), spread.mean(axis=0) + each.var(axis=0)
    return (
        np.concatenate([np.tile(middle, replica_shape[0]), mean[count:]]),
        np.concatenate([np.tile(wide, replica_shape[0]), var[count:]]),
    )


class ObservationNormaliser:
    """Centre and scale each feature by its running moments, and clip at `clip` deviations."""

    def __init__(
        self,
        features: int,
        *,
        enabled: bool = True,
        clip: float = 10.0,
        replica_shape: tuple[int, int] | None = None,
    ) -> None:
        """Normalise rows of `features` numbers; disabled, rows pass as they are.

        `replica_shape`: see `Moments`. With moments for each replica its speed, which never
        changes, is always 0, and a long queue at one looks like a short one at another.
        """
        self.moments = Moments(features, replica_shape=replica_shape)
        self.enabled, self.clip = enabled, clip
        self.frozen = False

    def __call__(self, rows: NDArray[Any], *, learn: bool) -> NDArray[np.float32]:
        """Return float32 [n, features]; with `learn` the moments take the rows in first."""
        if not self.enabled:
            return np.asarray(rows, np.float32)
        if learn and not self.frozen:
            self.moments.update(rows)
        scaled = (rows - self.moments.mean) / np.sqrt(self.moments.var + VARIANCE_EPSILON)
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

    def __call__(self, rewards: Floats, dones: NDArray[np.bool_]) -> Floats:
        """Return the scaled rewards [envs] of one step; a `done` environment's return restarts."""
        if not self.enabled:
            return rewards
        self.returns = self.returns * self.gamma + rewards
        if not self.frozen:
            self.moments.update(self.returns)
        self.returns[dones] = 0.0
        return np.clip(
            rewards / np.sqrt(self.moments.var + VARIANCE_EPSILON), -self.clip, self.clip
        )
