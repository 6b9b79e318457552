"""Collect points into columns.

    columns = Columns()
    columns.add("train/loss", step=100, value=0.5, time=1.7e9)
    Log("csv", columns.series())

Convert text to a number with `parse_number` (a cell of text), `json_number` (a JSON
value) or `whole` (a step).
"""

import math
import re
from array import array
from collections.abc import Iterable, KeysView

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

NAN = math.nan
MAX_SETTING_CHARACTERS = 200  # of a setting that is a text or a list
MAX_STEP = 2**62  # a step beyond it is damage, and differences of steps must not overflow

MSVC_NUMBER = re.compile(r"([+-]?)(?:nan\(\w*\)|1\.#(?:ind|qnan|snan|qnb)0*|(1\.#inf0*))")


def parse_number(text: str) -> float | None:
    """Return the number that a cell holds; None where it says that nothing was logged.

    A spelled-out NaN or infinity is a number (data, to be kept): `nan`, `-nan`, `nan(ind)`,
    `-1.#IND`, `inf`, `Infinity`. `True` and `False` are 1 and 0. Empty, `None`, `null`, `NA`
    are None. Raises ValueError for anything else: text, `tensor(1.)`, `1_000`, `0x1F`, `1,5`.
    """
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        cell = text.strip().lower()
        # Cells of values that were not logged; they are missing, not NaN.
        if cell in {"", "none", "null", "na", "n/a"}:
            return None
        # Python's, numpy's and C's spellings are float()'s; these are Python's words and MSVC's.
        if cell in {"true", "false"}:
            return float(cell == "true")
        if match := MSVC_NUMBER.fullmatch(cell):
            return float(f"{match[1]}inf") if match[2] else NAN
    problem = f"not a number: {text[:40]!r}"
    raise ValueError(problem)


def json_number(value: object) -> float | None:
    """Return a JSON or Python value as a number; None for whatever is not one.

    Of strings only NaN and the infinities count ("NaN", "-Infinity"): loggers write them so
    where strict JSON has no word for them; "42" is text. An integer beyond float64 is inf.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, int):  # bool too: 1 or 0
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and len(value) <= len("-infinity"):
        try:
            number = float(value)
        except ValueError:
            return None
        return None if math.isfinite(number) else number
    return None


def to_step(value: float | None) -> int | None:
    """Return a step as an integer; None where it is absent, fractional, not finite or absurd."""
    if value is None or not -MAX_STEP <= value <= MAX_STEP or value != int(value):
        return None
    return int(value)


class Columns:
    """Collects (key, step, time, value) points: 24 bytes a point, no object each.

    Keys keep the order of their first point, points the order they were added in: a step
    that goes back stays where it was logged.
    """

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        """Start empty."""
        self._columns: dict[str, tuple[array[int], array[float], array[float]]] = {}

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._columns)

    def keys(self) -> KeysView[str]:
        """Return the keys that have a point."""
        return self._columns.keys()

    def count(self, key: str) -> int:
        """Count the points of a key."""
        return len(self._columns[key][0]) if key in self._columns else 0

    def _column(self, key: str) -> tuple["array[int]", "array[float]", "array[float]"]:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = (array("q"), array("d"), array("d"))
        return column

    def add(self, key: str, step: int, value: float, time: float = NAN) -> None:
        """Add one point. `step` within int64 (see `whole`); `time` in seconds since the epoch."""
        steps, times, values = self._column(key)
        steps.append(step)
        times.append(time)
        values.append(value)

    def add_row(
        self, step: int, row: Iterable[tuple[str, float | None]], time: float = NAN
    ) -> None:
        """Add a row's points: (key, value) pairs of one step. None is "not logged": no point."""
        columns = self._columns
        for key, value in row:
            if value is not None:
                steps, times, values = columns.get(key) or self._column(key)
                steps.append(step)
                times.append(time)
                values.append(value)

    def extend(
        self,
        key: str,
        steps: NDArray[np.int64],
        values: NDArray[np.float64],
        times: NDArray[np.float64] | None = None,
    ) -> None:
        """Add many points of one key: arrays of one length [n]; no `times` is NaN."""
        if times is None:
            times = np.full(len(steps), np.nan)
        column = self._column(key)
        column[0].frombytes(np.ascontiguousarray(steps, dtype=np.int64).tobytes())
        column[1].frombytes(np.ascontiguousarray(times, dtype=np.float64).tobytes())
        column[2].frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())

    def drain(self) -> dict[str, Series]:
        """Return the columns without a copy, and start again without any."""
        drained, self._columns = self._columns, {}
        return {
            key: Series(np.frombuffer(steps, np.int64), np.frombuffer(times), np.frombuffer(values))
            for key, (steps, times, values) in drained.items()
        }

    def series(self) -> dict[str, Series]:
        """Return the columns as they stand, copied: adding may go on."""
        return {
            key: Series(np.array(steps, np.int64), np.array(times), np.array(values))
            for key, (steps, times, values) in self._columns.items()
        }
