"""Convert the values of Trackio's `metrics` rows: numbers, histograms, tables, media.

Source: `trackio/histogram.py`, `trackio/table.py` and `trackio/utils.py` (`serialize_values`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rlvitals.errors import join_first
from rlvitals.readers.formats.columns import Columns, json_number
from rlvitals.readers.formats.json_lines import flatten
from rlvitals.types import Histogram, Table

TRACKIO_TYPE = "_type"  # of a value that is no number


class Values:
    """Collects rows: numbers in `columns`, `histograms` and `tables()` by key."""

    def __init__(self) -> None:
        """Start empty."""
        self.columns = Columns()
        self.histograms: dict[str, list[Histogram]] = {}
        self._rows: dict[str, list[tuple[int, Mapping[str, object]]]] = {}
        self._left: Counter[str] = Counter()

    def add(self, step: int, time: float, item: Mapping[str, object]) -> None:
        """Add one row's values."""
        for key, value in item.items():
            if not isinstance(value, Mapping):
                self._add_number(key, value, step, time)
            elif TRACKIO_TYPE in value:
                self._add_typed(key, value, step, time)
            else:
                for inner, leaf in flatten(value, key):
                    self._add_number(inner, leaf, step, time)

    def _add_number(self, key: str, value: object, step: int, time: float) -> None:
        number = json_number(value)
        if number is not None:
            self.columns.add(key, step, number, time)
        elif value is not None:
            self._left[key] += 1

    def _add_typed(self, key: str, value: Mapping[str, object], step: int, time: float) -> None:
        cells = value.get("_value")
        if value[TRACKIO_TYPE] == "trackio.histogram":
            edges, counts = _floats(value.get("bins")), _floats(value.get("values"))
            if counts and len(edges) == len(counts) + 1:
                histogram = Histogram(step, time, np.array(edges), np.array(counts))
                self.histograms.setdefault(key, []).append(histogram)
                return
        elif value[TRACKIO_TYPE] == "trackio.table" and isinstance(cells, list):
            rows = [(step, row) for row in cells if isinstance(row, Mapping)]
            self._rows.setdefault(key, []).extend(rows)
            return
        self._left[key] += 1

    def tables(self) -> dict[str, Table]:
        """Return the rows of each table with the step that they were logged at."""
        return {
            key: Table(
                np.array([step for step, _ in rows], np.int64),
                {
                    name: [_cell(row.get(name)) for _, row in rows]
                    for name in dict.fromkeys(name for _, row in rows for name in row)
                },
            )
            for key, rows in self._rows.items()
        }

    def notes(self) -> list[str]:
        """Name what is neither a number nor a histogram nor a table."""
        if not self._left:
            return []
        names = join_first([f"`{key}`" for key in self._left], 4)
        count = sum(self._left.values())
        values = "1 value that is no number" if count == 1 else f"{count:,} values that are none"
        return [f"{values}, left out: {names}"]


def _floats(items: object) -> list[float]:
    """Return a list of numbers; empty where one of them is none."""
    if not isinstance(items, Sequence) or isinstance(items, str):
        return []
    numbers = [value for item in items if (value := json_number(item)) is not None]
    return numbers if len(numbers) == len(items) else []


def _cell(value: object) -> object:
    """Return a table's cell: text or a number; None for images and the like."""
    special = json_number(value)
    return special if special is not None else value if isinstance(value, str) else None
