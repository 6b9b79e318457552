"""Whether a run failed: then it counts as the worst there is, and is not left out."""

import numpy as np

from rlvitals.comparison.grouping import Member
from rlvitals.comparison.scores import Curve
from rlvitals.diagnosis.verdict import ended
from rlvitals.types import Trace

NEARLY = 0.9  # of its budget: a run that stops before has not done what it was started for
SILENT = 600.0  # seconds that others of the task logged on, at least, after its last row
PAUSES = 3.0  # times its own longest pause between rows that they did so


def failed(member: Member, found: Curve, longest: int, latest: float, *, short_fails: bool) -> str:
    """Say why a run counts as failed; empty where it does not.

    It crashed, its outcome ended as NaN, or it stopped before the end of its own budget while
    another run of the task went on: `longest` is the last step that any of them reached, `latest`
    the wall time of their newest row, in epoch s. A run
    of unknown budget that stops before the others has failed if a person says so. Steps are what
    counts, whatever the runs are aligned on: a fast run is not a short one.
    """
    trace = member.trace
    cycle = trace.lifecycle
    if not len(found.x):
        return ended(trace) or "crashed before its first row" if cycle.failed else ""
    short = is_short(member, longest)
    budget = trace.budget
    undone = budget is not None and trace.last_step < NEARLY * budget.steps
    crashed_early = short if budget is None else undone
    if cycle.failed and (crashed_early or not np.isfinite(found.gains[-1])):
        return ended(trace) or "crashed"
    if not np.isfinite(found.gains[-max(1, len(found.gains) // 20) :]).any():
        return "its outcome is NaN at the end"
    over = cycle.over or (cycle.live is None and _is_over(trace, latest))
    if budget is not None and undone and short and over and not cycle.reason:
        return f"stopped at {trace.last_step:,} of {budget.steps:,} steps"
    if short and short_fails:
        return f"stopped at {trace.last_step:,} steps, before the others"
    return ""


def _is_over(trace: Trace, latest: float) -> bool:
    """Tell whether other runs logged on long after a run's last row: it had stopped by then."""
    last = trace.lifecycle.last_row
    if last is None:
        return False
    times = max((series.times for series in trace.series.values()), key=len)
    pauses = np.diff(np.sort(times[np.isfinite(times)]))
    return latest - last > max(SILENT, PAUSES * float(pauses.max(initial=0.0)))


def is_short(member: Member, longest: int) -> bool:
    """Tell whether a run stopped well before the last step of the longest one."""
    return member.trace.last_step < NEARLY * longest
