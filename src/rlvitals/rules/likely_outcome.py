"""Probable outcome of a finished run by the shape of its curve, where no test proves one.

A multinomial logistic model on the numbers of `curve_shape`, fitted to published training curves
that were labelled from plots. It is asked only where the tests of the outcome answer nothing, and
once an outcome is known not to have improved, whether it lost what it had. Of a language model's
batches it is asked whether they are flat, no more.
"""

import math
from typing import Literal

import numpy as np

from rlvitals.metrics.catalogue.outcome import (
    EVAL_RETURN,
    EVAL_REWARD,
    EVAL_SUCCESS_RATE,
    RETURN,
    REWARD,
    SCORE,
    SUCCESS_RATE,
)
from rlvitals.rules import kinds
from rlvitals.rules.answers import prefer_evaluation, verdict_trend
from rlvitals.rules.course import is_no_loss
from rlvitals.rules.curves import describe_earlier_learning, rises_at_once
from rlvitals.rules.falling import first_full_step
from rlvitals.rules.gains import selects_prompts
from rlvitals.rules.going_on import liveness
from rlvitals.rules.outcome_blocks import may_be_good
from rlvitals.rules.parts import unclear_gain
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import (
    MIN_START_GAIN,
    Standing,
    least_that_counts,
    outcome,
    slow_swing,
)
from rlvitals.signals.curve_shape import SHAPE, curve_shape
from rlvitals.signals.finite import Array
from rlvitals.signals.outcome_course import course_of
from rlvitals.signals.rolling import block_means
from rlvitals.signals.spread import median, noise_sd
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Profile, Series, Trace

# Written by scripts/fit_likely_outcome.py: of each number of SHAPE its mean and standard deviation
# over the curves, and its coefficients for "improved", "flat" and "lost".
FITTED_CURVES = 383
FITTED_REPOSITORIES = 272
INTERCEPTS = (0.842, -0.577, -0.265)
WEIGHTS = {
    "change": (1.014, 1.433, 1.194, -0.335, -0.859),
    "lost": (0.276, 0.368, -0.150, -0.367, 0.517),
    "range": (1.771, 0.858, -0.112, -0.760, 0.872),
    "order": (0.343, 0.517, 0.634, -0.701, 0.067),
    "best at": (0.569, 0.339, 0.373, 0.442, -0.815),
    "gain": (2.020, 1.804, 0.065, -0.847, 0.782),
}
MAX_IMPROVED = 0.4  # above, an outcome may have improved
MIN_LOST = 0.6
MIN_LOST_WHILE_OPEN = 0.8  # of a run that may go on or seems to hold: it may be in a dip
JUDGED_METRICS = frozenset(
    metric.name
    for metric in (
        RETURN, EVAL_RETURN, REWARD, EVAL_REWARD, SCORE, SUCCESS_RATE, EVAL_SUCCESS_RATE,
    )
)  # fmt: skip

LikelyAnswer = Literal["flat", "lost", ""]


@dataclass(frozen=True, slots=True)
class LikelyOutcome:
    """Probabilities of what became of an outcome, and its levels, each the mean of a sixth."""

    metric: str
    improved: float
    flat: float
    lost: float
    first: float
    last: float
    best: float
    best_step: int  # at which the best sixth ends
    rose: bool  # above its first level, before it was lost

    @property
    def evidence(self) -> str:
        """Say the probabilities, and what they come from."""
        return (
            f"by the shape of the curve: improved {self.improved:.0%}, flat {self.flat:.0%}, "
            f"lost {self.lost:.0%}; fitted to {FITTED_CURVES} labelled curves of "
            f"{FITTED_REPOSITORIES} public repositories"
        )


@cache_by_trace
def likely_answer(trace: Trace) -> LikelyAnswer:
    """Return what probably became of an outcome that no test tells; empty where one does.

    "flat": it did not improve; "lost": it did not keep what it had gained, asked too of a level
    that is only not proven to fall. Never that it improved: of seven recorded runs that a test left
    open and the model called improved, four were broken.
    """
    trend = verdict_trend(trace)
    holds = trend.state == "holding its best"
    if trend.state != "unknown" and not trend.stalls and not holds:
        return ""
    likely = likely_outcome(trace)
    if likely is None:
        return ""
    is_over = liveness(trace).live is False and not holds
    min_lost = MIN_LOST if is_over else MIN_LOST_WHILE_OPEN
    may_be_lost = (likely.rose or not trend.stalls) and trend.metric in {"", likely.metric}
    may_be_lost = may_be_lost and trace.profile not in kinds.LANGUAGE
    if likely.lost >= min_lost and may_be_lost and not _has_excuse(trace, likely, trend):
        return "lost"
    if trend.stalls or holds or likely.improved > MAX_IMPROVED or may_be_good(trace, likely.metric):
        return ""
    rises = _rises_clearly(trace, likely) and not loses_part(trace, likely)
    return "" if rises or _is_learned_at_once(trace) else "flat"


