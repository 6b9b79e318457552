"""Statistics of groups of few runs, with intervals: means, interquartile means, permutations.

A sample has one column of scores for each task, larger is better. Tasks are strata: they have
equal weights, and runs are resampled within their task.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rlvitals.signals.student import t_quantile
from rlvitals.startup.fast_dataclass import dataclass

Array = NDArray[np.float64]
Sample = Sequence[Array]  # scores of one group, by task
Statistic = Callable[[Array, Array], Array]  # rows [r, n] and weights [n] -> [r]

CONFIDENCE_LEVEL = 0.95
MIN_BOOTSTRAP_SEEDS = 10  # in every task, for a bootstrap of the interquartile mean
MIN_SEEDS = 3  # in every task, for any verdict
TRIM_SHARE = 0.25  # of the scores, removed at either end for an interquartile mean
BOOTSTRAP_RESAMPLES = 10_000
RESAMPLE_CHUNK = 2048  # resamples per batch: they fit the cache of a core
MAX_PERMUTATIONS = 20_000  # all are tried up to this number, else a sample of this size
RNG_SEED = 0  # the same runs give the same answer


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval; NaN where unknown."""

    value: float
    low: float
    high: float
    confidence: float
    method: str
    approximate: bool

    @property
    def excludes_zero(self) -> bool:
        """True if both ends are on one side of 0."""
        return self.low > 0 or self.high < 0


def min_seeds(*samples: Sample) -> int:
    """Return the number of seeds of the task with fewest; 0 without a task."""
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
    variances = np.array([_variance(column) / len(column) for column in columns]) / len(sample) ** 2
    free = np.array([len(column) - 1 for column in columns])
    error = math.sqrt(float(variances.sum()))
    if not error > 0:  # zero or unknown variance
        half = error
    else:
        freedom = float(variances.sum()) ** 2 / float((variances**2 / np.maximum(free, 1)).sum())
        half = t_quantile(confidence, freedom) * error
    method = "t interval of the mean" if reference is None else "Welch's interval of the means"
    return Interval(value, value - half, value + half, confidence, method, approximate=True)


def iqm(rows: Array, weights: Array) -> Array:
    """Return the interquartile mean of each row [r, n], by the weights [n] that sum to 1.

    With equal weights an integer number of scores is removed at either end, as in
    `scipy.stats.trim_mean`; with unequal ones exactly a quarter of the weight. Below 4 scores it
    is the mean.
    """
    count = rows.shape[1]
    if np.ptp(weights) <= 1e-12:  # rounding
        cut = int(TRIM_SHARE * count)
        return np.asarray(np.sort(rows, axis=1)[:, cut : count - cut].mean(axis=1))
    order = np.argsort(rows, axis=1)
    reached = np.cumsum(weights[order], axis=1).clip(TRIM_SHARE, 1 - TRIM_SHARE)
    weight_inside = np.diff(reached, axis=1, prepend=TRIM_SHARE)
    return np.asarray(
        (np.take_along_axis(rows, order, axis=1) * weight_inside).sum(axis=1) / (1 - 2 * TRIM_SHARE)
    )


def _weights(sample: Sample) -> Array:
    columns = [np.full(len(column), 1 / (len(column) * len(sample))) for column in sample]
    return np.concatenate(columns)


def interquartile_mean(sample: Sample) -> float:
    """Return the interquartile mean of all scores, with equal weights of tasks."""
    return float(iqm(np.concatenate([*sample])[None], _weights(sample))[0])


def resample(
    sample: Sample,
    statistic: Statistic = iqm,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = RNG_SEED,
) -> Array:
    """Return a statistic of bootstrap samples [resamples], stratified by task."""
    rng = np.random.default_rng(seed)
    scores, weights = np.concatenate([*sample]), _weights(sample)
    sizes = np.array([len(column) for column in sample])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
    is_balanced = bool((sizes == sizes[0]).all())
    values = np.empty(resamples)
    for start in range(0, resamples, RESAMPLE_CHUNK):
        count = min(RESAMPLE_CHUNK, resamples - start)
        if is_balanced:
            drawn = rng.integers(0, sizes[0], (count, len(sizes), sizes[0]), dtype=np.uint16)
            indices = (drawn + starts[:, None]).reshape(count, -1)
        else:
            picks = [rng.integers(0, n, (count, n)) + s for n, s in zip(sizes, starts, strict=True)]
            indices = np.concatenate(picks, axis=1)
        values[start : start + count] = statistic(scores[indices], weights)
    return values


def bootstrap(
    sample: Sample, confidence: float = CONFIDENCE_LEVEL, resamples: int = BOOTSTRAP_RESAMPLES
) -> Interval:
    """Return the interquartile mean with its stratified percentile bootstrap interval.

    Source: Agarwal et al. 2021, Deep Reinforcement Learning at the Edge of the Statistical
    Precipice. With 3 seeds of a skewed score its coverage is about 75 %.
    """
    values = resample(sample, resamples=resamples)
    low, high = np.quantile(values, ((1 - confidence) / 2, (1 + confidence) / 2))
    value, method = interquartile_mean(sample), "stratified bootstrap of the interquartile mean"
    return Interval(value, float(low), float(high), confidence, method, approximate=False)


