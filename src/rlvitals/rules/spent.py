"""Share of a run that is over: a flat outcome early in a run is no finding."""

from rlvitals.rules.going_on import goes_on
from rlvitals.rules.standing import NEARLY_SOLVED_SHARE, standing, way_share
from rlvitals.types import Trace

MIN_BUDGET_SHARE = 0.4  # of the budget


def too_early(trace: Trace, share: float = MIN_BUDGET_SHARE) -> str:
    """Say why it is too early to call a run stalled; empty once it is not."""
    if trace.budget is not None:
        spent = trace.last_step / trace.budget.steps
        return "" if spent >= share else f"{spent:.0%} of the budget is spent: too early to say"
    if goes_on(trace):
        return "the run goes on and its budget (total_steps) is not known"
    return ""


def ends_far(trace: Trace) -> bool:
    """Tell whether a run's budget is spent, and it ends far from what is known to be possible.

    Where no budget is known, nobody can tell: what rises may have been meant to go on.
    """
    share = way_share(trace, standing(trace))
    # What is only rising by then will not get there.
    budget_spent = trace.budget is not None and not too_early(trace, 0.9)
    return budget_spent and share is not None and share < NEARLY_SOLVED_SHARE
