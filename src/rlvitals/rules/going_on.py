"""A run that goes on: its process lives or its log grew just now, and nothing says it is over.

What is said of such a run may be taken back a few rows later. So some rules warn of it only once
what they see has stood for a while, and once it has had the time to learn anything at all.
"""

import numpy as np

from rlvitals.metrics.optimiser import LOSS, UPDATES
from rlvitals.metrics.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.value import LOSS as VALUE_LOSS
from rlvitals.records import Trace

LIVE = 600.0  # seconds: a log that grew this recently belongs to a run that goes on
GRACE = 10  # updates since the first
SHARE = 0.05  # of the run so far: what the updates must span, after a long warm-up
LEARNS = (UPDATES.name, VALUE_LOSS.name, POLICY_LOSS.name, LOSS.name)  # logged once it does


def goes_on(trace: Trace) -> bool:
    """Tell whether a run is known to go on; one whose age nobody gave is taken as it is."""
    cycle = trace.lifecycle
    if cycle.over:
        return False
    if trace.budget is not None and trace.last_step >= trace.budget.steps:
        return False
    return bool(cycle.alive) or (cycle.age is not None and cycle.age < LIVE)


def in_grace(trace: Trace) -> bool:
    """Tell whether learning has only begun; a log without updates cannot say so."""
    logged = [s.finite() for name in LEARNS if (s := trace.get(name)) is not None]
    steps = [s.steps for s in logged if len(s)]
    if not steps:
        return False
    first = min(int(s[0]) for s in steps)
    updates = max(len(np.unique(s)) for s in steps)
    return updates <= GRACE or trace.last_step - first < SHARE * (
        trace.last_step - trace.first_step
    )
