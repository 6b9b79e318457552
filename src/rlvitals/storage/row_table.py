"""Series as one table: a row for each step at which something was logged."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

MAX_GRID_CELLS = 1 << 29  # of a table: nine bytes each in memory


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Rows in the order of their times, or of their steps where times are unknown."""

    keys: tuple[str, ...]
    steps: NDArray[np.int64]  # [n]
    times: NDArray[np.float64]  # [n]
    values: NDArray[np.float64]  # [k, n]
    logged: NDArray[np.bool_]  # [k, n]: False where a row has no such number; NaN is one

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.steps)


def grid(series: Mapping[str, Series]) -> Grid:
    """Lay series side by side: what was logged at one step and time shares a row.

    A step that a key has twice at one time has two rows. Raises UsageError for more than MAX_CELLS.
    """
    columns = list(series.values())
    empty = [np.empty(0)]
    steps = np.concatenate([column.steps for column in columns] or empty).astype(np.int64)
    times = np.concatenate([column.times for column in columns] or empty)
    repeats = np.concatenate([_count_repeats(column) for column in columns] or empty).astype(
        np.int64
    )
    owner = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
    sort_times = np.where(np.isnan(times), -np.inf, times)  # equal to one another
    timed = bool(np.isfinite(times).all())
    order = np.lexsort((repeats, steps, sort_times) if timed else (repeats, sort_times, steps))
    steps, sort_times, repeats = steps[order], sort_times[order], repeats[order]
    new = np.ones(len(order), bool)
    new[1:] = (
        (steps[1:] != steps[:-1])
        | (sort_times[1:] != sort_times[:-1])
        | (repeats[1:] != repeats[:-1])
    )
    row = np.cumsum(new) - 1
    if (cells := len(columns) * int(new.sum())) > MAX_GRID_CELLS:
        raise UsageError(
            f"{int(new.sum()):,} rows of {len(columns):,} metrics are {cells:,} cells, "
            f"more than {MAX_GRID_CELLS:,}",
            where="the table",
            hint="choose metrics with --keys",
        )
    values = np.full((len(columns), int(new.sum())), np.nan)
    logged = np.zeros(values.shape, bool)
    values[owner[order], row] = np.concatenate([column.values for column in columns] or empty)[
        order
    ]
    logged[owner[order], row] = True
    return Grid(tuple(series), steps[new], times[order][new], values, logged)


def _count_repeats(series: Series) -> NDArray[np.int64]:
    """Count for each point the earlier ones of the same step and time."""
    if np.all(series.steps[1:] > series.steps[:-1]):
        return np.zeros(len(series), np.int64)
    sort_times = np.where(np.isnan(series.times), -np.inf, series.times)
    order = np.lexsort((sort_times, series.steps))  # stable: of equals, as logged
    steps, sort_times = series.steps[order], sort_times[order]
    new = np.ones(len(order), bool)
    new[1:] = (steps[1:] != steps[:-1]) | (sort_times[1:] != sort_times[:-1])
    index = np.arange(len(order))
    counts = np.empty(len(order), np.int64)
    counts[order] = index - np.maximum.accumulate(np.where(new, index, 0))
    return counts
