"""What exported files of rows are called, and which rows are left out of long ones.

Rows of one kind have the same columns, or hold some of those that were declared. Each kind has
files of its own, so every file is rectangular: `train-1.csv` holds what is logged under `train/`;
where a column is added, or the next kind has the same name, `train-2.csv` is begun. What has no
such name is `metrics-1.csv`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.safe_files import make_folder
from rlvitals.tracking.sinks.sink import Rows

METRICS_FOLDER = "metrics"
STEP_COLUMN, TIME_COLUMN = "step", "time"
DEFAULT_BASE = "metrics"  # rows whose keys have no first part in common
MAX_NAME = 60  # letters of a file's name


def columns(keys: tuple[str, ...]) -> list[str]:
    """Return a file's columns: the step and the time, then the keys.

    A key that is called like either is told apart: a column's name stands once.
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
    """Return what files of some keys are called: the first part that all have, or "metrics"."""
    first = {key.partition("/")[0] for key in keys if "/" in key} or {DEFAULT_BASE}
    bare = any("/" not in key for key in keys)
    return plain(first.pop()) if len(first) == 1 and not bare else DEFAULT_BASE


def plain(name: str) -> str:
    """Return a name as any file system takes it."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")[:MAX_NAME] or DEFAULT_BASE


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
    home = make_folder(folder / METRICS_FOLDER)
    return make_folder(home / f"rank-{rank}") if rank else home


@dataclass(slots=True)
class Thinning:
    """Which rows of a growing file are kept: all up to `most`, then every 2nd, every 4th, ...

    So a file grows with the logarithm of the run's length, nothing in it is ever rewritten, and
    at any time the second half of the run is told by at least a quarter of `most` rows.
    """

    most: int  # rows at each distance; 0: all rows are kept
    kept: int = 0  # rows that are in the file already
    _seen: int = -1  # rows that came; below 0: not counted yet

    def keep(self, rows: Rows) -> Rows:
        """Return the rows to write."""
        if not self.most:
            return rows
        if self._seen < 0:
            level, remainder = divmod(self.kept, self.most)
            self._seen = self.most * (2**level - 1) + remainder * 2**level
        first, self._seen = self._seen, self._seen + len(rows.steps)
        if self._seen <= self.most:
            return rows
        index = np.arange(first, self._seen)
        mask = index % _strides(index, self.most) == 0
        return Rows(rows.keys, rows.steps[mask], rows.times[mask], rows.values[mask])


def _strides(index: NDArray[np.int64], max_rows: int) -> NDArray[np.int64]:
    """Return the distance at which rows are kept: 1 below `most`, 2 below 3 `most`, 4 below 7..."""
    # The exponent of a power of two that is not above: exact far beyond any run's length.
    exponents = np.frexp(index // max_rows + 1)[1].astype(np.int64) - 1
    strides: NDArray[np.int64] = np.left_shift(np.int64(1), exponents)
    return strides
