"""Tests of a whole run's outcome by block means, for outcomes without a linear trend."""

from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.exploration import ENTROPY, EPSILON
from rlvitals.metrics.catalogue.outcome import RETURN
from rlvitals.rules.curves import (
    CURVE_BLOCKS,
    CURVE_START_POINTS,
    LONG_CURVE,
    PLAIN_CHANGE_FACTOR,
    find_fall_back,
    find_proven_loss,
    gain_after_dip,
    is_back_at_start,
)
from rlvitals.rules.episode_window import max_episode_sd, scatter_of_window
from rlvitals.rules.falling import first_full_step
from rlvitals.rules.gains import MIN_GAIN_POINTS, no_gain
from rlvitals.rules.known_task import knows_way, task
from rlvitals.rules.standing import (
    EVAL_OUTCOME,
    MIN_OUTCOME_POINTS,
    MIN_STUCK_TOP_SHARE,
    TASK_HINT,
    Standing,
    State,
    label,
    outcome,
    slow_swing,
    standing,
    up,
)
from rlvitals.rules.width import max_entropy
from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import Array
from rlvitals.signals.level import first_last_change
from rlvitals.signals.outcome_change import (
    MIN_GAIN_SD,
    MIN_SHARE_LOST,
    Answer,
    OutcomeChange,
    outcome_change,
)
from rlvitals.signals.outcome_course import CLEAR_GAIN_SD, Course, course_of, falls
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Trace

ANSWER_STATES: dict[Answer, State] = {
    "rose": "rising",
    "flat": "flat",
    "fell": "falling",
    "lost": "fallen back",
}
PROVEN_GAIN_FACTOR = 1.75  # half intervals: reached by fewer than 1 of 1,000 flat outcomes
MAX_RISE_DISTANCE = 0.1  # of the training gain, between its end and the evaluations
MAX_MORE_FACTOR = 10  # x the points so far: a longer plan is none
MAX_FALL_BLOCKS = 2  # of twenty: another opponent, a harder stage, weights that were lost
MIN_RISE_BLOCKS = 4  # of twenty, after the lowest: a shorter rise is a swing
END_BLOCKS = 2  # of twenty, a tenth of the run
MAX_BLOCK_LEVEL = 1e300  # beyond, differences and means overflow


def by_blocks(  # noqa: PLR0911 - one for each reason to leave it unknown
    trace: Trace, trend: Standing, values: Array
) -> Standing:
    """Answer by blocks where the standing is unknown; `values` [n] are of the whole run."""
    block_change = change(trace, trend.metric, values, trend.material)
    if block_change is None:
        return trend
    course = course_of(values)
    if block_change.answer == "cannot tell":
        return _likely_standing(trace, trend, values, block_change, course)
    small = block_change.answer == "rose" and not _counts(trace, trend, values, block_change)
    dip = gain_after_dip(trace, trend.metric, values, trend.material)
    is_back = block_change.answer == "rose" and is_back_at_start(dip, trend.material)
    if is_back or (small and block_change.high > trend.material):
        return trend
    part_lost = block_change.answer == "rose" and block_change.share_lost >= MIN_SHARE_LOST
    if part_lost or (block_change.answer == "lost" and block_change.share_lost < 0.5):
        return replace(
            trend, why=f"{trend.why}; {block_change.share_lost:.0%} of its gain is lost at the end"
        )
    if block_change.answer == "lost" and course.keeps(trend.material):
        return replace(trend, why=f"{trend.why}; half of what it gained is left at the end")
    poor = block_change.points >= LONG_CURVE and tells_poor(trace, trend.metric, values)
    poor = poor and not _is_large_gain(trace, trend, values, block_change)
    if (small or block_change.answer == "flat") and not poor:
        return flat_unless_good(trace, trend, values, block_change, course)
    last = block_change.last if block_change.answer == "lost" else trend.last
    best = block_change.best if block_change.answer == "lost" else trend.best
    if small and not knows_way(trace, trend.metric, values):
        return small_rise(trend, block_change)
    state = "flat" if small else ANSWER_STATES[block_change.answer]
    return replace(
        trend,
        state=state,
        why="",
        last=last,
        best=best,
        low=block_change.low,
        high=block_change.high,
    )


