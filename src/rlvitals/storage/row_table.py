"""Series as one table: a row for each step at which something was logged."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.errors import UsageError
from rlvitals.types import Series

MAX_CELLS = 1 << 29  # of a table: nine bytes each in memory


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
    found = list(series.values())
    none = [np.empty(0)]
    steps = np.concatenate([one.steps for one in found] or none).astype(np.int64)
    times = np.concatenate([one.times for one in found] or none)
    again = np.concatenate([_again(one) for one in found] or none).astype(np.int64)
    owner = np.repeat(np.arange(len(found)), [len(one) for one in found])
    told = np.where(np.isnan(times), -np.inf, times)  # equal to one another
    timed = bool(np.isfinite(times).all())
    by = np.lexsort((again, steps, told) if timed else (again, told, steps))
    steps, told, again = steps[by], told[by], again[by]
    new = np.ones(len(by), bool)
    new[1:] = (steps[1:] != steps[:-1]) | (told[1:] != told[:-1]) | (again[1:] != again[:-1])
    row = np.cumsum(new) - 1
    if (cells := len(found) * int(new.sum())) > MAX_CELLS:
        raise UsageError(
            f"{int(new.sum()):,} rows of {len(found):,} metrics are {cells:,} cells, "
            f"more than {MAX_CELLS:,}",
            where="the table",
            hint="choose metrics with --keys",
        )
    values = np.full((len(found), int(new.sum())), np.nan)
    logged = np.zeros(values.shape, bool)
    values[owner[by], row] = np.concatenate([one.values for one in found] or none)[by]
    logged[owner[by], row] = True
    return Grid(tuple(series), steps[new], times[by][new], values, logged)


def _again(one: Series) -> NDArray[np.int64]:
    """Count for each point the earlier ones of the same step and time."""
    if np.all(one.steps[1:] > one.steps[:-1]):
        return np.zeros(len(one), np.int64)
    told = np.where(np.isnan(one.times), -np.inf, one.times)
    by = np.lexsort((told, one.steps))  # stable: of equals, as logged
    steps, told = one.steps[by], told[by]
    new = np.ones(len(by), bool)
    new[1:] = (steps[1:] != steps[:-1]) | (told[1:] != told[:-1])
    place = np.arange(len(by))
    found = np.empty(len(by), np.int64)
    found[by] = place - np.maximum.accumulate(np.where(new, place, 0))
    return found