def _is_learned_at_once(trace: Trace) -> bool:
    """Return True where the first few values alone lie below a level that is kept."""
    picked = _judged_series(trace)
    if picked is None:
        return False
    name, series = picked
    material, _ = least_that_counts(trace, name, series)
    values = trace[name].finite().values  # each row: a mean by steps mixes the first ones
    last = median(values[-max(1, len(values) // 6) :]) or 0.0
    return rises_at_once(values, last, material)


def _rises_clearly(trace: Trace, likely: LikelyOutcome) -> bool:
    """Return True if the last sixth lies above the first by what no noise and no rounding gives."""
    picked = _judged_series(trace)
    if picked is None:
        return False
    # As of a loss: see `_least_loss`.
    error = (noise_sd(picked[1].values) or 0.0) * math.sqrt(12 / len(picked[1]))
    min_gain = max(4 * error, MIN_START_GAIN * abs(likely.first))
    return likely.last - likely.first > min_gain


def _has_excuse(trace: Trace, likely: LikelyOutcome, trend: Standing) -> bool:
    """Return True if an end below the best is what a task, a window or a dip does by itself.

    A window of the first episodes explains nothing where the whole outcome falls.
    """
    picked = outcome(prefer_evaluation(trace))
    if picked is None:
        return True
    name, series = picked
    course = course_of(series.values)
    material, _ = least_that_counts(trace, name, series)
    # Half of the gain is left.
    is_small = likely.best - likely.last < _least_loss(trace, name, series) or course.keeps(
        material
    )
    full_step = first_full_step(trace, name, series)
    is_filling = trend.state != "falling" and series.steps[-1] < full_step
    return is_small or is_filling or is_no_loss(trace, name, series, course)


def _least_loss(trace: Trace, name: str, series: Series) -> float:
    """Return the least fall from the best sixth to the last one that is no noise."""
    material, origin = least_that_counts(trace, name, series)
    # The best of six levels of pure noise lies three standard errors above the last at times.
    error = (noise_sd(series.values) or 0.0) * math.sqrt(12 / len(series))
    return max(material, slow_swing(trace, name, origin), 4 * error)


def loses_part(trace: Trace, likely: LikelyOutcome) -> bool:
    """Tell whether an outcome gained and then lost clearly, though half of the gain may be left."""
    picked = None if trace.profile in kinds.LANGUAGE else outcome(prefer_evaluation(trace))
    if picked is None or likely.lost <= max(likely.flat, likely.improved):
        return False
    min_loss = _least_loss(trace, *picked)
    return min(likely.best - likely.first, likely.best - likely.last) >= min_loss


@cache_by_trace
def likely_outcome(trace: Trace) -> LikelyOutcome | None:
    """Return the probabilities for a whole run; None where the curve cannot tell."""
    if too_early(trace) and liveness(trace).live is not False:
        return None
    picked = _judged_series(trace)
    if picked is None or describe_earlier_learning(trace):
        return None
    name, series = picked
    shape = curve_shape(series.values)
    if shape is None:
        return None
    improved, flat, lost = (float(p) for p in probabilities_of(shape))
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near 1e308
        sixths = block_means(series.values, 6)
    if not np.isfinite(sixths).all():
        return None
    levels = (float(sixths[0]), float(sixths[-1]), float(sixths.max()))
    best_end = np.array_split(series.steps, 6)[int(sixths.argmax())][-1]
    rose = bool(shape[SHAPE.index("best at")] > 0)
    return LikelyOutcome(name, improved, flat, lost, *levels, int(best_end), rose)


def _judged_series(trace: Trace) -> tuple[str, Series] | None:
    """Return the outcome whose curve is judged: of a language model the one of its verdict."""
    if trace.profile is Profile.SUPERVISED:
        return None
    if trace.profile not in kinds.LANGUAGE:
        picked = outcome(prefer_evaluation(trace))
        return picked if picked is not None and picked[0] in JUDGED_METRICS else None
    name = verdict_trend(trace).metric
    # Of selected prompts, and of parts whose meaning is not known, a level curve says nothing.
    if not name.startswith(("outcome/", "reward/")) or selects_prompts(trace):
        return None
    return None if unclear_gain(trace) else (name, trace[name].finite())


def probabilities_of(shape: Array) -> Array:
    """Return the probabilities [3] of "improved", "flat" and "lost" for the numbers of `SHAPE`."""
    table = np.array(list(WEIGHTS.values()))
    means, sds, coefficients = table[:, 0], table[:, 1], table[:, 2:]
    scores = (shape - means) / sds @ coefficients + np.array(INTERCEPTS)
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
