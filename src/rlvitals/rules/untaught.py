"""Whether a run was taught anything at all: without a gradient there is nothing to learn from."""

import numpy as np

from rlvitals.metrics.optimiser import GRAD_NORM
from rlvitals.records import Trace

LEAST = 20  # updates
MOST = 0.9  # of them: now and then one sample of many still differs
ZERO = 1e-10  # gradient norm that is float32's rounding of nothing


def untaught(trace: Trace, zero: float = ZERO) -> bool:
    """Tell whether hardly any update of the whole run has a gradient, where that is logged."""
    norms = trace.get(GRAD_NORM.name)
    sizes = np.abs(norms.finite().values) if norms is not None else np.empty(0)
    return sizes.size >= LEAST and float((sizes < zero).mean()) >= MOST