def _is_large_gain(
    trace: Trace, trend: Standing, values: Array, block_change: OutcomeChange
) -> bool:
    """Return True if the end is two standard deviations of a logged value above the start.

    And the gain is more than its own standard error. A mean over many episodes is compared with the
    scatter of one, which may be far larger. False where the task's span tells.
    """
    is_large = _leans_up(block_change) and trend.last - trend.first > 4 * trend.material
    return is_large and not knows_way(trace, trend.metric, values)


def _leans_up(level: OutcomeChange) -> bool:
    """Return True if a gain is more than its own standard error: half the half of its interval."""
    return 3 * level.low + level.high > 0


def flat_by_blocks(trace: Trace, trend: Standing, values: Array) -> Standing:
    """Correct a standing that is flat beside its first level, which an offset would change.

    Where the span is not known, a significant gain of half a standard deviation of a single value
    is a rise, whatever the first level was.
    """
    if knows_way(trace, trend.metric, values):
        return trend
    block_change = change(trace, trend.metric, values, trend.material)
    rose = (
        block_change is not None
        and block_change.answer == "rose"
        and block_change.share_lost < MIN_SHARE_LOST
    )
    if block_change is not None and rose:
        if _counts(trace, trend, values, block_change):
            return replace(trend, state="rising", low=block_change.low, high=block_change.high)
        if block_change.high > trend.material:
            return small_rise(trend, block_change)
    wins = trace[trend.metric].finite().values
    if np.isin(wins, (0, 1)).all() and 0.5 < wins.mean() < 1:  # more than half of all episodes
        return unclear_level(trend)
    if tells_poor(trace, trend.metric, values):
        return trend
    return unclear_level(trend) if may_be_good(trace, trend.metric) else no_gain(trend)


def flat_unless_good(
    trace: Trace, trend: Standing, values: Array, level: OutcomeChange, course: Course
) -> Standing:
    """Return a flat standing, unless the log has a sign that its level may be a good one.

    Blocks of a smoothed outcome scatter by its own swings: its last fifth has to tell the same.
    """
    ends_below = trend.first - trend.last > trend.material
    if course.gain > max(trend.material, CLEAR_GAIN_SD * course.noise) and not ends_below:
        return trend  # it moved and came back: whether it kept its gain is for other rules
    flat = replace(trend, state="flat", why="", low=level.low, high=level.high)
    if knows_way(trace, trend.metric, values):
        return flat
    if trend.last - trend.first > trend.material or may_be_good(trace, trend.metric):
        return unclear_level(trend)
    return flat if tells_poor(trace, trend.metric, values) else no_gain(flat)


def may_be_good(trace: Trace, name: str) -> bool:
    """Return True if the log has a sign that an outcome which never moved is a good one.

    Of 207 published curves 40 are flat by blocks. Of these 32 never learned, seven lost, swung or
    crashed, and one began at a good level. A policy that had learned before its log begins is sure
    from the first rows on, has the best possible outcome again and again, or the training's return
    rises beside a flat evaluation. A few values may be the start of a run.
    """
    values = trace[name].finite().values
    best, worst = float(values.max()), float(values.min())
    is_bound = best > worst and float((values == best).mean()) >= MIN_STUCK_TOP_SHARE
    is_bound = is_bound and float(values.mean()) >= (best + worst) / 2
    if len(values) < MIN_GAIN_POINTS or is_bound or _is_sure_at_first(trace):
        return True
    is_evaluation = name == EVAL_OUTCOME and RETURN.name in trace and not _explores_less(trace)
    return is_evaluation and standing(trace, of=RETURN.name).improves


def _explores_less(trace: Trace) -> bool:
    """Return True if the share of random actions falls by a fifth of all actions or more."""
    epsilon = trace.numbers(EPSILON.name)
    levels = None if epsilon is None else first_last_change(epsilon.values)
    return levels is not None and levels[0] - levels[1] >= 0.2  # as said


def _is_sure_at_first(trace: Trace) -> bool:
    entropy, most = trace.numbers(ENTROPY.name), max_entropy(trace)
    if entropy is None or most is None:
        return False
    # An untrained policy is nearly uniform.
    return float(np.median(entropy.values[:CURVE_START_POINTS])) <= 0.5 * most.value


