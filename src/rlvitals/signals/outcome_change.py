"""Whether an outcome rose, stayed flat, was lost from its best, or fell: one test over blocks.

The finite values are averaged over blocks of at least twice their autocorrelation time, so that
smoothed and raw logs of one run give the same answer. Values enter by their differences alone:
an offset or a positive scale changes no answer. The largest and the smallest value are set to
their neighbours in rank, so that one outlier changes none either.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlvitals.signals.blocks import block_means
from rlvitals.signals.finite import ROUNDING, Array, finite, is_constant, scaled, unscaled
from rlvitals.signals.noise import SHRINKAGE_LINE, line_fit, persistence
from rlvitals.signals.spread import noise_sd
from rlvitals.signals.student import t_quantile

Answer = Literal["rose", "flat", "lost", "fell", "cannot tell"]

LEAST = 10  # values
FEWEST_BLOCKS, MOST_BLOCKS = 9, 30  # three or more in each third
PER_BLOCK = 2.0  # autocorrelation times in a block: their means are nearly independent
CONFIDENCE = 0.95
# Cohen 1988: half a standard deviation of one value is a medium effect. An equivalence test of a
# smaller margin needs more than the hundred episodes that short runs have.
MARGIN = 0.5
UNREACHABLE = 1e6  # times the values there are: more of them would not tell
LARGE = 4.0  # sd of a block: a change that blocks which depend on each other show as well
OUTSTANDING = 4.0  # sd of a block: the best of 30 normal ones stays below 3.6 in 99 of 100
STRETCHES, SHORTEST_STRETCH = 6, 8  # and values of each, around whose lines noise is looked at
EARLIEST = 3  # values that tell where a run began
LOUD = 6.0  # sd of a block: slow noise beneath them made falls of 4
PEAK = 2.0  # margins: a best level further above the first third is a gain
HELD = 3  # part of the run, one in so many, for which a level is held that can be lost
SINCE = 5  # part of the run for which a level is gone that evaluations had
SHARE_LOST = 1 / 3  # of the gain
LEVEL = 6  # a best or a last level is taken over this part of the blocks, two at least
DRAWS = 999
AROUND = 5  # blocks of a running median
SHRUNK = 1.06  # sd of normal values / sd of their residuals around it
SIGNIFICANT = 0.01


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """The answer, and the numbers that it rests on; higher is better (negate a loss)."""

    answer: Answer
    points: int  # finite values
    blocks: int
    first: float  # mean of the first third of the blocks
    last: float  # mean of the last third; of the last sixth for `lost`
    best: float  # largest mean of a sixth of the blocks in a row
    low: float  # 95 % interval of last - first third
    high: float
    size: float  # last - first third in sd of a single value; infinite without noise
    share_lost: float  # (best - last) / (best - first sixth): infinite where nothing was gained
    chance: float  # p-value of so large a fall from the best of all sixths; 1 where not tested
    more: int  # values that would narrow the interval enough to tell; 0 where the answer is known


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Block means around 0 and what is computed of them, in the scale of the test."""

    means: Array  # [blocks]
    length: int  # values of each
    needed: int  # values that would make them independent
    start: float  # median of the run's very first values
    anew: bool  # each value is measured anew, so that what swings is the policy

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
        """Standard deviation of a block within the thirds that are compared."""
        return math.sqrt((float(self.head.var(ddof=1)) + float(self.tail.var(ddof=1))) / 2)

    @property
    def one_value(self) -> float:
        """Standard deviation of a single value, before any smoothing."""
        return self.scatter * math.sqrt(self.length)

    @property
    def half(self) -> float:
        """Half the interval of the gain: Student's t on the blocks of two thirds."""
        third = self.head.size
        return t_quantile(CONFIDENCE, 2 * third - 2) * self.scatter * math.sqrt(2 / third)

    @property
    def noise(self) -> float:
        return noise_sd(self.means) or 0.0

    @property
    def sixth(self) -> int:
        return max(self.means.size // LEVEL, 2)

    @property
    def course(self) -> Array:
        """Means of a sixth of the blocks in a row, at every place."""
        return np.convolve(self.means, np.ones(self.sixth) / self.sixth, "valid")

    def moves(self, gain: float) -> bool:
        """Tell whether a gain is significant; blocks that are not independent ask for more."""
        least = self.half if self.needed <= self.length else LARGE * self.scatter
        return gain > max(least, ROUNDING)

    def stands_out(self) -> bool:
        """Tell whether a later level stands above the scatter, however wide a bend makes that.

        The later blocks over the first third, or the last third over the run's very start.
        """
        steady = min(float(self.head.std(ddof=1)), float(self.tail.std(ddof=1)))
        best = float(self.means[self.head.size :].max() - self.head.mean())
        later = max(best, float(np.median(self.tail)) - self.start)
        return later > OUTSTANDING * max(self.noise, steady)

    def fall(self, counts: float, *, sure: bool) -> tuple[float, float]:
        """Return the share of the gain that is lost at the end, and how likely it is by chance.

        The chance is 1 where less than `counts` was gained or lost, or not for good. A step looks
        like slow noise: where it is not `sure` that there is none, only a loud fall is one.
        """
        course = self.course
        top = int(course.argmax())
        gained, lost = float(course[top] - course[0]), float(course[top] - course[-1])
        share = 0.0 if lost <= ROUNDING else lost / gained if gained > ROUNDING else math.inf
        large = min(gained, lost) > max(counts, ROUNDING) and (sure or lost > LOUD * self.noise)
        above_noise = gained > OUTSTANDING * self.noise * math.sqrt(2 / self.sixth)
        high = self.means >= float(course[top]) - lost / 2
        since = high.size - int(high.nonzero()[0][-1]) - 1 if high.any() else high.size
        # A short peak is no level that was had, and may come back until half of the run is below.
        held = HELD * int(high.sum()) >= high.size or 2 * since >= high.size
        held = held or (self.anew and SINCE * since >= high.size)
        stays = since >= self.sixth and held
        # Blocks that depend on each other swing as a whole: their fall is no chance of one block.
        tested = self.needed <= 2 * self.length and share >= SHARE_LOST
        if not (tested and large and above_noise and stays):
            return share, 1.0
        return share, _chance(self.means, self.sixth, lost)


def outcome_change(
    values: Array, *, margin: float | None = None, anew: bool = False
) -> OutcomeChange | None:
    """Judge an outcome over the whole of a run. `None` for fewer than 10 finite values.

    `margin` is the least gain that counts, in the outcome's unit; without one it is half the
    standard deviation of a single value, taken from the scatter of block means, which smoothing
    leaves as it is. In this order: `lost` where a third or more of the gain is gone at the end
    and a bootstrap of the blocks' scatter, with the best chosen anew in each draw, hardly ever
    gives such a fall; `rose` and `fell` where the interval of last - first third excludes 0; `flat`
    where its upper end is below the margin and no later level stands above the first third.
    `anew`: the values are evaluations, each measured anew. Their own noise has no memory, so that
    blocks need not be long to show a loss.
    """
    x = finite(values)
    if x.size < LEAST:
        return None
    ordered = np.sort(x)
    unit, exponent = scaled(np.clip(x, ordered[1], ordered[-2]))
    centre = float(np.median(unit))
    fine = _blocks(unit - centre)
    blocks = _coarse(fine, unit - centre)
    gain, half = blocks.gain, blocks.half
    known = 0.0 if margin is None else float(np.ldexp(margin, -exponent))
    least = MARGIN * blocks.one_value if margin is None else known
    falls = _blocks(unit - centre, anew=True) if anew else fine
    own = MARGIN * falls.noise * math.sqrt(falls.length)
    share, chance = falls.fall(own if margin is None else known, sure=anew or blocks is fine)
    answer: Answer = "lost" if chance <= SIGNIFICANT else _answer(blocks, least)
    end = falls.course[-1] if answer == "lost" else blocks.tail.mean()
    levels = (float(blocks.head.mean()), float(end), float(falls.course.max()))
    first, last, best = (unscaled(level + centre, exponent) for level in levels)
    low, high = (unscaled(limit, exponent) for limit in (gain - half, gain + half))
    one = blocks.one_value
    size = 0.0 if abs(gain) <= ROUNDING else gain / one if one else math.copysign(math.inf, gain)
    more = _more(x.size, gain, half, least) if answer == "cannot tell" else 0
    return OutcomeChange(
        answer, x.size, blocks.means.size, first, last, best, low, high, size, share, chance, more
    )


def _answer(blocks: _Blocks, least: float) -> Answer:
    if blocks.moves(blocks.gain):
        return "rose"
    if blocks.moves(-blocks.gain) and -blocks.gain > least:
        return "fell"
    small = blocks.gain + blocks.half <= max(least, ROUNDING)
    # What was gained on the way and lost again is no flat line either.
    low = float(blocks.course.max() - blocks.head.mean()) <= max(PEAK * least, ROUNDING)
    return "flat" if small and low and not blocks.stands_out() else "cannot tell"


def _blocks(values: Array, *, anew: bool = False) -> _Blocks:
    length, needed = (max(values.size // MOST_BLOCKS, 1), 1) if anew else _block_length(values)
    start = values[: max(values.size // (2 * MOST_BLOCKS), EARLIEST)]
    return _Blocks(block_means(values, length), length, needed, float(np.median(start)), anew)


def _block_length(values: Array) -> tuple[int, int]:
    """Return the values of a block, and how many make such blocks independent."""
    longest = values.size // FEWEST_BLOCKS
    shortest = values.size // MOST_BLOCKS
    needed = math.ceil(PER_BLOCK * _memory(values))
    # Points that are independent need no averaging: a short log has none to spare.
    needed = 1 if needed <= PER_BLOCK else needed
    length = max(min(max(needed, shortest), longest), 1)
    return length, needed


def _coarse(fine: _Blocks, values: Array) -> _Blocks:
    """Return longer blocks where slow noise under noise from point to point shows in blocks."""
    memory = _memory(fine.means)
    if memory <= PER_BLOCK:
        return fine
    needed = max(fine.needed, math.ceil(fine.length * memory))
    length = max(fine.length, min(needed, values.size // FEWEST_BLOCKS))
    return _Blocks(block_means(values, length), length, needed, fine.start, anew=False)


def _memory(values: Array) -> float:
    """Return the autocorrelation time in values, at least 1, around lines through stretches.

    One line through the whole would take a rise and its loss for slow noise.
    """
    if is_constant(values):
        return 1.0
    count = max(min(values.size // SHORTEST_STRETCH, STRETCHES), 1)
    residual = np.concatenate([line_fit(part)[1] for part in np.array_split(values, count)])
    free, slope = SHRINKAGE_LINE
    rho = persistence(residual, (count * free, count * slope), 0.0)
    return min((1 + rho) / (1 - rho), values.size) if rho < 1 else float(values.size)


def _chance(means: Array, sixth: int, lost: float) -> float:
    """Return how often blocks that only scatter fall as far from their best level to their last.

    A bootstrap of the blocks' residuals around a running median, which a step leaves alone. The
    best level is chosen anew in every draw, as it was in the log.
    """
    padded = np.pad(means, AROUND // 2, mode="edge")
    smooth = np.median(sliding_window_view(padded, AROUND), axis=1)
    # Residuals of a running median of five normal values are this much too small.
    residuals = (means - smooth) * SHRUNK
    if float(np.abs(residuals).max()) <= ROUNDING:
        return 1 / (1 + DRAWS)
    draws = np.random.default_rng(0).choice(residuals, (DRAWS, means.size))
    sums = np.cumsum(np.pad(draws, ((0, 0), (1, 0))), axis=1)
    levels = (sums[:, sixth:] - sums[:, :-sixth]) / sixth
    falls = levels.max(axis=1) - levels[:, -1]
    return (1 + int((falls >= lost - ROUNDING).sum())) / (1 + DRAWS)


def _more(points: int, gain: float, half: float, least: float) -> int:
    """Return how many more values would prove the gain, or that it stays below the margin.

    The interval narrows with the square root of the number of values.
    """
    distance = max(abs(gain), abs(least - gain), ROUNDING)
    ratio = (half / distance) ** 2
    return math.ceil(points * max(ratio - 1, 0.0)) if ratio < UNREACHABLE else 0
