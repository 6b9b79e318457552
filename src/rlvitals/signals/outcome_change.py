"""Test whether an outcome rose, stayed flat, was lost from its best, or fell.

The finite values are averaged over blocks of at least twice their autocorrelation time, so that
smoothed and raw logs of one run give the same answer. Only differences are used: the answer is
invariant to an offset and a positive scale. The largest and the smallest value are clipped to
the next in rank, so that one outlier does not change the answer.
"""

import math
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import (
    FLOAT_ROUNDING,
    Array,
    clip_extremes,
    finite,
    is_constant,
    scale_to_unit,
    unscale,
)
from rlvitals.signals.noise import SHRINKAGE_LINE, line_fit, persistence
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

Answer = Literal["rose", "flat", "lost", "fell", "cannot tell"]

MIN_CHANGE_POINTS = 10  # values
MIN_OUTCOME_BLOCKS, MAX_OUTCOME_BLOCKS = 9, 30  # three or more in each third
MEMORIES_PER_BLOCK = 2.0  # autocorrelation times in a block: their means are nearly independent
# Cohen 1988: half a standard deviation of one value is a medium effect. An equivalence test of a
# smaller margin needs more than the hundred episodes that short runs have.
MIN_GAIN_SD = 0.5
MIN_LEVEL_SD = 4.0  # sd of a block: the best of 30 normal ones stays below 3.6 in 99 of 100
MAX_STRETCHES, MIN_STRETCH_POINTS = 6, 8  # of the lines around which autocorrelation is measured
MIN_SHARE_LOST = 1 / 3  # of the gain
BOOTSTRAP_DRAWS = 999
MEDIAN_BLOCKS = 5  # blocks of a running median


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """The answer and its statistics; higher is better (negate a loss)."""

    answer: Answer
    points: int  # finite values
    blocks: int
    first: float  # mean of the first third of the blocks
    last: float  # mean of the last third; of the last sixth for `lost`
    best: float  # largest mean of a sixth of the blocks in a row
    low: float  # 95 % interval of last - first third
    high: float
    size: float  # last - first third in sd of a single value; infinite without noise
    share_lost: float  # (best - last) / (best - first sixth): infinite without a gain
    chance: float  # p-value of so large a fall from the best of all sixths; 1 where not tested
    more: int  # values still needed for an answer; 0 where there is one
    stands_out: bool  # a later level is significantly above the start


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Block means around 0 and their statistics, in the scale of the test."""

    means: Array  # [blocks]
    length: int  # values per block
    needed: int  # values per block that would make the blocks independent
    start: float  # median of the run's very first values
    anew: bool  # each value is an evaluation of its own: slow changes are those of the policy

    @property
    def head(self) -> Array:
        return self.means[: self.means.size // 3]

    @property
    def tail(self) -> Array:
        return self.means[-(self.means.size // 3) :]

    @property
    def gain(self) -> float:
        return float(self.tail.mean() - self.head.mean())

    @property
    def scatter(self) -> float:
        """Standard deviation of a block within the first and the last third."""
        return math.sqrt((float(self.head.var(ddof=1)) + float(self.tail.var(ddof=1))) / 2)

    @property
    def one_value(self) -> float:
        """Standard deviation of a single value, before any smoothing."""
        return self.scatter * math.sqrt(self.length)

    @property
    def size(self) -> float:
        """Gain in standard deviations of a single value; infinite without noise."""
        if abs(self.gain) <= FLOAT_ROUNDING:
            return 0.0
        sd = self.one_value
        return self.gain / sd if sd else math.copysign(math.inf, self.gain)

    def single_sd(self, limit: float) -> float:
        """Return `one_value`; at most `limit` where blocks are shorter than the values' memory.

        There blocks scatter by the curve itself, which the root of their length would scale as if
        it were noise.
        """
        return self.one_value if self.needed <= self.length else min(self.one_value, limit)

    @property
    def half(self) -> float:
        """Half the interval of the gain: Student's t on the blocks of two thirds."""
        third = self.head.size
        return t_quantile(0.95, 2 * third - 2) * self.scatter * math.sqrt(2 / third)

    @property
    def noise(self) -> float:
        return noise_sd(self.means) or 0.0

    @property
    def sixth(self) -> int:
        return max(self.means.size // 6, 2)

    @property
    def course(self) -> Array:
        """Moving averages over a sixth of the blocks."""
        return np.convolve(self.means, np.ones(self.sixth) / self.sixth, "valid")

    def moves(self, gain: float) -> bool:
        """Return True if a gain is significant; dependent blocks have a higher threshold."""
        # sd of a block: a change that is significant in dependent blocks too
        threshold = self.half if self.needed <= self.length else 4.0 * self.scatter
        return gain > max(threshold, FLOAT_ROUNDING)

    def stands_out(self) -> bool:
        """Return True if a later level is significantly above the start, even of a bent curve.

        Compares the later blocks with the first third, and the last third with the first values.
        """
        steady = min(float(self.head.std(ddof=1)), float(self.tail.std(ddof=1)))
        best = float(self.means[self.head.size :].max() - self.head.mean())
        level = max(best, float(np.median(self.tail)) - self.start)
        return level > MIN_LEVEL_SD * max(self.noise, steady)

    def fall(self, min_change: float, *, sure: bool) -> tuple[float, float]:
        """Return the share of the gain that is lost at the end, and its p-value.

        The p-value is 1 where the gain or the loss is below `min_change`, or not permanent. A step
        looks like slow noise: unless `sure` excludes slow noise, only a large fall counts.
        """
        course = self.course
        top = int(course.argmax())
        gain, loss = float(course[top] - course[0]), float(course[top] - course[-1])
        share = (
            0.0 if loss <= FLOAT_ROUNDING else loss / gain if gain > FLOAT_ROUNDING else math.inf
        )
        large = min(gain, loss) > max(min_change, FLOAT_ROUNDING) and (
            sure or loss > 6.0 * self.noise  # sd of a block: slow noise caused falls of 4
        )
        above_noise = gain > MIN_LEVEL_SD * self.noise * math.sqrt(2 / self.sixth)
        high = self.means >= float(course[top]) - loss / 2
        blocks_below = high.size - int(high.nonzero()[0][-1]) - 1 if high.any() else high.size
        # A level lasts a third of the run. A shorter peak may return until half the run is below.
        lasts = 3 * int(high.sum()) >= high.size or 2 * blocks_below >= high.size
        lasts = lasts or (self.anew and blocks_below >= 0.2 * high.size)  # of the evaluations
        stays = blocks_below >= self.sixth and lasts
        # Dependent blocks move together: the bootstrap, which draws single blocks, does not apply.
        tested = self.needed <= 2 * self.length and share >= MIN_SHARE_LOST
        if not (tested and large and above_noise and stays):
            return share, 1.0
        return share, _chance(self.means, self.sixth, loss)


def outcome_change(
    values: Array,
    *,
    margin: float | None = None,
    min_sd: float = MIN_GAIN_SD,
    max_sd: float = math.inf,
    anew: bool = False,
) -> OutcomeChange | None:
    """Test the change of an outcome over a complete run. `None` for fewer than 10 finite values.

    `margin` is the smallest relevant gain, in the unit of the outcome; by default `min_sd` standard
    deviations of a single value, estimated from the scatter of block means, which does not depend
    on smoothing (`max_sd`: see `_Blocks.single_sd`). In this order: `lost` where a third of the
    gain is lost late and a bootstrap of the blocks rarely gives such a fall; `rose` and `fell`
    where the interval of last - first third excludes 0; `flat` where its upper end is below the
    margin and no later level above the first third. `anew`: evaluations, of independent noise.
    """
    x = finite(values)
    if x.size < MIN_CHANGE_POINTS:
        return None
    unit, exponent = scale_to_unit(clip_extremes(x))
    centre = float(np.median(unit))
    blocks = _coarse(fine := _blocks(unit - centre), unit - centre)
    gain, half = blocks.gain, blocks.half
    short = _blocks(unit - centre, anew=True) if anew else fine
    with np.errstate(over="ignore"):  # a margin beyond every float: nothing counts
        unit_margin, unit_sd = (float(np.ldexp(v, -exponent)) for v in (margin or 0.0, max_sd))
    by_scatter = (blocks.single_sd(unit_sd), short.noise * math.sqrt(short.length))
    min_gain, min_loss = (unit_margin if margin is not None else min_sd * sd for sd in by_scatter)
    share, chance = short.fall(min_loss, sure=anew or blocks is fine)
    answer: Answer = "lost" if chance <= 0.01 else _answer(blocks, min_gain)
    end = short.course[-1] if answer == "lost" else blocks.tail.mean()
    levels: tuple[float, ...] = blocks.head.mean(), end, short.course.max()
    levels = (*(level + centre for level in levels), gain - half, gain + half)
    first, last, best, low, high = (unscale(level, exponent) for level in levels)
    more = _more(x.size, gain, half, min_gain) if answer == "cannot tell" else 0
    counts, size, above = (x.size, blocks.means.size), blocks.size, blocks.stands_out()
    return OutcomeChange(
        answer, *counts, first, last, best, low, high, size, share, chance, more, above
    )


def single_value_sd(values: Array, window: float | None = None) -> float:
    """Return the standard deviation of a single value before any smoothing; 0 for a constant.

    A moving average over w values scatters sqrt(w) times less than a single value, and
    2 w / sqrt(6) times less in second differences, which exclude the curve itself. `window` is w
    in values where it is known. It also follows from the scatter around lines through stretches
    of the series, and from the autocorrelation time, 2 w - 1. A bent curve makes the last two too
    large: the smallest of all is used. Computed over the finite values, of which the extremes are
    clipped; 0 for fewer than 8.
    """
    x = finite(values)
    x = x[np.append(True, x[1:] != x[:-1])] if x.size else x  # a repeated mean holds nothing new
    x, exponent = scale_to_unit(clip_extremes(x))
    noise = noise_sd(x, order=2)
    if not noise or x.size < MIN_STRETCH_POINTS:
        return 0.0
    count = max(min(x.size // MIN_STRETCH_POINTS, MAX_STRETCHES), 1)
    lines = (line_fit(stretch)[1] for stretch in np.array_split(x, count))
    scatter = float(np.median([line.std(ddof=2) for line in lines]))
    widths = [min(scatter / noise, x.size) ** 2 * 2 / 3, (_memory(x) + 1) / 2]
    width = min(widths if window is None else [window, *widths])
    sd = noise if width <= MEMORIES_PER_BLOCK else noise * width * math.sqrt(6) / 2
    return unscale(sd, exponent)


def starts_below(values: Array) -> bool:
    """Return True if independent values begin significantly below the level of all the rest.

    The first hundredth, at least 30 values, is compared with the mean of the others. False for
    fewer than 300 values and for smoothed ones, whose first values are dependent.
    """
    x, _ = scale_to_unit(clip_extremes(finite(values)))
    count = max(x.size // 100, 30)  # their mean is nearly normal
    if x.size < 10 * count or not _is_independent(x):
        return False
    error = float(x[count:].std()) / math.sqrt(count)
    return float(x[count:].mean() - x[:count].mean()) > 3.1 * error  # one chance in a thousand


def line_gain(values: Array) -> tuple[float, float] | None:
    """Return the gain of independent values by a line, and half its 95 % interval.

    The gain of the last third over the first, in standard deviations of a value around the line,
    which uses every value: the interval is narrower than that of a few blocks. The largest and the
    smallest value are clipped. None for fewer than 10 finite values, constants, and values that
    depend on those before.
    """
    x, _ = scale_to_unit(clip_extremes(finite(values)))
    if x.size < MIN_CHANGE_POINTS or is_constant(x) or not _is_independent(x):
        return None
    slope, residual = line_fit(x)
    sd = math.sqrt(float(residual @ residual) / (x.size - 2))
    if sd <= FLOAT_ROUNDING:
        return None
    # The thirds' centres are two thirds of the series apart.
    half = t_quantile(0.95, x.size - 2) * 2 / 3 * math.sqrt(12 / x.size)
    return slope * x.size * 2 / 3 / sd, half


def _answer(blocks: _Blocks, min_gain: float) -> Answer:
    if blocks.moves(blocks.gain):
        return "rose"
    if blocks.moves(-blocks.gain) and -blocks.gain > min_gain:
        return "fell"
    small = blocks.gain + blocks.half <= max(min_gain, FLOAT_ROUNDING)
    # A best level two margins above the first third is a gain: the line is not flat.
    low = float(blocks.course.max() - blocks.head.mean()) <= max(2 * min_gain, FLOAT_ROUNDING)
    return "flat" if small and low and not blocks.stands_out() else "cannot tell"


def _blocks(values: Array, *, anew: bool = False) -> _Blocks:
    shortest, longest = values.size // MAX_OUTCOME_BLOCKS, values.size // MIN_OUTCOME_BLOCKS
    length, needed = max(shortest, 1), 1
    if not anew:
        # Blocks of this length are independent.
        needed = math.ceil(MEMORIES_PER_BLOCK * _memory(values))
        # Independent points need no averaging, and a short log has too few for it.
        needed = 1 if needed <= MEMORIES_PER_BLOCK else needed
        length = max(min(max(needed, shortest), longest), 1)
    start = values[: max(values.size // (2 * MAX_OUTCOME_BLOCKS), 3)]
    return _Blocks(block_means(values, length), length, needed, float(np.median(start)), anew)


def _coarse(fine: _Blocks, values: Array) -> _Blocks:
    """Return longer blocks where the blocks show slow noise that point-to-point noise hides."""
    memory = _memory(fine.means)
    if memory <= MEMORIES_PER_BLOCK:
        return fine
    needed = max(fine.needed, math.ceil(fine.length * memory))
    length = max(fine.length, min(needed, values.size // MIN_OUTCOME_BLOCKS))
    return _Blocks(block_means(values, length), length, needed, fine.start, anew=False)


def _memory(values: Array) -> float:
    """Return the autocorrelation time in values, at least 1, around lines through stretches.

    Around a single line, a rise and its loss would look like slow noise.
    """
    if is_constant(values):
        return 1.0
    count = max(min(values.size // MIN_STRETCH_POINTS, MAX_STRETCHES), 1)
    residual = np.concatenate([line_fit(stretch)[1] for stretch in np.array_split(values, count)])
    free, slope = SHRINKAGE_LINE
    rho = persistence(residual, (count * free, count * slope), 0.0)
    return min((1 + rho) / (1 - rho), values.size) if rho < 1 else float(values.size)


def _is_independent(values: Array) -> bool:
    """Return True for values with the short autocorrelation time of those that nothing smoothed."""
    return _memory(values) <= 1.5


def _chance(means: Array, sixth: int, loss: float) -> float:
    """Return the p-value of a fall from the best level to the last.

    A bootstrap of the blocks' residuals around a running median, which a step does not affect.
    The best level is selected in each draw, as in the log.
    """
    padded = np.pad(means, MEDIAN_BLOCKS // 2, mode="edge")
    smooth = np.median(sliding_window_view(padded, MEDIAN_BLOCKS), axis=1)
    # Residuals around a running median of five normal values are 1.06 times too small.
    residuals = (means - smooth) * 1.06
    if float(np.abs(residuals).max()) <= FLOAT_ROUNDING:
        return 1 / (1 + BOOTSTRAP_DRAWS)
    draws = np.random.default_rng(0).choice(residuals, (BOOTSTRAP_DRAWS, means.size))
    sums = np.cumsum(np.pad(draws, ((0, 0), (1, 0))), axis=1)
    levels = (sums[:, sixth:] - sums[:, :-sixth]) / sixth
    falls = levels.max(axis=1) - levels[:, -1]
    return (1 + int((falls >= loss - FLOAT_ROUNDING).sum())) / (1 + BOOTSTRAP_DRAWS)


def _more(points: int, gain: float, half: float, min_gain: float) -> int:
    """Return how many more values would show a gain, or one below the margin.

    The width of the interval falls with the square root of the number of values.
    """
    distance = max(abs(gain), abs(min_gain - gain), FLOAT_ROUNDING)
    ratio = (half / distance) ** 2
    # No recommendation beyond a million times the values.
    return math.ceil(points * max(ratio - 1, 0.0)) if ratio < 1e6 else 0