def _likely_standing(
    trace: Trace, trend: Standing, values: Array, block_change: OutcomeChange, course: Course
) -> Standing:
    """Return the standing of an outcome of which the blocks prove nothing.

    One that rose significantly and ends half of that gain below its best has fallen back, unless it
    is a mean over the last episodes of which few have ended.
    """
    series = trace[trend.metric].finite()
    is_lost = block_change.stands_out and 0.5 <= block_change.share_lost < np.inf
    is_lost = is_lost and block_change.best - trend.last >= trend.material
    # The first sixth of a curve that rose at once is no start.
    is_lost = is_lost and course.loss >= MIN_SHARE_LOST * course.total_gain
    if is_lost and series.steps[-1] >= first_full_step(trace, trend.metric, series):
        return replace(trend, state="fallen back", why="", best=block_change.best)
    level = _likely_level(trace, trend, values, course)
    if level is not None:
        flat = flat_unless_good(trace, trend, values, level, course)
        return no_gain(flat) if flat.state == "flat" else flat
    return replace(trend, why=trend.why + _more(trend.metric, block_change))


def _likely_level(
    trace: Trace, trend: Standing, values: Array, course: Course
) -> OutcomeChange | None:
    """Return the change of an outcome that excludes a large gain and shows no medium one.

    None where it shows one, where it swings, and where the task's span tells.
    """
    swings = falls(course) > 2  # again and again
    gained = trend.low > 0 or trend.last - trend.first > trend.material
    if swings or gained or knows_way(trace, trend.metric, values):
        return None
    large = 0.8  # Cohen 1988: a large effect
    max_sd, anew = max_episode_sd(trace, trend.metric), trend.metric == EVAL_OUTCOME
    level = outcome_change(values, min_sd=large, max_sd=max_sd, anew=anew)
    if level is None or level.answer != "flat" or level.size > MIN_GAIN_SD or _leans_up(level):
        return None
    sd = (level.last - level.first) / level.size if level.size else 0.0
    return level if level.best - level.first <= large * sd else None


def small_rise(now: Standing, found: OutcomeChange) -> Standing:
    """Say of a rise that is proven, and small, that nobody can tell whether it is learning."""
    change = f"{found.low:+.3g} to {found.high:+.3g} (95 %)"
    why = f"{label(now.metric)} rises by little: {change}, and {now.material:.3g} would count"
    return replace(now, state="unknown", why=why)


def tells_poor(trace: Trace, name: str, values: Array) -> bool:
    """Tell whether a flat outcome is known to be a poor one.

    A training's return begins with an untrained policy; the first evaluation is of one that has
    trained, so that its level may be good. There, three things tell: the environment's span, a
    return of exactly zero throughout, which no reward has reached, and a training's return that
    rose, and to well above the evaluation.
    """
    if name != EVAL_OUTCOME or not values.any() or task(trace, name, values) is not None:
        return True
    trained = trace.get(RETURN.name)
    levels = None if trained is None else first_last_change(trained.finite().values)
    return levels is not None and levels[0] < levels[1] and values.mean() < sum(levels) / 2


