"""How much of a run is over: before enough of it is, a flat start is ordinary."""

from rlvitals.records import Trace

SPENT = 0.4  # of the budget
LIVE = 600.0  # seconds: a log that grew this recently belongs to a run that goes on


def too_early(trace: Trace, share: float = SPENT) -> str:
    """Say why it is too early to call a run stalled; empty once it is not."""
    if trace.budget is not None:
        spent = trace.last_step / trace.budget.steps
        return "" if spent >= share else f"{spent:.0%} of the budget is spent: too early to say"
    age = trace.lifecycle.age
    if age is not None and age < LIVE and not trace.lifecycle.ended:
        return "the run goes on and its budget (total_steps) is not known"
    return ""
