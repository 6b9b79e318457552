"""Standing of a language run that logs too little for the usual tests: of pairs, or of returns.

Pairs are judged by their margin, by few rows in order, or by the loss alone, which starts at ln 2,
that of a model that prefers neither response: its level says what was learned. A PPO without a
reward is judged by its returns, less a KL penalty.
"""

import math

import numpy as np

from rlvitals.metrics.catalogue.optimiser import EVAL_LOSS, LOSS
from rlvitals.metrics.catalogue.policy import KL_TO_REFERENCE
from rlvitals.metrics.catalogue.preference import ACCURACY, EVAL_ACCURACY, EVAL_MARGIN, MARGIN
from rlvitals.metrics.catalogue.value import RETURN_MEAN
from rlvitals.rules import kinds
from rlvitals.rules.gains import (
    MAX_LEVEL_SLOPE_ERRORS,
    MIN_GAIN_POINTS,
    gain,
    has_steady_rise,
    level_standing,
    order_chance,
    order_errors,
    slope_errors,
)
from rlvitals.rules.going_on import liveness
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import (
    MIN_LOSS_GAIN,
    MIN_OUTCOME_POINTS,
    OUTCOME_NAMES,
    Standing,
    State,
)
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_change import outcome_change
from rlvitals.signals.student import t_quantile
from rlvitals.types import Profile, Trace

GUESS_LOSS = math.log(2)  # of a model that prefers neither response, in nats


def pair_trend(trace: Trace) -> Standing | None:
    """Return the standing by the margin, the order of rows or the loss; None where none tells."""
    return _margin_standing(trace) or _order_standing(trace) or _loss_trend(trace)


def _margin_standing(trace: Trace) -> Standing | None:
    """Return the standing of preference training whose margin rises and whose loss agrees.

    Both are measured from the reference, at 0 and ln 2. The loss is proven to fall, or not proven
    to have fallen by less than half the margin's gain, its slope there: what a few pairs a row
    scatter may hide that. Else a margin that soon rose to its level may hold its best.
    """
    rise, loss = kinds.margin_rise(trace), trace.numbers(LOSS.name)
    fit = None if loss is None else outcome_change(-loss.values)
    if fit is None or fit.answer == "lost":
        return None
    if rise is None or (fit.low <= 0 and fit.high < (rise.last - rise.first) / 2):
        return _margin_level(trace)
    return Standing(
        "rising", MARGIN.name, "", rise.first, rise.last, rise.best, rise.low, rise.high, 0.0
    )