def stands_where_training_rose(trace: Trace) -> bool:
    """Return True if evaluations are steadily as good as what the training's return rose to.

    The training's return tells how far the task goes: what the evaluations change by is less than
    a tenth of that.
    """
    evaluation = trace.get(EVAL_OUTCOME)
    if (
        evaluation is None
        or len(evaluation.finite()) < MIN_OUTCOME_POINTS
        or RETURN.name not in trace
    ):
        return False
    if _explores_less(trace):
        return False  # the training's return rises towards the evaluation's by that alone
    rise = standing(trace, of=RETURN.name)
    if not (rise.improves or rise.state == "holding its best"):
        return False
    values = evaluation.finite().values
    course = block_means(values, max(len(values) // CURVE_BLOCKS, 1))
    gain = rise.last - min(rise.first, float(trace[RETURN.name].finite().values[0]))
    return bool(gain > 0 and course.min() >= rise.last - MAX_RISE_DISTANCE * gain)


def unclear_level(trend: Standing) -> Standing:
    """Say of a flat outcome that nobody can tell whether its level is a good one."""
    name, ends = label(trend.metric), f"{trend.first:.4g} to {trend.last:.4g}"
    reason = f"{name} is flat, {ends}, and whether that is a good level is not known{TASK_HINT}"
    return replace(trend, state="unknown", why=reason)


def change(trace: Trace, name: str, values: Array, material: float) -> OutcomeChange | None:
    """Test an outcome by blocks, with the least gain that counts as the margin.

    Where it is a single value's scatter, that of the blocks, which holds slow noise, does as well.
    """
    anew = name == EVAL_OUTCOME
    max_sd = max_episode_sd(trace, name)
    known = knows_way(trace, name, values)
    result = None if known else outcome_change(values, max_sd=max_sd, anew=anew)
    if result is not None and result.answer == "flat":
        return result
    return outcome_change(values, margin=material, anew=anew)


def _counts(trace: Trace, trend: Standing, values: Array, block_change: OutcomeChange) -> bool:
    """Tell whether a significant rise is learning: by the task's span, else by its own scatter.

    A rise that is small beside the scatter of single values has to be proven well.
    """
    gain, half = block_change.last - block_change.first, (block_change.high - block_change.low) / 2
    proven = not knows_way(trace, trend.metric, values) and gain >= PROVEN_GAIN_FACTOR * half
    return gain >= trend.material or proven


def _more(name: str, block_change: OutcomeChange) -> str:
    """Say how many more points would tell, if the change goes on as it is."""
    if not 0 < block_change.more <= MAX_MORE_FACTOR * block_change.points:
        return ""
    return f"; about {block_change.more:,} more points of the {label(name)} may tell"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The levels of a fall and of the end, and the step of the lowest level."""

    best: float
    lowest: float
    last: float
    step: int


def recovery(trace: Trace, material: float) -> Recovery | None:
    """Return how a return recovered from a fall; None where it did not.

    It had gained three times `material` and lost as much within a tenth of the run; since then it
    is proven to rise, and stands above its start and above half of what it had lost. Such a fall is
    that of a self-play opponent that was replaced, of the next stage of a curriculum, or of weights
    that were reset.
    """
    picked = outcome(trace)
    if picked is None or picked[0] != RETURN.name or len(picked[1]) < LONG_CURVE:
        return None
    series = picked[1]
    width = len(series) // CURVE_BLOCKS
    with np.errstate(over="ignore"):
        course = block_means(series.values, width)
    if np.abs(course).max() > MAX_BLOCK_LEVEL:
        return None
    bottom = int((np.maximum.accumulate(course) - course).argmax())
    top = int(course[: bottom + 1].argmax())
    best, lowest, last = course[top], course[bottom], course[-END_BLOCKS:].mean()
    min_fall = PLAIN_CHANGE_FACTOR * max(material, scatter_of_window(trace, RETURN.name))
    fall = course[max(top - MAX_FALL_BLOCKS, 0) : bottom + 1]
    sudden = (fall[:-MAX_FALL_BLOCKS] - fall[MAX_FALL_BLOCKS:]).max(initial=0.0)
    if min(best - lowest, best - course[0]) < min_fall or sudden < 0.5 * (best - lowest):
        return None
    start_index = len(series) - (len(course) - bottom) * width
    later_change = outcome_change(series.values[start_index:], margin=material)
    rises = later_change is not None and later_change.answer == "rose"
    late = len(course) - 1 - bottom < MIN_RISE_BLOCKS
    if late or not rises or last - lowest < 0.5 * (best - lowest) or last < course[0]:
        return None
    return Recovery(float(best), float(lowest), float(last), int(series.steps[start_index]))


def rising_again(trend: Standing, rise: Recovery) -> Standing:
    """Return a standing that says so, with the levels since the fall."""
    reason = (
        f"fell from {rise.best:.4g} to {rise.lowest:.4g} by step {rise.step:,} and has risen "
        f"since, to {rise.last:.4g}"
    )
    return replace(trend, state="rising", why=reason, first=rise.lowest, last=rise.last)


def lost_again(trace: Trace) -> Standing | None:
    """Return the standing of an outcome that rose over the run as a whole, and lost that again.

    None where it holds what it gained. For the run's verdict: the rise is real, and so is its end.
    """
    trend, picked = standing(trace), outcome(trace)
    if picked is None or trend.state != "rising":
        return None
    values = picked[1].values
    anew = trend.metric == EVAL_OUTCOME
    min_loss = max(trend.material, slow_swing(trace, trend.metric, trend.material_from))
    fall = find_fall_back(values, min_loss) or find_proven_loss(values, min_loss, anew=anew)
    if fall is None or recovery(trace, trend.material) is not None:
        return None
    if not anew and course_of(values).keeps(min_loss):
        return None  # the first level of the fall is one that had been learned already
    return replace(trend, state="fallen back", last=up(trend.metric) * fall.last)
