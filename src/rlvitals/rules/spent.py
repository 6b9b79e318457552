"""How much of a run is over: before enough of it is, a flat start is ordinary."""

from rlvitals.records import Trace
from rlvitals.rules.going_on import goes_on

SPENT = 0.4  # of the budget


def too_early(trace: Trace, share: float = SPENT) -> str:
    """Say why it is too early to call a run stalled; empty once it is not."""
    if trace.budget is not None:
        spent = trace.last_step / trace.budget.steps
        return "" if spent >= share else f"{spent:.0%} of the budget is spent: too early to say"
    if goes_on(trace):
        return "the run goes on and its budget (total_steps) is not known"
    return ""