def _margin_level(trace: Trace) -> Standing | None:
    """Return the standing of a margin that soon left 0, and stays away; None where it did not.

    Its first twentieth is below half of its later half, which is above 0 by five standard errors,
    and the loss is below its first.
    """
    margin, loss = trace.numbers(MARGIN.name, MIN_GAIN_POINTS), trace.numbers(LOSS.name)
    if margin is None or loss is None:
        return None
    start, late = margin.values[: len(margin) // 20], margin.values[len(margin) // 2 :]
    first, last = float(start.mean()), float(late.mean())
    error = float(late.std(ddof=1)) / math.sqrt(len(late))
    is_below = float(np.mean(loss.values[len(loss) // 2 :])) < float(loss.values[0])
    if not is_below or last < 5 * error or first > last / 2:
        return None
    reason = f"rises early and stays: {first:.4g} to {last:.4g}"
    best = float(margin.values.max())
    return Standing("holding its best", MARGIN.name, reason, first, last, best)


def _order_standing(trace: Trace) -> Standing | None:
    """Return the standing of pairs by the order of their rows; None where it tells nothing.

    Of evaluations, without them of fewer rows of training than a trend needs. By Kendall's test at
    1 %: more pairs are ordered rightly than at first, the margin rises or the loss falls in order,
    and the loss ends below its first, as a margin alone also grows where it is overfitted. Without
    a count of pairs margin and loss have to agree. A held-out loss that rises in order, while no
    more pairs are ordered rightly, is that of a model that learns its training pairs by heart.
    """
    is_evaluated = EVAL_LOSS.name in trace
    metrics = (EVAL_MARGIN, EVAL_ACCURACY, EVAL_LOSS) if is_evaluated else (MARGIN, ACCURACY, LOSS)
    series = [trace.numbers(metric.name, 2) for metric in metrics]
    margin, share, loss = (None if each is None else each.values for each in series)
    if loss is None or (share is None and margin is None):
        return None
    if not is_evaluated and (len(loss) >= MIN_OUTCOME_POINTS or _may_be_start(trace, loss)):
        return None
    parts = margin is not None and _rise_in_order(margin)
    if share is None:
        is_learned = parts and _rise_in_order(-loss)
        name, levels = metrics[0].name, margin
    else:
        gain_of_pairs = float(share[-1] - share[0])
        is_learned = gain_of_pairs > 0.02 and (parts or _rise_in_order(-loss))
        name, levels = metrics[1].name, share
    if levels is None:
        return None
    first, last, best = float(levels[0]), float(levels[-1]), float(levels.max())
    noun = "evaluations" if is_evaluated else "rows"
    reason = f"over {len(levels)} {noun}: {first:.4g} to {last:.4g}"
    if is_learned and loss[-1] < loss[0]:
        return Standing("rising", name, f"rises {reason}", first, last, best)
    if not is_evaluated or share is None or gain_of_pairs > 0.02 or not _rise_in_order(loss):
        return None
    falls = gain_of_pairs < -0.05  # more than the error of some hundred pairs
    reason = f"{'falls' if falls else 'does not rise'} {reason}, and the held-out loss rises"
    return Standing("falling" if falls else "flat", name, reason, first, last, best)


def _may_be_start(trace: Trace, values: Array) -> bool:
    """Return True if values may be the first rows of a run that goes on."""
    return len(values) < MIN_OUTCOME_POINTS - 2 and liveness(trace).live is not False


def _rise_in_order(values: Array) -> bool:
    """Return True if values rise in an order that has a chance of 1 % at most without a trend."""
    if len(values) < MIN_OUTCOME_POINTS:
        return order_chance(values) <= 0.01
    return order_errors(values) >= 2.33


def _loss_trend(trace: Trace) -> Standing | None:
    """Return the trend of preference training that logs its loss alone, by the distance from ln 2.

    None where the loss may be another one, or its distance is not told from its scatter. Held-out
    pairs are asked first: a training loss also falls by what is learned by heart.
    """
    loss, held_out = trace.numbers(LOSS.name, 3), trace.numbers(EVAL_LOSS.name, 3)
    if loss is None or not _is_loss_of_pairs(trace, loss.values):
        return None
    if held_out is None:
        name, values, state = LOSS.name, loss.values, _loss_state(loss.values)
        halves = np.array_split(values, 2)
    else:
        name, values, state = EVAL_LOSS.name, held_out.values, _held_out_state(held_out.values)
        halves = [values[:1], values[-1:]]  # each is a mean over many pairs
    if state is None or (state == "flat" and too_early(trace)):
        return None
    first, last = (float(half.mean()) for half in halves)
    distance = float(np.abs(values - GUESS_LOSS).max())
    level = f"within {distance:.2g} of" if state == "flat" else "and ends below"
    reason = f"goes {first:.4g} to {last:.4g}, {level} ln 2, that of a guess"
    return Standing(state, name, reason, first, last, float(values.min()))


def few_losses(trace: Trace) -> Standing | None:
    """Return the standing of a supervised run's losses that fall from row to row; else None.

    Of too few for a trend, held-out ones where they are logged: five in order have a chance of 1
    in 120. Not of pairs, whose parting says more.
    """
    name = EVAL_LOSS.name if EVAL_LOSS.name in trace else LOSS.name
    losses = trace.numbers(name, 5)
    trains_pairs = any(other.startswith("preference/") for other in trace.series)
    if trace.profile is not Profile.SUPERVISED or trains_pairs or losses is None:
        return None
    is_few = len(losses) < MIN_OUTCOME_POINTS and not _may_be_start(trace, losses.values)
    if not is_few or not _rise_in_order(-losses.values):
        return None
    first, last = float(losses.values[0]), float(losses.values[-1])
    if first - last < MIN_LOSS_GAIN * abs(first):
        return None
    reason = f"falls over {len(losses)} rows: {first:.4g} to {last:.4g}"
    return Standing("rising", name, reason, first, last, float(losses.values.min()))


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
    starts_at_guess = abs(float(losses[0]) - GUESS_LOSS) < 0.002  # as a reference prints it
    return algorithm == "dpo" or (not algorithm and starts_at_guess)


def _stays_at_guess(losses: Array) -> bool:
    return bool(np.abs(losses - GUESS_LOSS).max() < 0.01)  # nats


def _is_below_guess(loss: float) -> bool:
    return loss <= 0.95 * GUESS_LOSS  # a twentieth counts


def _held_out_state(values: Array) -> State | None:
    """Judge held-out losses [n], each a mean over many pairs."""
    best, last = float(values.min()), float(values[-1])
    if _stays_at_guess(values):
        return "flat"
    # A third of what was gained may be lost again.
    if not _is_below_guess(last) or last - best > (GUESS_LOSS - best) / 3:
        return None
    late = values[len(values) // 2 :]
    is_level = len(late) >= 3 and np.ptp(late) < 0.1 * (GUESS_LOSS - best)
    return "at its ceiling" if is_level else "rising"


def _loss_state(values: Array) -> State | None:
    """Judge training losses [n], each a mean over the pairs of some batches."""
    count = len(values)
    if _stays_at_guess(values):
        return "flat"
    if count < 5:
        return None
    first_level, last_level = (float(half.mean()) for half in np.array_split(values, 2))
    error = float(values.std(ddof=1)) / math.sqrt(count)
    # One chance in two hundred, by level or by order; in two thousand for fewer than ten rows.
    errors = t_quantile(0.99 if count >= MIN_OUTCOME_POINTS else 0.999, count - 1)
    is_below = GUESS_LOSS - float(values.mean()) > errors * error
    if count < MIN_OUTCOME_POINTS:
        is_ordered = order_chance(-values) <= 0.005
    else:
        is_ordered = order_errors(-values) >= 2.58
    is_learned = _is_below_guess(last_level) and last_level < first_level
    return "rising" if (is_below or is_ordered) and is_learned else None


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
