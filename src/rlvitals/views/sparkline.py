"""Draw a series as one line of block characters."""

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

SPARK_BLOCKS = "▁▂▃▄▅▆▇█"
NAN_BLOCK = "·"  # rows without numbers
EMPTY_BLOCK = " "  # no rows


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The line, the column of the marked step (None: not on it), and the range it spans."""

    line: str
    mark: int | None
    low: float
    high: float


def sparkline(
    series: Series, first: int, last: int, width: int, mark: int | None = None
) -> Sparkline:
    """Draw `series` between two steps in at most `width` columns of equal step ranges.

    A column shows the mean of its values, or, if single values lie far outside all means, the
    value farthest from the median.
    """
    width = max(1, min(width, len(series), last - first + 1))
    columns = np.clip((series.steps - first) * width // max(last - first + 1, 1), 0, width - 1)
    levels = _levels(series.values, columns, width)
    finite = levels[np.isfinite(levels)]
    low, high = (finite.min(), finite.max()) if len(finite) else (np.nan, np.nan)
    # The columns within the series and outside long gaps [width].
    logged = np.zeros(width, dtype=np.bool_)
    logged[columns] = True
    gaps = np.diff(series.steps)
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    # Gaps longer than three median distances of rows are shown.
    for row in np.flatnonzero((np.diff(columns) > 1) & (gaps <= 3.0 * usual)):
        logged[columns[row] : columns[row + 1]] = True
    # Columns without rows have the previous level [width].
    has_rows = np.zeros(width, dtype=np.bool_)
    has_rows[columns] = True
    source = np.maximum.accumulate(np.where(has_rows, np.arange(width), 0))
    drawn_levels: NDArray[np.float64] = levels[source]
    blocks = [
        _block(drawn_levels[i], low, high) if logged[i] else EMPTY_BLOCK for i in range(width)
    ]
    mark_column = None
    if mark is not None and first <= mark <= last:
        mark_column = int((mark - first) * width // max(last - first + 1, 1))
    return Sparkline("".join(blocks), mark_column, float(low), float(high))


def _levels(
    values: NDArray[np.float64], columns: NDArray[np.int64], width: int
) -> NDArray[np.float64]:
    """Return a level for each column [width], NaN for one without numbers."""
    good = np.isfinite(values)
    if not good.any():
        return np.full(width, np.nan)
    numbers, number_columns = values[good], columns[good]
    counts = np.bincount(number_columns, minlength=width)
    size = float(np.abs(numbers).max()) or 1.0  # avoids overflow of sums of 1e308
    means = np.full(width, np.nan)
    np.divide(
        np.bincount(number_columns, numbers / size, width) * 1.0,
        counts,
        out=means,
        where=counts > 0,
    )
    switch = np.isin(numbers, (0.0, 1.0)).all()  # drawn as the share of time it is on
    # Peaks are drawn from three times the range of the means.
    if switch or np.ptp(numbers / size) <= 3.0 * np.nanmax(np.abs(means - np.nanmedian(means))):
        return means * size
    order = np.argsort(np.abs(numbers / size - np.median(numbers / size)), kind="stable")
    levels = np.full(width, np.nan)
    levels[number_columns[order]] = numbers[order]  # the farthest is written last
    return levels


def _block(level: float, low: float, high: float) -> str:
    if not np.isfinite(level):
        return NAN_BLOCK
    span = high / 2 - low / 2  # halves: the full range may overflow float64
    share = (level / 2 - low / 2) / span if span > 0 else 0.5
    return SPARK_BLOCKS[min(int(share * len(SPARK_BLOCKS)), len(SPARK_BLOCKS) - 1)]
