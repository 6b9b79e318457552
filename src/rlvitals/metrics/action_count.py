"""Infer the number of actions from the first entropies of a run.

An untrained categorical policy is nearly uniform: exp(entropy) is the number of actions. An
untrained Gaussian policy of standard deviation 1 has entropy 0.5 ln(2 pi e) per dimension.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass

MAX_FIRST_ROWS = 3  # updates: the first row may be missing or already a little lower
NATS_PER_DIMENSION = 0.5 * math.log(2 * math.pi * math.e)  # 1.4189


@dataclass(frozen=True, slots=True)
class Inferred:
    """An inferred count and its origin."""

    value: int
    origin: str


def actions(entropies: NDArray[np.float64]) -> Inferred | None:
    """Infer the number of discrete actions from entropies [n], in nats, oldest first.

    None for a policy that starts trained, and for continuous actions.
    """
    first = _first(entropies)
    highest = float(first.max()) if len(first) else 0.0  # entropy falls in training
    if not 0.0 < highest <= math.log(1000):  # beyond, logs are too coarse, and vocabularies begin
        return None
    spread = math.exp(highest)
    # Entropy never exceeds ln(actions), but for rounding: the count is at or above `spread`.
    # A logged entropy may be rounded up: ln 4 is printed as 1.39.
    place = 2 - math.floor(math.log10(highest))  # of the third digit: Stable-Baselines3 prints so
    # At least 0.002 nats, of logs with more than three digits.
    rounding = max(0.5 * 10.0**-place if round(highest, place) == highest else 0.0, 0.002)
    count = max(math.ceil(math.exp(highest - rounding)), 2)
    # Relative: 1.98 to 2.00 actions were measured on CartPole. Beyond a quarter of an action, the
    # next count is nearly as likely.
    if count - spread > min(0.03 * count, 0.25):
        return None
    return Inferred(count, f"the first entropy, {highest:.3f} = ln {spread:.2f}")


def action_dim(entropies: NDArray[np.float64], stds: NDArray[np.float64]) -> Inferred | None:
    """Infer the dimensions of a Gaussian policy's action from entropies [n] and stds [n].

    None where the standard deviation does not start at 1, or the entropy does not correspond to
    an integer number of dimensions.
    """
    entropy, std = _first(entropies), _first(stds)
    if not len(entropy) or not len(std) or abs(float(std[0]) - 1.0) > 0.05:
        return None
    # H = d (0.5 ln(2 pi e) + ln std): the drift of std since the start is removed.
    dimensions = float(entropy[0]) / (NATS_PER_DIMENSION + math.log(float(std[0])))
    count = round(dimensions)
    # 1.996 and 0.996 were measured in two real runs.
    if count < 1 or abs(dimensions - count) > 0.02 * count:
        return None
    return Inferred(count, f"the first entropy, {float(entropy[0]):.3f} = {dimensions:.2f} x 1.419")


def _first(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values)][:MAX_FIRST_ROWS]
