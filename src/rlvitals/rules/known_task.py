"""Known properties of the task that a run is trained on, in the unit of its outcome."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics import environments
from rlvitals.metrics.environments import Environment
from rlvitals.rules.curves import CURVE_START_POINTS
from rlvitals.signals.spread import median
from rlvitals.types import Trace

DEFAULT_GAMMA = 0.99  # the usual discount, where the run's is not known
NO_PROGRESS_SHARE = 0.15  # of the way from random to solved


def environment(trace: Trace) -> Environment | None:
    """Look up what is known of the run's environment; None where it is not logged or not known."""
    return environments.lookup(str(trace.settings.get("env_id", "")))


def task(trace: Trace, name: str, values: NDArray[np.float64]) -> Environment | None:
    """Return what is known of the environment, in the unit of an outcome's `values` [n].

    Rewards that a wrapper multiplied make returns that the environment cannot give; the first
    ones, of an untrained policy, tell by how much. Where they do not, what is known is given back
    as it is, and returns may lie beyond it. None where the outcome is no return.
    """
    env = environment(trace) if name.endswith("return") else None
    if env is None or not env.random_return or not env.beyond(values).any():
        return env
    factor = (median(values[:CURVE_START_POINTS]) or 0.0) / env.random_return
    return env.times(factor) if factor >= 3.0 else env  # x what a random policy earns


def knows_way(trace: Trace, name: str, values: NDArray[np.float64]) -> bool:
    """Return True if the span from a random to a solved policy is known."""
    env = task(trace, name, values)
    return env is not None and bool(env.way)
