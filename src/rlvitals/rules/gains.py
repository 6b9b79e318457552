"""A test for batch rewards: a mean over fresh prompts rises, levels off or stays.

Each batch of a language model's training draws new prompts, so the noise of its mean reward is new
at each point, unlike that of a mean over the last hundred episodes. The level of a stretch is
then known to within the noise over the root of its points, or as well as neighbouring stretches
agree, whichever is worse. Nothing here depends on where zero is, or on the unit.
"""

import math
from dataclasses import replace

import numpy as np

from rlvitals.metrics.catalogue.outcome import EVAL_RETURN, RETURN, REWARD, SUCCESS_RATE
from rlvitals.metrics.catalogue.rollouts import GENERATION_BATCHES
from rlvitals.rules.curves import describe_earlier_learning
from rlvitals.rules.going_on import liveness
from rlvitals.rules.remembered import cache_by_trace
from rlvitals.rules.spent import too_early
from rlvitals.rules.standing import MIN_OUTCOME_POINTS, Standing, label
from rlvitals.rules.untaught import at_top
from rlvitals.signals.finite import FLOAT_ROUNDING, Array
from rlvitals.signals.noise import SHRINKAGE_LINE, line_fit, persistence
from rlvitals.signals.outcome_change import MIN_SHARE_LOST, outcome_change
from rlvitals.signals.outcome_course import LateLoss, late_loss
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

MIN_GAIN_POINTS = 20  # with fewer no block is a level
GAIN_BLOCKS = 10  # stretches over which levels are taken
LEVEL_BLOCKS = 3  # neighbouring blocks whose mean is a level
MIN_GAIN_ERRORS = 3.5  # standard errors: two comparisons exceed it by chance once in 2,000
INTERVAL_ERRORS = 2.0  # standard errors to each end of an interval
MIN_LEVEL_BATCHES = 25  # fewer bound no level
# Standard errors of a slope. With a proven gain of the last third over the first, 1 to 5 of 1000
# series of independent values pass, and 9 to 20 of lag-1 correlation 0.3 (simulated, 10 to 300).
MIN_SLOPE_ERRORS = 3.0
MAX_LEVEL_SLOPE_ERRORS = 2.0
# Cohen 1988: half a standard deviation is a medium effect. What a complete run gained is less.
MAX_FLAT_SD = 0.5
# Words of settings that select prompts by their difficulty, or drop groups without contrast.
FILTER_SETTINGS = (
    "filter_groups", "dynamic_sampling", "dynamic_filter", "zero_std_filter", "difficulty",
)  # fmt: skip
MIN_ANSWER_LOSS = 0.2  # share of all answers
MIN_LATE_BATCHES = 24  # batches
MIN_ANSWER_SHARE = 0.25  # of the gain
# Standard errors. Of batches of 4 to 16 answers, half of them right, at most 20 in 10,000 runs of
# 30 to 200 batches pass (simulated).
MIN_ANSWER_ERRORS = 4.0
MIN_SHARE_EVALUATIONS = 20
MIN_SOLVED_LEVEL = 0.9  # share of right answers, from the start: little is left to learn
MIN_TENTH_SOLVED = 0.8  # of the episodes of each tenth of a run that succeeds throughout


@dataclass(frozen=True, slots=True)
class Gain:
    """The levels of a series over its first and last stretches, in its own unit."""

    first: float  # the lower of the first block and the first three
    last: float  # the last three blocks
    best: float  # the highest three neighbouring blocks
    error: float  # standard error of a difference between two levels of three blocks
    proven: bool  # the last level is above the first beyond what chance gives
    goes_on: bool  # it is above the middle's as well
    falls: bool  # the last level is below the first, or below the best, beyond chance

    @property
    def size(self) -> float:
        """Return the change from the first level to the last."""
        return self.last - self.first

    @property
    def change_high(self) -> float:
        """Return the high end of the change's interval."""
        return self.size + INTERVAL_ERRORS * self.error


