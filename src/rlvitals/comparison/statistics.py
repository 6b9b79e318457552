"""Scores of groups of runs: statistics whose error can be told from how few there are.

A sample holds one column of scores for each task, larger is better; tasks are strata: each
weighs the same, and runs are drawn anew within their task alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.student import t_quantile

Array = NDArray[np.float64]
Sample = Sequence[Array]  # scores of one group, by task
Statistic = Callable[[Array, Array], Array]  # rows [r, n] and weights [n] -> [r]

CONFIDENCE = 0.95
MANY = 10  # seeds in every task from which a bootstrap of the interquartile mean is believed
LEAST = 3  # seeds in every task without which nothing is told apart
TRIM = 0.25  # of the scores at either end that an interquartile mean leaves out
RESAMPLES = 10_000
CHUNK = 2048  # resamples drawn at once: they fit a core's cache
WAYS = 20_000  # of dealing runs into two groups: all are tried, of more so many are drawn
SEED = 0  # the same runs give the same answer


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and where it lies with a stated confidence; NaN where nobody can say."""

    value: float
    low: float
    high: float
    confidence: float
    method: str
    approximate: bool

    @property
    def excludes_zero(self) -> bool:
        """Whether both ends are on one side of 0."""
        return self.low > 0 or self.high < 0


def fewest(*samples: Sample) -> int:
    """Count the seeds of the task that has fewest; 0 without a task."""
    return min((len(column) for sample in samples for column in sample), default=0)


def mean(sample: Sample) -> float:
    """Return the mean over tasks of their means."""
    return float(np.mean([column.mean() for column in sample]))


def _variance(column: Array) -> float:
    return float(column.var(ddof=1)) if len(column) > 1 else math.nan


def welch(sample: Sample, reference: Sample | None, confidence: float) -> Interval:
    """Return the mean, or its difference from a reference's, with Welch's t interval.

    Satterthwaite's degrees of freedom over every task of both. NaN ends where a task has one seed.
    Source: B. L. Welch 1947, Biometrika 34.
    """
    columns = [*sample, *(reference or ())]
    value = mean(sample) - (mean(reference) if reference is not None else 0.0)
    parts = np.array([_variance(column) / len(column) for column in columns]) / len(sample) ** 2
    free = np.array([len(column) - 1 for column in columns])
    error = math.sqrt(float(parts.sum()))
    if not error > 0:  # no spread at all, or none known
        half = error
    else:
        freedom = float(parts.sum()) ** 2 / float((parts**2 / np.maximum(free, 1)).sum())
        half = t_quantile(confidence, freedom) * error
    method = "t interval of the mean" if reference is None else "Welch's interval of the means"
    return Interval(value, value - half, value + half, confidence, method, approximate=True)


def iqm(rows: Array, weights: Array) -> Array:
    """Return the interquartile mean of each row [r, n], by the weights [n] that sum to 1.

    Of equal weights a whole number of scores is left out at either end, as `scipy.stats.trim_mean`
    does; of unequal ones exactly a quarter of the weight. Below 4 scores it is the mean.
    """
    count = rows.shape[1]
    if np.ptp(weights) <= 1e-12:  # noqa: PLR2004 - rounding
        cut = int(TRIM * count)
        return np.asarray(np.sort(rows, axis=1)[:, cut : count - cut].mean(axis=1))
    order = np.argsort(rows, axis=1)
    reached = np.cumsum(weights[order], axis=1).clip(TRIM, 1 - TRIM)
    kept = np.diff(reached, axis=1, prepend=TRIM)
    return np.asarray((np.take_along_axis(rows, order, axis=1) * kept).sum(axis=1) / (1 - 2 * TRIM))


def _weights(sample: Sample) -> Array:
    each = [np.full(len(column), 1 / (len(column) * len(sample))) for column in sample]
    return np.concatenate(each)


def interquartile_mean(sample: Sample) -> float:
    """Return the interquartile mean of all scores, each task weighing the same."""
    return float(iqm(np.concatenate([*sample])[None], _weights(sample))[0])


def resampled(
    sample: Sample, statistic: Statistic = iqm, resamples: int = RESAMPLES, seed: int = SEED
) -> Array:
    """Return a statistic of `resamples` samples, drawn with replacement within each task."""
    rng = np.random.default_rng(seed)
    scores, weights = np.concatenate([*sample]), _weights(sample)
    sizes = np.array([len(column) for column in sample])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
    alike = bool((sizes == sizes[0]).all())
    found = np.empty(resamples)
    for at in range(0, resamples, CHUNK):
        count = min(CHUNK, resamples - at)
        if alike:
            drawn = rng.integers(0, sizes[0], (count, len(sizes), sizes[0]), dtype=np.uint16)
            places = (drawn + starts[:, None]).reshape(count, -1)
        else:
            each = [rng.integers(0, n, (count, n)) + s for n, s in zip(sizes, starts, strict=True)]
            places = np.concatenate(each, axis=1)
        found[at : at + count] = statistic(scores[places], weights)
    return found


