"""Rollouts, minibatches, and advantage estimates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlvitals.trainers.ppo.environments import Step

Float32Array = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rollout:
    """`t` steps of `n` environments, in the order they were made."""

    observations: Float32Array  # [t, n, features], as the policy saw them
    actions: NDArray[Any]  # int64 [t, n] or float32 [t, n, d]
    log_probs: Float32Array  # [t, n], at the temperature they were drawn at
    temperatures: Float32Array  # [t]
    rewards: Float32Array  # [t, n], as the advantages are made of
    terminated: Bools  # [t, n]
    dones: Bools  # [t, n]: terminated or truncated
    valid: Bools  # [t, n]: False where an environment only reset itself
    values: Float32Array  # [t, n]
    next_values: Float32Array  # [t, n]: of where each action led
    facts: Mapping[str, float]  # means of the environments' `info`, by name
    episodes: tuple[tuple[float, int], ...]  # return and length of those that ended
    masks: Bools | None = None  # [t, n, actions]: False for an action with probability 0


@dataclass(frozen=True, slots=True)
class Batch:
    """The valid steps of a rollout, flat: `m` rows."""

    observations: Tensor  # float32 [m, features]
    actions: Tensor  # int64 [m] or float32 [m, d]
    log_probs: Tensor  # [m]
    temperatures: Tensor  # [m, 1]
    values: Tensor  # [m]
    advantages: Tensor  # [m]
    returns: Tensor  # [m]
    masks: Tensor | None = None  # bool [m, actions]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.log_probs)

    def rows(self, index: Tensor | slice) -> "Batch":
        """Return the rows at `index`."""
        columns = (getattr(self, name) for name in self.__slots__)
        return Batch(*(None if column is None else column[index] for column in columns))


def estimate_advantages(rollout: Rollout, gamma: float, lam: float) -> Float32Array:
    """Return generalised advantage estimates [t, n] (Schulman et al. 2016, equation 16).

    A truncated step bootstraps from the observation it led to, a terminated one from nothing, and
    neither lets anything of the next episode through.
    """
    alive = 1.0 - rollout.terminated
    delta = rollout.rewards + gamma * rollout.next_values * alive - rollout.values
    keep = gamma * lam * (1.0 - rollout.dones)
    advantages = np.empty_like(delta, np.float32)
    last_gae = np.zeros(delta.shape[1], delta.dtype)
    for t in range(len(delta) - 1, -1, -1):
        last_gae = delta[t] + keep[t] * last_gae
        advantages[t] = last_gae
    return advantages


def explained_variance(values: NDArray[Any], returns: NDArray[Any]) -> float:
    """Return 1 - Var(returns - values) / Var(returns); NaN where the returns do not vary."""
    spread = float(np.var(returns))
    return float("nan") if spread == 0.0 else 1.0 - float(np.var(returns - values)) / spread


def standardise(values: Tensor) -> Tensor:
    """Return values of mean 0 and deviation 1; one value alone becomes 0."""
    deviation, mean = torch.std_mean(values, correction=0)
    return (values - mean) / (deviation + 1e-8)


def k3(log_ratio: Tensor) -> Tensor:
    """Estimate KL(old || new) by log(new / old) at what the old one drew: never below 0."""
    return (torch.expm1(log_ratio) - log_ratio).mean()


def ratio_stats(log_ratio: Tensor, clip: float) -> dict[str, float]:
    """Return KL and ratio statistics from log(new / old) [m] at the old policy's actions."""
    ratio = log_ratio.exp()
    return {
        "approx_kl": float(k3(log_ratio)), "approx_kl_k1": -float(log_ratio.mean()),
        "ratio_mean": float(ratio.mean()), "ratio_max": float(ratio.max()),
        "clipfrac": float(((ratio - 1).abs() > clip).float().mean()),
    }  # fmt: skip


def means(steps: list[Step]) -> dict[str, float]:
    """Return the mean of each number [n] in the `info` of valid steps."""
    sums: dict[str, list[float]] = {}
    for step in steps:
        for name, values in step.info.items():
            if not isinstance(values, np.ndarray) or values.shape != step.valid.shape:
                continue
            if values.dtype.kind in "fbiu" and name[0] != "_":
                is_reported = step.valid & step.info.get(f"_{name}", step.valid)
                total = sums.setdefault(name, [0.0, 0.0])
                total[0] += float(values[is_reported].sum())
                total[1] += float(is_reported.sum())
    return {name: total / count for name, (total, count) in sums.items() if count}