def gain(values: Array) -> Gain | None:
    """Compare the first and the last stretches of finite `values` [n]; None for fewer than 20."""
    if len(values) < MIN_GAIN_POINTS:
        return None
    count = min(GAIN_BLOCKS, len(values) // 3)  # points in each block, at least
    course = np.array([block.mean() for block in np.array_split(values, count)])
    scatter = (noise_sd(values) or 0.0) / math.sqrt(len(values) / count)
    rounding = FLOAT_ROUNDING * float(np.abs(values).max())  # means of equal values differ by it
    noise = max(scatter, noise_sd(course) or 0.0, rounding)
    levels = np.convolve(course, np.full(LEVEL_BLOCKS, 1 / LEVEL_BLOCKS), mode="valid")
    # Levels of three blocks, and of one against three.
    level_error = noise * math.sqrt(2 / LEVEL_BLOCKS)
    single_error = noise * math.sqrt(1 + 1 / LEVEL_BLOCKS)
    early_level, start, last = float(levels[0]), float(course[0]), float(levels[-1])
    is_proven = (
        last - early_level > MIN_GAIN_ERRORS * level_error
        or last - start > MIN_GAIN_ERRORS * single_error
    )
    best = float(levels.max())
    middle = float(levels[len(levels) // 2])
    # One error more: the best is chosen for being best.
    below_best = best - last > (MIN_GAIN_ERRORS + 1) * level_error
    return Gain(
        first=min(early_level, start),
        last=last,
        best=best,
        error=level_error,
        proven=bool(is_proven and last > start),
        goes_on=last - middle > INTERVAL_ERRORS * level_error,
        falls=bool(below_best or early_level - last > MIN_GAIN_ERRORS * level_error),
    )


def slope_errors(values: Array) -> float:
    """Return the slope of finite `values` [n], n > 2, in its standard errors.

    The noise is taken for independent, as that of means over new prompts is.
    """
    count = values.size
    slope, residual = line_fit(values)
    spread = math.sqrt(float(residual @ residual) / (count - 2))
    rounding = FLOAT_ROUNDING * float(np.abs(values).max())
    error = max(spread, rounding) / math.sqrt(count * (count**2 - 1) / 12)
    return slope / error if error else 0.0


def has_steady_rise(values: Array) -> bool:
    """Return True if batch means rise by the slope of a line and by the levels of their thirds.

    By a steeper slope alone, its error widened by what memory they have, where thirds tell nothing:
    the blocks of a short run are few.
    """
    change = outcome_change(values)
    if change is None or (slope := slope_errors(values)) < MIN_SLOPE_ERRORS:
        return False
    if change.answer == "rose":
        return True
    memory = persistence(line_fit(values)[1], SHRINKAGE_LINE, 0)
    # Of 10 to 19 independent values up to 3 in 1,000 pass, of more 1 in 2,000, as for levels; of
    # lag-1 correlation 0.3 up to 8 in 1,000 (simulated).
    is_steep = slope * math.sqrt((1 - memory) / (1 + memory)) >= MIN_GAIN_ERRORS
    return is_steep and change.answer == "cannot tell"


def no_gain(trend: Standing) -> Standing:
    """Return a flat standing that says no more than that: its level may be a good one."""
    ends = f"{trend.first:.4g} to {trend.last:.4g}"
    return replace(trend, state="flat", why=f"shows no gain: {ends}")


def is_likely_flat(trend: Standing) -> bool:
    """Return True for a level that leaves a small gain open: a note, and no alarm."""
    return trend.state == "flat" and trend.why.startswith("shows no gain")


def rises_at_once(values: Array, min_gain: float) -> bool:
    """Return True if 10 to 19 batch means rise within their first third and stay there.

    By a t-test of the last third over the first two rows, one chance in two thousand, with the
    scatter of all rows after the first third. The gain exceeds `min_gain` and does not go back.
    """
    count = len(values)
    if not MIN_OUTCOME_POINTS <= count < MIN_GAIN_POINTS:
        return False
    after, width = values[count // 3 :], count // 3
    scatter = float(after.std(ddof=1))
    error = scatter * math.sqrt(1 / 2 + 1 / width)
    gain_size = float(values[-width:].mean() - values[:2].mean())
    holds_level = (
        float(after[:width].mean()) - float(values[-width:].mean()) <= INTERVAL_ERRORS * scatter
    )
    return holds_level and gain_size > max(t_quantile(0.999, len(after) - 1) * error, min_gain)


def level_standing(
    trace: Trace, current: Standing, series: Series, response_sd: float = 0.0
) -> Standing:
    """Judge a complete run whose trend is unknown: flat where its levels are proven equal.

    Equal to within half the scatter of its batches, or half of `response_sd`, the logged standard
    deviation of the rewards of single responses. Not early in a run, not where most batches earn
    the most that any did, and not where the end of a long run is all that is logged. Levels that
    are not proven equal, but gained little and exclude a large gain, are flat with a reason.
    """
    values = series.values
    reason = describe_earlier_learning(trace) or at_top(trace, 0)
    if current.state != "unknown" or reason or too_early(trace):
        return current
    if len(values) < MIN_LEVEL_BATCHES:
        return _few_batches_standing(current, values, response_sd)
    change, levels = outcome_change(values), gain(values)
    if change is None or levels is None or levels.proven:
        return current
    level = abs(slope_errors(values)) < MAX_LEVEL_SLOPE_ERRORS and change.answer != "lost"
    first, last = change.first, change.last
    flat = replace(
        current, state="flat", why="", first=first, last=last, low=change.low, high=change.high
    )
    if change.answer == "flat" or (level and levels.change_high <= MAX_FLAT_SD * response_sd):
        return flat
    # Cohen 1988: what gained less than a small effect and excludes a large one shows no gain. A
    # medium one is excluded by means of hundreds of prompts alone.
    small_effect, large_effect = 0.2 * response_sd, 0.8 * response_sd
    highest = max(levels.change_high, levels.best - levels.first)
    if level and not levels.falls and levels.size <= small_effect and highest <= large_effect:
        return no_gain(flat)
    # A mean reward without the scatter of its responses has no other test.
    is_untested = not response_sd and current.metric == REWARD.name and level and not levels.falls
    return _standing_of_no_rise(current, values) if is_untested else current


def _few_batches_standing(current: Standing, values: Array, response_sd: float) -> Standing:
    """Return a flat standing for 10 to 24 batches without a slope that exclude a medium gain.

    Rows of a trainer that logs seldom: each is a mean over many batches, and scatters little. Or
    that end no higher than they began.
    """
    change = outcome_change(values)
    if change is None or change.answer in {"rose", "lost"}:
        return current
    first, last = change.first, change.last
    # What rises at once and then stays is a gain over the first rows alone.
    has_gained = last - min(first, float(values[:2].mean())) > 0.2 * response_sd
    has_slope = abs(slope_errors(values)) >= MAX_LEVEL_SLOPE_ERRORS
    if has_gained or has_slope or change.high > MAX_FLAT_SD * response_sd:
        return _standing_of_no_rise(current, values)
    return no_gain(replace(current, first=first, last=last, low=change.low, high=change.high))


def _standing_of_no_rise(current: Standing, values: Array) -> Standing:
    """Return a flat standing where values [n] end no higher than they began, else `current`.

    By thirds, by a line and at once; what falls has no level. Of 20 batches that gain one standard
    deviation of theirs from first to last 6 in 100 runs pass, of those that gain two 1 (simulated).
    """
    first, last = (float(third.mean()) for third in np.array_split(values, 3)[::2])
    start, later_values = float(values[:2].mean()), values[2:]
    error = float(later_values.std(ddof=1)) * math.sqrt(1 / 2 + 1 / len(later_values))
    has_gained = last > first or later_values.mean() - start > INTERVAL_ERRORS * error
    if has_gained or not -MAX_LEVEL_SLOPE_ERRORS < slope_errors(values) <= 0:
        return current
    return no_gain(replace(current, first=first, last=last))


def excuse_selected_prompts(trace: Trace, current: Standing) -> Standing:
    """Leave open what a flat mean of batches says that were drawn for their difficulty."""
    if current.state != "flat" or not selects_prompts(trace):
        return current
    level = f"{label(current.metric)} is level, {current.first:.4g} to {current.last:.4g}"
    reason = (
        f"{level}, as it is by construction where prompts are selected by their difficulty: log an"
        " evaluation on fixed prompts"
    )
    return replace(current, state="unknown", why=reason)


@cache_by_trace
def selects_prompts(trace: Trace) -> bool:
    """Return True if prompts or groups are selected by reward, as settings or batch counts show."""
    for key, value in trace.settings.items():
        is_on = str(value).lower() not in {"", "0", "0.0", "false", "none", "null"}
        if is_on and any(term in str(key).lower() for term in FILTER_SETTINGS):
            return True
    batches = trace.numbers(GENERATION_BATCHES.name)
    return batches is not None and float(np.median(batches.values)) > 1


def order_chance(values: Array) -> float:
    """Return the chance that values [n] without a trend rise in as many of their pairs as these.

    Exact for Kendall's S without ties; a tie counts as a pair that falls. For up to ten values.
    """
    n = len(values)
    rising = sum(int((values[i + 1 :] > values[i]).sum()) for i in range(n - 1))
    counts = np.ones(1)  # orders of k values by their number of falling pairs
    for k in range(2, n + 1):
        counts = np.convolve(counts, np.ones(k))
    falling = n * (n - 1) // 2 - rising
    return float(counts[: falling + 1].sum() / counts.sum())


def early_loss(values: Array) -> tuple[float, float] | None:
    """Return the level before and after a loss within the first two evaluations; else None.

    `values` [n] are shares of right answers. Every later one lies below the first by more than a
    fifth of the answers, and by more than any two neighbours differ.
    """
    if len(values) < MIN_SHARE_EVALUATIONS or values.min() < 0 or values.max() > 1:
        return None
    tail = values[2:]
    loss, scatter = float(values[0] - tail.max()), float(np.abs(np.diff(tail)).max())
    if loss < max(MIN_ANSWER_LOSS, scatter):
        return None
    return float(values[0]), float(np.median(tail))


def late_answer_loss(values: Array) -> LateLoss | None:
    """Return the loss of shares of right answers that were lost late in a run; else None.

    `values` [n] are one a batch. Their last tenth lies a fifth of the answers below the best one,
    which is a quarter of what was gained, and more than batches scatter.
    """
    if len(values) < MIN_LATE_BATCHES or values.min() < 0 or values.max() > 1:
        return None
    loss = late_loss(values)
    min_loss = max(MIN_ANSWER_LOSS, MIN_ANSWER_ERRORS * loss.error)
    return loss if loss.loss >= min_loss and loss.share >= MIN_ANSWER_SHARE else None


def after_loss(trend: Standing, values: Array, *, late: bool) -> Standing:
    """Return the standing of shares of right answers [n] that were lost, early or late in a run."""
    is_unproven = trend.state == "unknown" or is_likely_flat(trend)
    levels = early_loss(values) if is_unproven else None
    if levels is not None:
        return replace(trend, state="falling", why="", first=levels[0], last=levels[1])
    loss = late_answer_loss(values) if late and trend.state != "falling" else None
    if loss is None:
        return trend
    return replace(trend, state="fallen back", why="", best=loss.best, last=loss.last)


def few_returns(trace: Trace) -> Standing | None:
    """Return the standing of 8 or 9 returns that rise from one to the next; else None.

    By Kendall's test of their order, at 1 %. Fewer may be the first rows of a longer run: of a run
    that is over, 5 evaluations are enough. Training returns may be moving averages, which rise five
    times in a row by chance in 1 of 16.
    """
    is_over = liveness(trace).live is False
    for name in (RETURN.name, EVAL_RETURN.name, REWARD.name):
        series = trace.numbers(name)
        min_points = (
            MIN_OUTCOME_POINTS // 2
            if is_over and name == EVAL_RETURN.name
            else MIN_OUTCOME_POINTS - 2
        )
        if (
            series is None
            or not min_points <= len(series) < MIN_OUTCOME_POINTS
            or describe_earlier_learning(trace)
        ):
            continue
        if order_chance(series.values) <= 0.01:
            first, last, best = (float(v) for v in (*series.values[[0, -1]], series.values.max()))
            reason = f"rises over {len(series)} rows: {first:.4g} to {last:.4g}"
            return Standing("rising", name, reason, first, last, best)
    return None


def rising_evaluations(trace: Trace) -> Standing | None:
    """Return the standing of 10 evaluations or more whose order rises; else None.

    Each is measured anew, so that without a change any order is as likely as any other: by
    Kendall's test at 0.5 %. The last third is also above the first by a standard deviation within
    thirds, and has kept two thirds of what the best third gained.
    """
    series = trace.numbers(EVAL_RETURN.name, MIN_OUTCOME_POINTS)
    if series is None or describe_earlier_learning(trace):
        return None
    thirds = np.array_split(series.values, 3)
    first, middle, last = (float(third.mean()) for third in thirds)
    scatter = math.sqrt(float(np.mean([third.var(ddof=1) for third in thirds])))
    keeps_gain = last - first >= (1 - MIN_SHARE_LOST) * (max(middle, last) - first)
    if not keeps_gain or last - first <= scatter or order_errors(series.values) < 2.58:
        return None
    return Standing("rising", EVAL_RETURN.name, "", first, last, float(series.values.max()))


def order_errors(values: Array) -> float:
    """Return Kendall's S of values [n] in its standard errors, as of n in a random order."""
    n = len(values)
    pairs = sum(float(np.sign(values[i + 1 :] - values[i]).sum()) for i in range(n - 1))
    return pairs / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)


def succeeds_throughout(trace: Trace) -> bool:
    """Return True if most episodes succeed in each tenth of a run: its reward only scatters."""
    shares = trace.numbers(SUCCESS_RATE.name, MIN_GAIN_POINTS)
    if shares is None or shares.values.min() < 0 or shares.values.max() > 1:
        return False
    tenths = [tenth.mean() for tenth in np.array_split(shares.values, GAIN_BLOCKS)]
    return bool(np.mean(shares.values) >= MIN_SOLVED_LEVEL and min(tenths) >= MIN_TENTH_SOLVED)
