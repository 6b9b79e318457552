"""The two sides of an identity, row by row, and how far apart rounding alone may put them."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from rlvitals.metrics.metric import Metric
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series, Trace

Floats = NDArray[np.float64]

FLOAT32_SUM_ERROR = 1e-4  # relative to the terms: float32 sums in another order
BFLOAT16_SUM_ERROR = 0.03  # relative to the terms: bfloat16 has 8 bits, and its sums fewer
FLOAT32_DIGITS = 9  # significant digits: a float32 has no more
MAX_ROUNDED_DECIMALS = 7  # a number with more decimals was not rounded for a reader


@dataclass(frozen=True, slots=True, eq=False)
class Books:
    """One identity over a run: what was logged for the total, and what its parts come to.

    All [rows]; `slack` is what rounding can account for. `at_most`: the left side may be less.
    """

    steps: NDArray[np.int64]
    left: Floats
    right: Floats
    size: Floats  # of the terms together
    slack: Floats
    at_most: bool = False
    certain: bool = True  # weights are the run's own; else those that most rows keep to

    @property
    def miss(self) -> Floats:
        """How far the left side is from (or above) the right one, 0 where it is not."""
        gap = self.left - self.right
        return np.maximum(gap, 0.0) if self.at_most else np.abs(gap)

    @property
    def violations(self) -> NDArray[np.bool_]:
        """The rows that rounding does not explain."""
        return self.miss > self.slack


def align_metrics(
    trace: Trace, names: Sequence[str]
) -> tuple[NDArray[np.int64], tuple[Floats, ...]] | None:
    """Return the steps at which every metric has exactly one number, and the numbers.

    None where one is not logged, where they come from different sources, or share no step.
    """
    all_series = [trace.get(name) for name in names]
    sources = {(m.framework, m.where) for n in names if (m := trace.measured.get(n))}
    if len(sources) != 1:
        return None
    common: NDArray[np.int64] | None = None
    for series in all_series:
        if series is None:
            return None
        once = _unique_steps(series)
        if common is None or np.array_equal(common, once):
            common = once
        else:
            common = np.intersect1d(common, once, assume_unique=True)
    if common is None or not len(common):
        return None
    columns = [s.values[np.searchsorted(s.steps, common)] for s in all_series if s is not None]
    numbers = np.all([np.isfinite(c) for c in columns], axis=0)
    return (common[numbers], tuple(c[numbers] for c in columns)) if numbers.any() else None


def shared_rows(columns: Sequence[Series]) -> tuple[NDArray[np.int64], list[Floats]]:
    """Return the steps that all columns have, [rows], and the values of each column there."""
    steps = reduce(np.intersect1d, [column.steps for column in columns])
    return steps, [column.values[np.searchsorted(column.steps, steps)] for column in columns]


def _unique_steps(series: Series) -> NDArray[np.int64]:
    """Return the steps that were logged once: of two values nobody knows which belongs."""
    if len(series) < 2 or bool((np.diff(series.steps) > 0).all()):
        return series.steps
    steps, counts = np.unique(series.steps, return_counts=True)
    return np.asarray(steps[counts == 1], np.int64)


def rounding(values: Floats) -> Floats:
    """Return half a unit of the last digit that a column was logged with, for each value [n].

    A column may be rounded to decimals or to significant digits: the coarser of both counts.
    """
    logged = values[np.isfinite(values) & (values != 0)]
    if not logged.size:
        return np.zeros_like(values)
    picked = logged if len(logged) <= 200 else logged[:: len(logged) // 200]
    places = _decimals(picked)
    by_decimals = (
        0.0 if places.max() >= MAX_ROUNDED_DECIMALS else 0.5 * 10.0 ** -float(places.max())
    )
    exponents = np.floor(np.log10(np.abs(picked)))
    digits = float(
        np.max(np.where(places >= MAX_ROUNDED_DECIMALS, FLOAT32_DIGITS, exponents + 1 + places))
    )
    if digits >= FLOAT32_DIGITS - 2:
        return np.full_like(values, by_decimals)
    size = np.maximum(np.abs(values), np.finfo(np.float64).tiny)
    by_digits = 0.5 * 10.0 ** (np.floor(np.log10(size)) + 1 - digits)
    return np.maximum(by_digits, by_decimals)


def _decimals(values: Floats) -> NDArray[np.int64]:
    """Return how many decimals numbers [n] were written with, `FEW_DIGITS` if not rounded, [n]."""
    scaled = np.abs(values)[:, None] * 10.0 ** np.arange(MAX_ROUNDED_DECIMALS + 1)
    # Relative: a decimal fraction has no exact binary form.
    is_integer = np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(scaled, 1.0)
    return np.where(is_integer.any(axis=1), is_integer.argmax(axis=1), MAX_ROUNDED_DECIMALS)


def digits(value: float) -> int:
    """Return how many significant digits a number was written with, at most `FULL`."""
    places = int(_decimals(np.array([value]))[0])
    if places >= MAX_ROUNDED_DECIMALS or value == 0 or not np.isfinite(value):
        return FLOAT32_DIGITS if value and np.isfinite(value) else 0
    return int(max(np.floor(np.log10(abs(value))) + 1 + places, 1))


def precision(columns: Sequence[Floats]) -> float:
    """Return the relative precision of sums of these columns [n]: bfloat16's or float32's."""
    values = np.concatenate(columns) if columns else np.zeros(0)
    values = values[np.isfinite(values) & (values != 0)]
    singles = values.astype(np.float32)
    halves = (singles.view(np.uint32) & 0xFFFF) == 0  # the bits of a float32 that bfloat16 lacks
    is_single = values == singles  # rounded to a float32 at all
    coarse = halves & is_single & (values != np.rint(values))
    # Half of a bfloat16 column's values lack the lower bits.
    return BFLOAT16_SUM_ERROR if values.size and float(coarse.mean()) >= 0.5 else FLOAT32_SUM_ERROR


def size_of(total: Floats, parts: Sequence[Floats]) -> Floats:
    """Return the size of all terms together [n]."""
    return np.asarray(np.abs(total) + np.sum([np.abs(p) for p in parts], axis=0), np.float64)


def books(  # noqa: PLR0913 - the fields of one noun, each named at its call
    steps: NDArray[np.int64],
    left: Floats,
    parts: Sequence[tuple[Floats, Floats | float]],
    *,
    exact: float | None = None,
    at_most: bool = False,
    certain: bool = True,
    counts: bool = False,
) -> Books:
    """Set a total against its parts, each a column and its weight; all [n].

    `exact` is the relative precision of sums where it is known, else it is read off the columns.
    `counts` are whole numbers, which nobody rounds.
    """
    terms = [weight * column for column, weight in parts]
    right = np.sum(terms, axis=0)
    size = size_of(left, terms)
    rounding_error = rounding(left) + np.sum([np.abs(w) * rounding(c) for c, w in parts], axis=0)
    off = np.zeros_like(left) if counts else rounding_error
    relative = precision([left, *(c for c, _ in parts)]) if exact is None else exact
    # A sum of terms near 1 that cancel is as inexact as they are, however small it comes out.
    usual = 0.1 * float(np.median(size)) if size.size else 0.0
    slack = relative * (size + usual) + 2.0 * off + float(np.finfo(np.float32).tiny)
    return Books(steps, left, right, size, slack, at_most, certain)


def names_of(*metrics: Metric) -> tuple[str, ...]:
    """Return canonical names."""
    return tuple(metric.name for metric in metrics)
