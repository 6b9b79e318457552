"""How many actions a run has where nobody says: read off its first entropies.

An untrained categorical policy is nearly uniform: exp(entropy) is the number of actions. An
untrained Gaussian policy of standard deviation 1 has entropy 0.5 ln(2 pi e) per dimension.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics import environments
from rlvitals.metrics.exploration import ENTROPY, STD
from rlvitals.records import Trace

FIRST = 3  # updates: the first row may be missing or already a little lower
TOLERANCE = 0.03  # relative, of exp(entropy): measured 1.98-2.00 on CartPole
WITHIN = 0.25  # of an action: beyond, a neighbouring count is nearly as likely
ROUNDING = 0.002  # relative: logs round entropy to three digits
STD_TOLERANCE = 0.05
FEWEST_ACTIONS = 2
MOST_ACTIONS = 1000  # beyond, 3 % spans many counts, and vocabularies begin
NATS_PER_DIMENSION = 0.5 * math.log(2 * math.pi * math.e)  # 1.4189
DIMENSION_TOLERANCE = 0.02  # of a dimension: 1.996 and 0.996 in two real runs


@dataclass(frozen=True, slots=True)
class Inferred:
    """A count that the log does not hold, and where it came from."""

    value: int
    origin: str


def actions(trace: Trace) -> Inferred | None:
    """Tell the number of discrete actions; None where it cannot be told.

    From the settings, else the environment's facts, else the first entropies.
    """
    if (own := trace.number("n_actions")) is not None and own >= FEWEST_ACTIONS:
        return Inferred(int(own), "the run's n_actions")
    known = _environment(trace)
    if known is not None:
        return _fact(known.actions, known)
    if STD.name in trace:  # a Gaussian policy has no number of actions
        return None
    return _from_entropy(_first(trace, ENTROPY.name))


def action_dim(trace: Trace) -> Inferred | None:
    """Tell the dimensions of a continuous action; None where it cannot be told.

    From the settings, else the environment's facts, else the first entropies of a Gaussian
    policy whose standard deviation is logged and starts at 1.
    """
    if (own := trace.number("action_dim")) is not None and own >= 1:
        return Inferred(int(own), "the run's action_dim")
    known = _environment(trace)
    if known is not None:
        return _fact(known.action_dim, known)
    std, entropy = _first(trace, STD.name), _first(trace, ENTROPY.name)
    if not len(std) or not len(entropy) or abs(float(std[0]) - 1.0) > STD_TOLERANCE:
        return None
    # H = d (0.5 ln(2 pi e) + ln std): the small drift of std is taken out.
    per_dimension = NATS_PER_DIMENSION + math.log(float(std[0]))
    dimensions = float(entropy[0]) / per_dimension
    count = round(dimensions)
    if count < 1 or abs(dimensions - count) > DIMENSION_TOLERANCE * max(count, 1):
        return None
    return Inferred(count, f"the first entropy, {entropy[0]:.3f} = {dimensions:.2f} x 1.419")


def max_entropy(trace: Trace) -> tuple[float, str] | None:
    """Return the entropy of the uniform policy in nats and its origin; None where unknown."""
    found = actions(trace)
    return None if found is None else (math.log(found.value), found.origin)


def _fact(value: int | None, environment: environments.Environment) -> Inferred | None:
    return None if value is None else Inferred(value, f"the environment {environment.name}")


def _from_entropy(first: NDArray[np.float64]) -> Inferred | None:
    highest = float(first.max()) if len(first) else 0.0  # later rows can only be lower
    if not 0.0 < highest <= math.log(MOST_ACTIONS):
        return None
    spread = math.exp(highest)
    # Entropy never exceeds ln(actions), but for rounding: the count is at or above `spread`.
    count = max(math.ceil(spread * (1.0 - ROUNDING)), FEWEST_ACTIONS)
    if count - spread > min(TOLERANCE * count, WITHIN):
        return None
    return Inferred(count, f"the first entropy, {highest:.3f} = ln {spread:.2f}")


def _environment(trace: Trace) -> environments.Environment | None:
    env_id = trace.settings.get("env_id")
    return environments.lookup(env_id) if isinstance(env_id, str) else None


def _first(trace: Trace, name: str) -> NDArray[np.float64]:
    series = trace.get(name)
    return np.empty(0) if series is None else series.finite().values[:FIRST]