def bootstrap(
    sample: Sample, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval:
    """Return the interquartile mean with its stratified percentile bootstrap interval.

    Source: Agarwal et al. 2021, Deep Reinforcement Learning at the Edge of the Statistical
    Precipice. With 3 seeds of a skewed score such an interval holds the truth in 3 of 4 cases.
    """
    found = resampled(sample, resamples=resamples)
    low, high = np.quantile(found, ((1 - confidence) / 2, (1 + confidence) / 2))
    value, method = interquartile_mean(sample), "stratified bootstrap of the interquartile mean"
    return Interval(value, float(low), float(high), confidence, method, approximate=False)


def bootstrap_difference(sample: Sample, reference: Sample, confidence: float) -> Interval:
    """Return the difference of two interquartile means with its stratified bootstrap interval.

    The percentiles are moved outwards by what resampling understates a spread of so few seeds.
    Source: Hesterberg 2015, What Teachers Should Know About the Bootstrap, 5.3 (expanded).
    """
    found = resampled(sample) - resampled(reference, seed=SEED + 1)
    few = fewest(sample, reference)
    wide = math.sqrt(few / (few - 1)) * t_quantile(confidence, few - 1)
    share = NormalDist().cdf(-wide)
    low, high = np.quantile(found, (share, 1 - share))
    value = interquartile_mean(sample) - interquartile_mean(reference)
    method = "stratified bootstrap of the interquartile means"
    return Interval(value, float(low), float(high), confidence, method, approximate=False)


def difference(sample: Sample, reference: Sample, confidence: float = CONFIDENCE) -> Interval:
    """Return how much better a sample is than a reference, by means or interquartile means."""
    if fewest(sample, reference) >= MANY:
        return bootstrap_difference(sample, reference, confidence)
    return welch(sample, reference, confidence)


@dataclass(frozen=True, slots=True)
class Permutation:
    """How often a deal of the same runs into two groups differs as much as the real one."""

    p: float  # two-sided
    ways: float  # deals that there are

    def small(self, share: float) -> bool:
        """Whether so few deals differ as much; of few deals none but the real one may."""
        return self.p <= max(share, 2 / self.ways) + 1e-9


def permutation(sample: Sample, reference: Sample) -> Permutation:
    """Deal the runs of each task anew and compare the differences of the means, two-sided."""
    pools = [np.concatenate(pair) for pair in zip(sample, reference, strict=True)]
    sizes = [len(column) for column in sample]
    ways = math.prod(math.comb(len(pool), n) for pool, n in zip(pools, sizes, strict=True))
    if len(pools) == 1 and ways <= WAYS:
        picks = np.array([*combinations(range(len(pools[0])), sizes[0])])
        dealt = _gap(pools[0], pools[0][picks])
        extra = 0
    else:
        rng = np.random.default_rng(SEED)
        dealt = np.zeros(WAYS)
        for pool, n in zip(pools, sizes, strict=True):
            drawn = rng.permuted(np.broadcast_to(pool, (WAYS, len(pool))), axis=1)
            dealt += _gap(pool, drawn[:, :n]) / len(pools)
        extra = 1  # the real deal is one of them
    real = abs(mean(sample) - mean(reference))
    as_far = int((np.abs(dealt) >= real * (1 - 1e-9)).sum()) + extra
    return Permutation(as_far / (len(dealt) + extra), float(ways))


def _gap(pool: Array, picked: Array) -> Array:
    """Return the difference of means between the runs picked [r, n] and those left of a pool."""
    n, total = picked.shape[1], pool.sum()
    sums = picked.sum(axis=1)
    return np.asarray(sums / n - (total - sums) / (len(pool) - n))


def improvement(sample: Sample, reference: Sample) -> Interval:
    """Return the probability that a run beats a reference's, ties counting half, over tasks.

    From 10 seeds on with a stratified bootstrap interval. Source: Agarwal et al. 2021, 4.3.
    """
    pairs = [*zip(sample, reference, strict=True)]
    value = float(np.mean([_beats(a[None], b[None])[0] for a, b in pairs]))
    method = "Mann-Whitney U"
    if fewest(sample, reference) < MANY:
        return Interval(value, math.nan, math.nan, CONFIDENCE, method, approximate=True)
    rng = np.random.default_rng(SEED)
    found = np.zeros(RESAMPLES // 5)
    for a, b in pairs:
        drawn = (x[rng.integers(0, len(x), (len(found), len(x)))] for x in (a, b))
        found += _beats(*drawn) / len(pairs)
    low, high = np.quantile(found, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(value, float(low), float(high), CONFIDENCE, method, approximate=False)


def _beats(rows: Array, others: Array) -> Array:
    apart = np.sign(rows[:, :, None] - others[:, None, :])
    return np.asarray((apart.mean(axis=(1, 2)) + 1) / 2)


def profile(sample: Sample, levels: Array) -> Array:
    """Return the share of runs above each level [k], each task weighing the same."""
    above = [(column[:, None] > levels).mean(axis=0) for column in sample]
    return np.asarray(np.mean(above, axis=0))


def profile_band(
    sample: Sample, levels: Array, confidence: float = CONFIDENCE
) -> tuple[Array, Array]:
    """Return where the share of runs above each level lies: low [k], high [k], level by level.

    Wilson's interval of a share, of all runs together: where all runs of few seeds are above a
    level, a bootstrap within tasks would have no width at all.
    Source: E. B. Wilson 1927, Journal of the American Statistical Association 22.
    """
    shares = profile(sample, levels)
    n = sum(len(column) for column in sample)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (shares + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(shares * (1 - shares) / n + (z / (2 * n)) ** 2)
    return np.asarray((middle - half).clip(0, 1)), np.asarray((middle + half).clip(0, 1))


def seeds_for(
    sample: Sample,
    reference: Sample,
    half_width: float,
    confidence: float = CONFIDENCE,
    most: int = 1000,
) -> int | None:
    """Return the seeds in each task of each group at which a difference is known to `half_width`.

    None where the spread is not known or more than `most` would be needed.
    """
    tasks = len(sample)
    spread = sum(_variance(column) for column in (*sample, *reference)) / tasks**2
    if math.isnan(spread) or not half_width > 0:
        return None
    for n in range(2, most + 1):
        freedom = tasks * (2 * n - 2)
        if t_quantile(confidence, freedom) * math.sqrt(spread / n) <= half_width:
            return n
    return None
