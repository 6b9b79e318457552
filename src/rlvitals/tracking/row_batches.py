"""Convert logged rows to columns at a flush."""

import struct
import time as clock
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.tracking import tensors
from rlvitals.tracking.sinks.sink import AXIS_PREFIX, Rows
from rlvitals.tracking.warnings_log import Notes

ROW_FIELDS = 4  # of a row in a flat list: step, time, dict, None; or step, time, packed, names
YIELD_ROWS = (
    256  # rows laid out before other threads may run: a quarter of a millisecond for 20 numbers
)

Keys = tuple[str, ...]
Row = tuple[int, float, dict[str, object]]


class Batcher:
    """Turns flat lists `step, time, dict, None, ...` into Rows, layout by layout.

    A row that was logged by compiled code is `step, time, bytes, names`: its numbers are float64.
    """

    def __init__(self, notes: Notes) -> None:
        """Count in `notes` what cannot be laid out."""
        self._notes = notes
        self._gently = False
        self._checked: set[Keys] = set()  # layouts whose names are all strings

    def rows(self, flat: Sequence[object], *, gently: bool = False) -> list[Rows]:
        """Convert logged rows to columns. Within each metric the order stays.

        `gently` lets other threads run in between.
        """
        self._gently = gently
        layouts = _layouts(flat)
        if not layouts:
            return []
        keys = layouts[0]
        if keys in self._checked and layouts.count(keys) == len(layouts):
            return self._columns(keys, flat)
        return [
            rows
            for keys, group in _groups(flat, layouts)
            for rows in (
                self._columns(keys, group)
                if self._has_string_keys(keys)
                else self._rows_of_numbers(group)
            )
        ]

    def _has_string_keys(self, keys: Keys) -> bool:
        if keys not in self._checked:
            if not all(isinstance(key, str) for key in keys):
                return False
            if len(self._checked) >= 10_000:  # names made anew at every step
                self._checked.clear()
            self._checked.add(keys)
        return True

    def _columns(self, keys: Keys, flat: Sequence[object]) -> list[Rows]:
        count, width = len(flat) // ROW_FIELDS, len(keys)
        if not width:
            return []
        values = np.empty((width, count))
        try:
            steps = np.array(flat[::ROW_FIELDS], np.int64)
            times = np.array(flat[1::ROW_FIELDS], np.float64)
            for begin in range(0, count, YIELD_ROWS):
                if begin and self._gently:
                    clock.sleep(0)  # the training loop waits for the interpreter no longer
                end = min(begin + YIELD_ROWS, count)
                items = flat[begin * ROW_FIELDS : end * ROW_FIELDS]
                rows: list[Any] = items[2::ROW_FIELDS]  # type: ignore[assignment]
                as_dicts = items[3::ROW_FIELDS].count(None)
                if not as_dicts:
                    packed = b"".join(rows)
                else:
                    cells = (
                        map(dict.values, rows)
                        if as_dicts == len(rows)
                        else (
                            unpack_row(row) if type(row) is bytes else row.values() for row in rows
                        )
                    )
                    packed = struct.pack(f"{width * len(rows)}d", *chain.from_iterable(cells))
                values[:, begin:end] = np.frombuffer(packed).reshape(-1, width).T
        except Exception:  # noqa: BLE001 - a caller's number may raise anything: one by one then
            return self._rows_of_numbers(flat)
        return [Rows(keys, steps, times, values.T)]

    def _rows_of_numbers(self, flat: Sequence[object]) -> list[Rows]:
        """Convert rows with values that are no numbers: those are left out and counted."""
        clean: list[object] = []
        fields: Iterator[Any] = zip(*(flat[i::ROW_FIELDS] for i in range(ROW_FIELDS)), strict=True)
        for step, time, row, names in fields:
            as_dict = row if names is None else dict(zip(names, unpack_row(row), strict=True))
            metrics = tensors.flatten_metrics(as_dict, at_once=True)
            for text in metrics.wrong:
                self._notes.add(text)
            for name in metrics.none:
                self._notes.add(f"{name} was None")
            numbers = {name: tensors.number(value) for name, value in metrics.values.items()}
            numbers = {name: value for name, value in numbers.items() if value is not None}
            number = tensors.to_int64(step)
            if number is None:
                self._notes.add(f"a step must be a whole number, not {tensors.kind(step)}")
            elif numbers:
                clean += (number, time, numbers, None)
        return [Rows(keys, *_table(keys, group)) for keys, group in _groups(clean, _layouts(clean))]


def _layouts(flat: Sequence[object]) -> list[Keys]:
    rows: Iterator[Any] = zip(flat[2::ROW_FIELDS], flat[3::ROW_FIELDS], strict=True)
    return [tuple(row) if names is None else names for row, names in rows]


def _groups(flat: Sequence[object], layouts: Sequence[Keys]) -> Iterator[tuple[Keys, list[object]]]:
    """Group rows by layout; layouts that share a metric are kept in order."""
    waiting: dict[Keys, list[object]] = {}
    names: set[object] = set()  # the metrics of the layouts that wait
    for i, keys in enumerate(layouts):
        if keys not in waiting:
            metrics = [key for key in keys if not str(key).startswith(AXIS_PREFIX)]
            if not names.isdisjoint(metrics):
                yield from waiting.items()
                waiting = {}
                names.clear()
            names.update(metrics)
            waiting[keys] = []
        waiting[keys] += flat[i * ROW_FIELDS : (i + 1) * ROW_FIELDS]
    yield from waiting.items()


def unpack_row(row: bytes) -> Sequence[float]:
    """Return the numbers of a row that was logged by compiled code."""
    return memoryview(row).cast("d")


def _table(
    keys: Keys, flat: list[object]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    rows: list[dict[str, float]] = flat[2::ROW_FIELDS]  # type: ignore[assignment]
    values = np.array([[row[key] for row in rows] for key in keys], np.float64)
    return (
        np.array(flat[::ROW_FIELDS], np.int64),
        np.array(flat[1::ROW_FIELDS], np.float64),
        values.T,
    )
