"""Liveness of a run and the reason of its end: by evidence, by the user, or not known.

Evidence is a process that is there, a log that grows while it is watched, an end that is recorded,
and a budget that is reached. The age of a log is none: the same bytes get the same answer. A run
of which nothing is known is judged as it stands, like one that is over.

What is said of a run that goes on may be taken back a few rows later. So some rules warn of it only
once what they see has stood for a while, and once it has had the time to learn anything at all.
"""

import numpy as np

from rlvitals.metrics.catalogue.optimiser import LOSS, UPDATES
from rlvitals.metrics.catalogue.policy import LOSS as POLICY_LOSS
from rlvitals.metrics.catalogue.throughput import MACHINE
from rlvitals.metrics.catalogue.value import LOSS as VALUE_LOSS
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

MAX_LIVE_SILENCE_S = 600.0  # seconds: a log that grew more recently belongs to a live run
GRACE_UPDATES = 10  # updates since the first
# Logged from the first update on.
UPDATE_METRICS = (UPDATES.name, VALUE_LOSS.name, POLICY_LOSS.name, LOSS.name)


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether a run goes on (None: not known), and what tells so, in words."""

    live: bool | None
    why: str


def liveness(trace: Trace) -> Liveness:
    """Tell whether a run goes on, and by what that is known."""
    cycle = trace.lifecycle
    if cycle.live is not None:
        return Liveness(cycle.live, cycle.live_by)
    if cycle.over:
        return Liveness(False, cycle.lost or cycle.reason or "its log records its end")
    if cycle.alive:
        return Liveness(True, "its process is there")
    if trace.budget is not None and reaches_budget(trace):
        return Liveness(False, f"its budget of {trace.budget.steps:,} {trace.step_unit} is reached")
    return Liveness(None, "no process record, heartbeat, recorded end or reached budget tells")


def reaches_budget(trace: Trace) -> bool:
    """Tell whether less than one logging interval of the budget is left."""
    if trace.budget is None:
        return False
    total, last = trace.budget.steps, trace.last_step
    # With a logging interval of more than a twentieth the last row proves no end.
    if last >= total or last < 0.95 * total:
        return last >= total
    rows = max((np.unique(series.steps) for series in trace.series.values()), key=len)
    interval = float(np.median(np.diff(rows))) if len(rows) > 1 else 0.0
    return total - last < interval


def nearly_reaches_budget(trace: Trace, share: float) -> bool:
    """Tell whether a run spent a share of its budget, or all but its last two rows.

    Some rows are written every so many episodes, and not at the end.
    """
    if trace.budget is None:
        return False
    rows = max((s.steps for s in trace.series.values()), key=len)
    gap = int(np.diff(rows).max()) if len(rows) > 1 else 0
    return trace.last_step >= min(share * trace.budget.steps, trace.budget.steps - 2 * gap)


def goes_on(trace: Trace) -> bool:
    """Tell whether a run is known to go on and has more of its budget before it."""
    cycle = trace.lifecycle
    if cycle.over or not (cycle.live or cycle.alive):
        return False
    return not reaches_budget(trace)


def in_grace(trace: Trace) -> bool:
    """Tell whether learning has only begun; a log without updates cannot say so."""
    logged = [s.finite() for name in UPDATE_METRICS if (s := trace.get(name)) is not None]
    steps = [s.steps for s in logged if len(s)]
    if not steps:
        return False
    first = min(int(s[0]) for s in steps)
    updates = max(len(np.unique(s)) for s in steps)
    # After a long warm-up the updates must span a twentieth of the run so far.
    span = trace.last_step - trace.first_step
    return updates <= GRACE_UPDATES or trace.last_step - first < 0.05 * span


def is_provisional(trace: Trace) -> bool:
    """Tell whether a run goes on and has only begun: a twentieth of its budget, or few updates."""
    is_at_start = trace.budget is not None and trace.last_step < 0.05 * trace.budget.steps
    return goes_on(trace) and (is_at_start or in_grace(trace))


def describe_start(trace: Trace) -> str:
    """Say that a diagnosis is provisional; empty where it is not."""
    return "provisional: learning has only begun" if is_provisional(trace) else ""


def describe_end(trace: Trace) -> str:
    """Say what ended a run, and at which step; empty where nothing says that it did."""
    cycle = trace.lifecycle
    error_line = cycle.traceback.strip().rsplit("\n", 1)[-1]
    if not cycle.failed:
        reason = cycle.reason
    elif cycle.lost:
        reason = cycle.lost + _describe_memory(trace)
    elif cycle.signal:
        reason = cycle.reason or cycle.signal
    else:
        rank_name = cycle.reason.partition(": ")[0] if cycle.reason.startswith("rank ") else ""
        reason = error_line or f"exit code {cycle.exit_code}"
        reason = f"{rank_name}: {reason}" if rank_name else reason
    if not reason or (cycle.end_step is None and not cycle.signal and not cycle.lost):
        return reason
    step = max(trace.last_step, cycle.end_step or 0)
    return f"{reason}, at step {step:,}"


def _describe_memory(trace: Trace) -> str:
    """Say that there was hardly any memory left as a process was last heard of."""
    ram = trace.numbers(f"{MACHINE.name}/ram")
    if ram is None or ram.values[-1] < 90.0:  # a process that asks for more is likely to be killed
        return ""
    return f"; {ram.values[-1]:.0f} % of the memory was in use shortly before"
