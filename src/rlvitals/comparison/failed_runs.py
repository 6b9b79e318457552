"""Detect failed runs, which count as the worst score instead of being left out."""

import numpy as np

from rlvitals.comparison.grouping import Member
from rlvitals.comparison.scores import Curve
from rlvitals.rules.going_on import describe_end
from rlvitals.types import Trace

MIN_STEPS_SHARE = 0.9  # of the budget, or of the longest run: a run with fewer is incomplete


def find_failure(
    member: Member, curve: Curve, longest: int, latest: float, *, short_fails: bool
) -> str:
    """Return why a run counts as failed; empty where it does not.

    A run fails if it crashed, if its outcome ends as NaN, or if it stopped before the end of its
    budget while another run of the task continued: `longest` is the last step of any of them,
    `latest` the wall time of their newest row, in epoch s. A run of unknown budget that stops
    before the others has failed if `short_fails`. Length is counted in steps on every axis.
    """
    trace = member.trace
    lifecycle = trace.lifecycle
    if not len(curve.x):
        return describe_end(trace) or "crashed before its first row" if lifecycle.failed else ""
    is_short_run = is_short(member, longest)
    budget = trace.budget
    is_incomplete = budget is not None and trace.last_step < MIN_STEPS_SHARE * budget.steps
    is_early = is_short_run if budget is None else is_incomplete
    if lifecycle.failed and (is_early or not np.isfinite(curve.gains[-1])):
        return describe_end(trace) or "crashed"
    if not np.isfinite(curve.gains[-max(1, len(curve.gains) // 20) :]).any():
        return "its outcome is NaN at the end"
    is_over = lifecycle.over or (lifecycle.live is None and _is_silent(trace, latest))
    if budget is not None and is_incomplete and is_short_run and is_over and not lifecycle.reason:
        return f"stopped at {trace.last_step:,} of {budget.steps:,} steps"
    if is_short_run and short_fails:
        return f"stopped at {trace.last_step:,} steps, before the others"
    return ""


def _is_silent(trace: Trace, latest: float) -> bool:
    """Return whether other runs kept logging long after a run's last row."""
    last = trace.lifecycle.last_row
    if last is None:
        return False
    times = max((series.times for series in trace.series.values()), key=len)
    pauses = np.diff(np.sort(times[np.isfinite(times)]))
    return latest - last > max(
        600.0,
        3.0 * float(pauses.max(initial=0.0)),  # ten minutes, three of its longest pauses
    )


def is_short(member: Member, longest: int) -> bool:
    """Return whether a run stopped well before the last step of the longest run."""
    return member.trace.last_step < MIN_STEPS_SHARE * longest
