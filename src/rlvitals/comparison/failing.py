"""Whether a run failed: then it counts as the worst there is, and is not left out."""

import numpy as np

from rlvitals.comparison.grouping import Member
from rlvitals.comparison.scores import Curve
from rlvitals.verdict import ended

NEARLY = 0.9  # of its budget: a run that stops before has not done what it was started for
SILENT = 600.0  # seconds without a row after which a run without an end is over


def failed(member: Member, found: Curve, longest: float, *, short_fails: bool) -> str:
    """Say why a run counts as failed; empty where it does not.

    It crashed, its outcome ended as NaN, or it stopped before the end of its own budget while
    another run of the task went on: `longest` is the last place that any of them reached. A run
    of unknown budget that stops before the others has failed if a person says so.
    """
    trace = member.trace
    cycle = trace.lifecycle
    if not len(found.x):
        return ended(trace) or "crashed before its first row" if cycle.failed else ""
    short = found.last < NEARLY * longest
    if cycle.failed and (short or not np.isfinite(found.gains[-1])):
        return ended(trace) or "crashed"
    if not np.isfinite(found.gains[-max(1, len(found.gains) // 20) :]).any():
        return "its outcome is NaN at the end"
    budget = trace.budget
    over = cycle.over or (cycle.alive is not True and (cycle.age or 0.0) > SILENT)
    undone = budget is not None and trace.last_step < NEARLY * budget.steps
    if budget is not None and undone and short and over and not cycle.reason:
        return f"stopped at {trace.last_step:,} of {budget.steps:,} steps"
    if short and short_fails:
        return f"stopped at {trace.last_step:,} steps, before the others"
    return ""