def bootstrap_difference(sample: Sample, reference: Sample, confidence: float) -> Interval:
    """Return the difference of two interquartile means with its stratified bootstrap interval.

    The percentiles are expanded by the amount that resampling of few seeds understates the spread.
    Source: Hesterberg 2015, What Teachers Should Know About the Bootstrap, 5.3 (expanded).
    """
    differences = resample(sample) - resample(reference, seed=RNG_SEED + 1)
    seeds = min_seeds(sample, reference)
    wide = math.sqrt(seeds / (seeds - 1)) * t_quantile(confidence, seeds - 1)
    tail = NormalDist().cdf(-wide)
    low, high = np.quantile(differences, (tail, 1 - tail))
    value = interquartile_mean(sample) - interquartile_mean(reference)
    method = "stratified bootstrap of the interquartile means"
    return Interval(value, float(low), float(high), confidence, method, approximate=False)


def difference(sample: Sample, reference: Sample, confidence: float = CONFIDENCE_LEVEL) -> Interval:
    """Return the difference from a reference, of means or interquartile means."""
    if min_seeds(sample, reference) >= MIN_BOOTSTRAP_SEEDS:
        return bootstrap_difference(sample, reference, confidence)
    return welch(sample, reference, confidence)


@dataclass(frozen=True, slots=True)
class Permutation:
    """The p-value of a permutation test."""

    p: float  # two-sided
    ways: float  # number of permutations

    def small(self, share: float) -> bool:
        """Return whether p is at most `share`, or the smallest that so few permutations allow."""
        return self.p <= max(share, 2 / self.ways) + 1e-9


def permutation(sample: Sample, reference: Sample) -> Permutation:
    """Run a two-sided permutation test of the difference of means, stratified by task."""
    pools = [np.concatenate(pair) for pair in zip(sample, reference, strict=True)]
    sizes = [len(column) for column in sample]
    ways = math.prod(math.comb(len(pool), n) for pool, n in zip(pools, sizes, strict=True))
    if len(pools) == 1 and ways <= MAX_PERMUTATIONS:
        picks = np.array([*combinations(range(len(pools[0])), sizes[0])])
        differences = _mean_difference(pools[0], pools[0][picks])
        extra = 0
    else:
        rng = np.random.default_rng(RNG_SEED)
        differences = np.zeros(MAX_PERMUTATIONS)
        for pool, n in zip(pools, sizes, strict=True):
            drawn = rng.permuted(np.broadcast_to(pool, (MAX_PERMUTATIONS, len(pool))), axis=1)
            differences += _mean_difference(pool, drawn[:, :n]) / len(pools)
        extra = 1  # the observed assignment
    difference = abs(mean(sample) - mean(reference))
    as_large = int((np.abs(differences) >= difference * (1 - 1e-9)).sum()) + extra
    return Permutation(as_large / (len(differences) + extra), float(ways))


def _mean_difference(pool: Array, picked: Array) -> Array:
    """Return the difference of means between `picked` [r, n] and the remainder of the pool: [r]."""
    n, total = picked.shape[1], pool.sum()
    sums = picked.sum(axis=1)
    return np.asarray(sums / n - (total - sums) / (len(pool) - n))


def improvement(sample: Sample, reference: Sample) -> Interval:
    """Return the mean over tasks of P(run > reference run), ties counting half.

    From 10 seeds on with a stratified bootstrap interval. Source: Agarwal et al. 2021, 4.3.
    """
    pairs = [*zip(sample, reference, strict=True)]
    value = float(np.mean([_win_rate(a[None], b[None])[0] for a, b in pairs]))
    method = "Mann-Whitney U"
    if min_seeds(sample, reference) < MIN_BOOTSTRAP_SEEDS:
        return Interval(value, math.nan, math.nan, CONFIDENCE_LEVEL, method, approximate=True)
    rng = np.random.default_rng(RNG_SEED)
    values = np.zeros(BOOTSTRAP_RESAMPLES // 5)
    for a, b in pairs:
        drawn = (x[rng.integers(0, len(x), (len(values), len(x)))] for x in (a, b))
        values += _win_rate(*drawn) / len(pairs)
    low, high = np.quantile(values, ((1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2))
    return Interval(value, float(low), float(high), CONFIDENCE_LEVEL, method, approximate=False)


def _win_rate(rows: Array, reference_rows: Array) -> Array:
    signs = np.sign(rows[:, :, None] - reference_rows[:, None, :])
    return np.asarray((signs.mean(axis=(1, 2)) + 1) / 2)


def profile(sample: Sample, levels: Array) -> Array:
    """Return the share of runs above each level [k], with equal weights of tasks."""
    above = [(column[:, None] > levels).mean(axis=0) for column in sample]
    return np.asarray(np.mean(above, axis=0))


def profile_band(
    sample: Sample, levels: Array, confidence: float = CONFIDENCE_LEVEL
) -> tuple[Array, Array]:
    """Return the pointwise interval of the performance profile: low [k], high [k].

    Wilson's interval over all runs together: where all runs of few seeds are above a
    level, a bootstrap within tasks would have zero width.
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
    confidence: float = CONFIDENCE_LEVEL,
    max_seeds: int = 1000,
) -> int | None:
    """Return the seeds per task and group for a difference known to `half_width`.

    None where the spread is unknown or more than `max_seeds` would be needed.
    """
    tasks = len(sample)
    spread = sum(_variance(column) for column in (*sample, *reference)) / tasks**2
    if math.isnan(spread) or not half_width > 0:
        return None
    for n in range(2, max_seeds + 1):
        freedom = tasks * (2 * n - 2)
        if t_quantile(confidence, freedom) * math.sqrt(spread / n) <= half_width:
            return n
    return None
