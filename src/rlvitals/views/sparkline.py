"""A series as one line of blocks, over the whole run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = "·"  # rows were logged there, none of them a number
NOTHING = " "  # nothing was logged there
BRIDGE = 3.0  # times the usual distance of two rows: a longer silence is shown as one
PEAK = 3.0  # times the range of the means: such a peak must not drown in its mean


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
    """Draw `series` between two steps in at most `width` columns, each of equal steps.

    A column shows the mean of its numbers; where single values stand far outside of all
    means, the value furthest from the median.
    """
    width = max(1, min(width, len(series), last - first + 1))
    columns = np.clip((series.steps - first) * width // max(last - first + 1, 1), 0, width - 1)
    levels = _levels(series.values, columns, width)
    finite = levels[np.isfinite(levels)]
    low, high = (finite.min(), finite.max()) if len(finite) else (np.nan, np.nan)
    logged = _logged(series.steps, columns, width)
    shown = _carried(levels, columns, width)
    blocks = [_block(shown[i], low, high) if logged[i] else NOTHING for i in range(width)]
    at = None
    if mark is not None and first <= mark <= last:
        at = int((mark - first) * width // max(last - first + 1, 1))
    return Sparkline("".join(blocks), at, float(low), float(high))


def _levels(
    values: NDArray[np.float64], columns: NDArray[np.int64], width: int
) -> NDArray[np.float64]:
    """Return one level per column [width], NaN where it holds no number."""
    good = np.isfinite(values)
    if not good.any():
        return np.full(width, np.nan)
    kept, at = values[good], columns[good]
    counts = np.bincount(at, minlength=width)
    size = float(np.abs(kept).max()) or 1.0  # a sum of 1e308s must not overflow
    means = np.full(width, np.nan)
    np.divide(np.bincount(at, kept / size, width) * 1.0, counts, out=means, where=counts > 0)
    switch = np.isin(kept, (0.0, 1.0)).all()  # a switch is drawn as the share of time it is on
    if switch or np.ptp(kept / size) <= PEAK * np.nanmax(np.abs(means - np.nanmedian(means))):
        return means * size
    order = np.argsort(np.abs(kept / size - np.median(kept / size)), kind="stable")
    levels = np.full(width, np.nan)
    levels[at[order]] = kept[order]  # the furthest is written last
    return levels


def _logged(steps: NDArray[np.int64], columns: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Tell which columns lie within the series and in no long silence [width]."""
    logged = np.zeros(width, dtype=np.bool_)
    logged[columns] = True
    gaps = np.diff(steps)
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    for i in np.flatnonzero((np.diff(columns) > 1) & (gaps <= BRIDGE * usual)):
        logged[columns[i] : columns[i + 1]] = True
    return logged


def _carried(
    levels: NDArray[np.float64], columns: NDArray[np.int64], width: int
) -> NDArray[np.float64]:
    """Give a column without rows the level of the one before it [width]."""
    has_rows = np.zeros(width, dtype=np.bool_)
    has_rows[columns] = True
    source = np.maximum.accumulate(np.where(has_rows, np.arange(width), 0))
    carried: NDArray[np.float64] = levels[source]
    return carried


def _block(level: float, low: float, high: float) -> str:
    if not np.isfinite(level):
        return GAP
    span = high / 2 - low / 2  # halves, as the whole may be beyond float64
    share = (level / 2 - low / 2) / span if span > 0 else 0.5
    return BLOCKS[min(int(share * len(BLOCKS)), len(BLOCKS) - 1)]
