"""What a fault that still goes on has cost: steps, hours, money; and what could have been saved."""

from dataclasses import dataclass

import numpy as np

from rlvitals.records import Series, Trace
from rlvitals.rules.rule import Finding

PRICE = "price_per_hour"
PAUSE = 20.0  # times the usual distance of two rows, and
LONGEST = 600.0  # seconds: a longer silence is a pause between attempts, which costs nothing
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Steps, and what they took; None where that is not known."""

    steps: int
    hours: float | None = None
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
    clock = _clock(trace)
    price = trace.number(PRICE)
    known = finding.known if finding.known >= 0 else finding.ended
    why = "" if clock is not None else "the log has no wall times"
    return Waste(
        _spent(trace, clock, price, finding.began), _spent(trace, clock, price, known), price, why
    )


def _spent(trace: Trace, clock: Series | None, price: float | None, since: int) -> Spent:
    steps = max(trace.last_step - since, 0)
    if clock is None:
        return Spent(steps)
    at = float(np.interp(since, clock.steps, clock.values))
    hours = (float(clock.values[-1]) - at) / HOUR
    return Spent(steps, hours, None if price is None else hours * price)


def _clock(trace: Trace) -> Series | None:
    """Return seconds worked by step, pauses between attempts left out; None without a clock."""
    elapsed = trace.get("throughput/elapsed")
    timed = [s for s in trace.series.values() if np.isfinite(s.times).sum() > 1]
    if elapsed is not None and len(elapsed.finite()) > 1:
        found = elapsed.finite()
    elif timed:
        longest = max(timed, key=len)
        found = Series(longest.steps, longest.times, longest.times).finite()
    else:
        return None
    gaps = np.diff(found.values)
    usual = float(np.median(gaps[gaps >= 0])) if (gaps >= 0).any() else 0.0
    gaps = np.where((gaps < 0) | (gaps > max(PAUSE * usual, LONGEST)), 0.0, gaps)
    worked = np.concatenate(([0.0], np.cumsum(gaps)))
    return Series(found.steps, found.times, worked) if worked[-1] > 0 else None
