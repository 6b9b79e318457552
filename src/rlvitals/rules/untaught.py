"""Whether a run was taught anything at all: not without a gradient, or rewards that differ."""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import GRAD_NORM, UPDATE_SUCCESS
from rlvitals.metrics.catalogue.outcome import REWARD
from rlvitals.metrics.catalogue.reward import GROUP_STD, SCORE_STD, STD
from rlvitals.types import Trace

LEAST = 20  # updates
MOST = 0.9  # of them: now and then one sample of many still differs
NEAR_TOP = 0.03  # of the range of the rewards: a median this near to the best is at the top
ZERO = 1e-10  # gradient norm that is float32's rounding of nothing


def untaught(trace: Trace, zero: float = ZERO) -> bool:
    """Tell whether hardly any update of the whole run has a gradient, or is applied, as logged."""
    for metric, least in ((GRAD_NORM, zero), (UPDATE_SUCCESS, ZERO)):
        logged = trace.numbers(metric.name, LEAST)
        if logged is not None and float((np.abs(logged.values) < least).mean()) >= MOST:
            return True
    return False


def alike(trace: Trace, since: int) -> bool:
    """Tell whether the rewards of hardly any batch differ from a step on, where that is logged."""
    logged = (trace.numbers(metric.name) for metric in (GROUP_STD, SCORE_STD, STD))
    spreads = next((series for series in logged if series is not None), None)
    during = np.empty(0) if spreads is None else spreads.since(since).values
    return during.size >= LEAST and float((during == 0).mean()) >= MOST


def lifeless(trace: Trace) -> bool:
    """Tell whether the last half of a run has no gradient, no contrast, and rewards still to gain.

    A policy that answers each prompt in one way only cannot learn from groups, however its reward
    scatters with the prompts. Where every batch earns the most that any did, it is done instead.
    """
    half = (trace.first_step + trace.last_step) // 2
    norms = trace.numbers(GRAD_NORM.name)
    during = np.empty(0) if norms is None else np.abs(norms.since(half).values)
    if during.size < LEAST or float((during < ZERO).mean()) < MOST or not alike(trace, half):
        return False
    return REWARD.name in trace and not at_top(trace, half)


def at_top(trace: Trace, since: int) -> bool:
    """Tell whether most batches from a step on earn the most that any batch of the run did."""
    rewards = trace.numbers(REWARD.name)
    level = np.empty(0) if rewards is None else rewards.since(since).values
    if rewards is None or not level.size or not (top := float(rewards.values.max())):
        return False
    return top - float(np.median(level)) <= NEAR_TOP * float(np.ptp(rewards.values))
