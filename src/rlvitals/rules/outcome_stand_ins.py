"""Outcome of a language run that logs none: the returns of a PPO's critic, or the loss of pairs.

Returns hold the KL penalty. A loss of pairs starts at ln 2, that of a model which prefers neither
response, so that its level says what was learned.
"""

import math

import numpy as np

from rlvitals.metrics.catalogue.optimiser import EVAL_LOSS, LOSS
from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE
from rlvitals.metrics.catalogue.value import RETURN_MEAN
from rlvitals.rules.gains import (
    INTERVAL_ERRORS,
    MAX_LEVEL_SLOPE_ERRORS,
    MIN_LEVEL_BATCHES,
    gain,
    has_steady_rise,
    level_standing,
    no_gain,
    order_chance,
    order_errors,
    slope_errors,
)
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, OUTCOME_NAMES, Standing, State
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.signals.student import t_quantile
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
    if len(values) < MIN_LEVEL_BATCHES and _never_rose(values) and not too_early(trace):
        return no_gain(trend)
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


def _never_rose(values: Array) -> bool:
    """Return True if values [n] end no higher than they began, by thirds, by a line and at once."""
    thirds, rest = np.array_split(values, 3), values[2:]
    error = float(rest.std(ddof=1)) * math.sqrt(1 / 2 + 1 / len(rest))
    at_once = float(rest.mean() - values[:2].mean()) > INTERVAL_ERRORS * error
    return thirds[-1].mean() <= thirds[0].mean() and slope_errors(values) <= 0 and not at_once


def pair_loss_trend(trace: Trace) -> Standing | None:
    """Return the trend of preference training that logs its loss alone, by the distance from ln 2.

    None where the loss may be another one, or its distance is not told from its scatter. Held-out
    pairs are asked first: a training loss also falls by what is learned by heart.
    """
    loss, held_out = trace.numbers(LOSS.name, 3), trace.numbers(EVAL_LOSS.name, 3)
    if loss is None or not _is_loss_of_pairs(trace, loss.values):
        return None
    name, values = (LOSS.name, loss.values)
    if held_out is not None:
        name, values = (EVAL_LOSS.name, held_out.values)
    state = _held_out_state(values) if held_out is not None else _loss_state(values)
    if state is None or (state == "flat" and too_early(trace)):
        return None
    levels = float(values[0]), float(values[-1]), float(values.min())
    side = "no lower than" if state == "flat" else "below"
    reason = f"ends {side} ln 2, that of a guess: {levels[0]:.4g} to {levels[1]:.4g}"
    return Standing(state, name, reason, *levels)


def _is_loss_of_pairs(trace: Trace, losses: Array) -> bool:
    """Return True for a plain DPO, as its settings say, or for a loss whose first value is ln 2."""
    if any(name.startswith("preference/") for name in trace.series) or losses.min() < 0:
        return False
    settings = trace.settings
    loss_type = str(settings.get("loss_type", "sigmoid")).lower()
    # With a likelihood term, or without a reference, a guess does not cost ln 2.
    is_other = any(settings.get(key) for key in ("rpo_alpha", "reference_free", "label_smoothing"))
    if is_other or loss_type not in {"sigmoid", "none"}:
        return False
    algorithm = str(settings.get("algorithm", "")).lower()
    starts_at_guess = abs(float(losses[0]) - math.log(2)) < 0.002  # as a reference prints it
    return algorithm == "dpo" or (not algorithm and starts_at_guess)


def _held_out_state(values: Array) -> State | None:
    """Judge held-out losses [n], each a mean over many pairs."""
    guess, best, last = math.log(2), float(values.min()), float(values[-1])
    if np.abs(values - guess).max() < 0.01:  # nats
        return "flat"
    # A twentieth below a guess counts; a third of what was gained may be lost again.
    if last > 0.95 * guess or last - best > (guess - best) / 3:
        return None
    late = values[len(values) // 2 :]
    is_level = len(late) >= 3 and np.ptp(late) < 0.1 * (guess - best)
    return "at its ceiling" if is_level else "rising"


def _loss_state(values: Array) -> State | None:
    """Judge training losses [n], each a mean over the pairs of some batches."""
    guess, count, half = math.log(2), len(values), len(values) // 2
    if np.abs(values - guess).max() < 0.01:  # nats
        return "flat"
    if count < 5:
        return None
    late = float(values[half:].mean())
    error = float(values.std(ddof=1)) / math.sqrt(count)
    # One chance in two hundred, by level or by order; in two thousand for fewer than ten rows.
    errors = t_quantile(0.99 if count >= MIN_OUTCOME_POINTS else 0.999, count - 1)
    is_below = guess - float(values.mean()) > errors * error
    if count < MIN_OUTCOME_POINTS:
        is_ordered = order_chance(-values) <= 0.005
    else:
        is_ordered = order_errors(-values) >= 2.58
    is_learned = late < min(0.95 * guess, float(values[:half].mean()))
    return "rising" if (is_below or is_ordered) and is_learned else None
