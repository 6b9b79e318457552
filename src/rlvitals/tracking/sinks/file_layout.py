"""Name the exported files of rows, and select the rows that long files keep.

Rows of one kind have the same columns, or hold some of those that were declared. Each kind has
files of its own, so every file is rectangular: `train-1.csv` holds what is logged under `train/`;
where a column is added, or the next kind has the same name, `train-2.csv` is begun. What has no
such name is `metrics-1.csv`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.safe_files import make_folder
from rlvitals.tracking.sinks.sink import Rows

STEP_COLUMN, TIME_COLUMN = "step", "time"
DEFAULT_BASE = "metrics"  # rows whose keys have no first part in common
MAX_WAITING_LETTERS = 2**24  # of rows that wait for a full disk


def columns(keys: tuple[str, ...]) -> list[str]:
    """Return a file's columns: the step and the time, then the keys.

    A key with the name of either gets a prefix: column names are unique.
    """
    names = {STEP_COLUMN, TIME_COLUMN, *keys}
    return [
        STEP_COLUMN,
        TIME_COLUMN,
        *(free_key(key, names) if key in {STEP_COLUMN, TIME_COLUMN} else key for key in keys),
    ]


def free_key(key: str, names: set[str]) -> str:
    """Return a name that is not taken yet."""
    while key in names:
        key = f"logged/{key}"
    return key


def base(keys: Iterable[str]) -> str:
    """Return the base name for files of some keys: their common first part, or "metrics"."""
    first = {key.partition("/")[0] for key in keys if "/" in key} or {DEFAULT_BASE}
    bare = any("/" not in key for key in keys)
    return plain(first.pop()) if len(first) == 1 and not bare else DEFAULT_BASE


def plain(name: str) -> str:
    """Return a name as any file system takes it."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")[:60] or DEFAULT_BASE


def count_option(value: object, default: int) -> int:
    """Return an option that is a count."""
    return value if isinstance(value, int) else default


def column_names(value: object) -> tuple[str, ...]:
    """Return an option that names columns."""
    return tuple(map(str, value)) if isinstance(value, tuple | list) else ()


def free(folder: Path, name: str, suffix: str) -> Iterator[Path]:
    """Yield the paths that are not there yet: `name-1.csv`, `name-2.csv`, ..."""
    for number in count(1):
        path = folder / f"{name}-{number}{suffix}"
        if not os.path.lexists(path):
            yield path


def rank_folder(folder: Path, rank: int) -> Path:
    """Return the folder of a rank's files, and make it."""
    home = make_folder(folder / "metrics")
    return make_folder(home / f"rank-{rank}") if rank else home


@dataclass(slots=True)
class Thinning:
    """The rows of a growing file that are kept: up to `max_rows` all, then every 2nd, 4th, ...

    So a file grows with the logarithm of the run's length, nothing in it is ever rewritten, and
    at any time the second half of the run has at least a quarter of `max_rows` rows.
    """

    max_rows: int  # rows at each distance; 0: all rows are kept
    row_count: int = 0  # rows that are in the file already
    _rows_offered: int = -1  # rows that came; below 0: not counted yet

    def keep(self, rows: Rows) -> Rows:
        """Return the rows to write."""
        if not self.max_rows:
            return rows
        if self._rows_offered < 0:
            level, remainder = divmod(self.row_count, self.max_rows)
            self._rows_offered = self.max_rows * (2**level - 1) + remainder * 2**level
        first, self._rows_offered = self._rows_offered, self._rows_offered + len(rows.steps)
        if self._rows_offered <= self.max_rows:
            return rows
        index = np.arange(first, self._rows_offered)
        # The distance of kept rows: 1 below `max_rows`, 2 below 3 `max_rows`, 4 below 7...
        # The exponent of a power of two that is not above: exact far beyond any run's length.
        exponents = np.frexp(index // self.max_rows + 1)[1].astype(np.int64) - 1
        strides: NDArray[np.int64] = np.left_shift(np.int64(1), exponents)
        mask = index % strides == 0
        return Rows(rows.keys, rows.steps[mask], rows.times[mask], rows.values[mask])
