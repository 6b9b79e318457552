"""Outcome of a PPO on a language model that logs no reward: its returns, less a KL penalty."""

import numpy as np

from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE
from rlvitals.metrics.catalogue.value import RETURN_MEAN
from rlvitals.rules.gains import (
    MAX_LEVEL_SLOPE_ERRORS,
    gain,
    has_steady_rise,
    level_standing,
    slope_errors,
)
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, OUTCOME_NAMES, Standing, State
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.types import Profile, Trace


def return_trend(trace: Trace) -> Standing | None:
    """Return the trend of PPO's returns where no outcome is logged; None where they say nothing.

    A return that a negative KL lifts was not learned: the KL has to be logged, and above 0. One
    that stays is no flat outcome while the KL grows, which takes from it what a score adds.
    """
    returns = trace.numbers(RETURN_MEAN.name, MIN_OUTCOME_POINTS)
    kl = trace.numbers(KL_TO_REFERENCE.name, MIN_OUTCOME_POINTS)
    is_paid = any(name in trace for name in OUTCOME_NAMES)
    if trace.profile is not Profile.RLHF_PPO or returns is None or kl is None or is_paid:
        return None
    if min(third.mean() for third in np.array_split(kl.values, 3)) <= 0:
        return None
    values = returns.values
    first, last = (float(third.mean()) for third in np.array_split(values, 3)[::2])
    best, ends = float(values.max()), f"{first:.4g} to {last:.4g}"
    if state := _good_state(values):
        verb = "rises" if state == "rising" else "holds its best"
        reason = f"{verb}: {ends}, less a KL penalty (no reward is logged)"
        return Standing(state, RETURN_MEAN.name, reason, first, last, best)
    reason = f"no reward is logged, and the return less a KL penalty goes {ends}"
    trend = Standing("unknown", RETURN_MEAN.name, reason, first, last, best)
    if slope_errors(kl.values) >= MAX_LEVEL_SLOPE_ERRORS:
        return trend
    return level_standing(trace, trend, returns)


def _good_state(values: Array) -> State | None:
    levels = gain(values)
    if levels is None:  # too few for stretches
        change = outcome_change(values)
        # Of independent values 4 to 9 of 1,000 series pass, of lag-1 correlation 0.3 up to 18
        # (simulated, 10 to 19 values).
        rose = change is not None and change.answer == "rose" and slope_errors(values) >= 2.5
        return "rising" if rose else None
    is_proven = levels.proven and not levels.falls
    if has_steady_rise(values) or (is_proven and levels.goes_on):
        return "rising"
    return "holding its best" if is_proven else None
