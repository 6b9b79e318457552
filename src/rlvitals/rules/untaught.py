"""Whether a run was taught anything at all: not without a gradient, or rewards that differ."""

import numpy as np

from rlvitals.metrics.optimiser import GRAD_NORM, UPDATE_SUCCESS
from rlvitals.metrics.reward import GROUP_STD, SCORE_STD, STD
from rlvitals.records import Trace

LEAST = 20  # updates
MOST = 0.9  # of them: now and then one sample of many still differs
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
