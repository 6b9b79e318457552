"""Cost of a fault that persists, in steps, hours and money, and the part that was avoidable."""

import numpy as np

from rlvitals.diagnosis.duration import clock
from rlvitals.rules.rule import Finding
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Steps, and what they took; None where that is not known."""

    steps: int  # of the run
    hours: float | None = None  # wall time
    money: float | None = None  # in the currency of the price


@dataclass(frozen=True, slots=True)
class Waste:
    """What was spent since a fault began, and the part of it after it could be known."""

    since_began: Spent
    since_known: Spent
    price: float | None = None  # per hour
    why: str = ""  # why hours or money are not told


def waste(trace: Trace, finding: Finding) -> Waste | None:
    """Count what a run has spent since a finding began; None where that is nothing."""
    if trace.last_step <= finding.began:
        return None
    seconds = clock(trace)
    price = trace.number("price_per_hour")  # the setting: dollars or any other currency
    known_step = finding.known if finding.known >= 0 else finding.ended
    reason = "" if seconds is not None else "the log has no wall times"
    return Waste(
        _spent(trace, seconds, price, finding.began),
        _spent(trace, seconds, price, known_step),
        price,
        reason,
    )


def _spent(trace: Trace, seconds: Series | None, price: float | None, start_step: int) -> Spent:
    steps = max(trace.last_step - start_step, 0)
    if seconds is None:
        return Spent(steps)
    start_seconds = float(np.interp(start_step, seconds.steps, seconds.values))
    hours = (float(seconds.values[-1]) - start_seconds) / HOUR_SECONDS
    return Spent(steps, hours, None if price is None else hours * price)
