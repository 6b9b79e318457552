"""Rows as they were logged, laid out in columns: what a flush does."""

import struct
import time as clock
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rlvitals.recording import tensors
from rlvitals.recording.notes import Notes
from rlvitals.recording.sinks.sink import AXIS, Rows

FIELDS = 3  # of a row in a flat list: step, time, dict
BURST = 256  # rows laid out before other threads may run: a quarter of a millisecond for 20 numbers

Keys = tuple[str, ...]
Row = tuple[int, float, dict[str, object]]


class Batcher:
    """Turns flat lists `step, time, dict, step, time, dict, ...` into Rows, layout by layout."""

    def __init__(self, notes: Notes) -> None:
        """Count in `notes` what cannot be laid out."""
        self._notes = notes
        self._gently = False
        self._checked: set[Keys] = set()  # layouts whose names are all strings

    def rows(self, flat: Sequence[object], *, gently: bool = False) -> list[Rows]:
        """Lay out what was logged. Within each metric the order stays.

        `gently` lets other threads run in between.
        """
        self._gently = gently
        dicts: Sequence[dict[str, object]] = flat[2::FIELDS]  # type: ignore[assignment]
        if not dicts:
            return []
        keys = tuple(dicts[0])
        if keys in self._checked and all(map(keys.__eq__, map(tuple, dicts))):
            return self._columns(keys, flat)
        return [
            part
            for keys, one in self._groups(flat)
            for part in (self._columns(keys, one) if self._strings(keys) else self._mended(one))
        ]

    def _groups(self, flat: Sequence[object]) -> Iterator[tuple[Keys, list[object]]]:
        """Collect rows by layout; layouts that share a metric are kept in order."""
        waiting: dict[Keys, list[object]] = {}
        for i in range(0, len(flat), FIELDS):
            keys: Keys = tuple(flat[i + 2])  # type: ignore[arg-type]
            if keys not in waiting:
                if any(_share(keys, other) for other in waiting):
                    yield from waiting.items()
                    waiting = {}
                waiting[keys] = []
            waiting[keys] += flat[i : i + FIELDS]
        yield from waiting.items()

    def _strings(self, keys: Keys) -> bool:
        if keys not in self._checked:
            if not all(isinstance(key, str) for key in keys):
                return False
            if len(self._checked) >= 10_000:  # noqa: PLR2004 - names made anew at every step
                self._checked.clear()
            self._checked.add(keys)
        return True

    def _columns(self, keys: Keys, flat: Sequence[object]) -> list[Rows]:
        count, width = len(flat) // FIELDS, len(keys)
        if not width:
            return []
        values = np.empty((width, count))
        try:
            steps = np.array(flat[::FIELDS], np.int64)
            times = np.array(flat[1::FIELDS], np.float64)
            for begin in range(0, count, BURST):
                if begin and self._gently:
                    clock.sleep(0)  # the training loop waits for the interpreter no longer
                end = min(begin + BURST, count)
                cells: Iterator[object] = chain.from_iterable(
                    map(dict.values, flat[begin * FIELDS + 2 : end * FIELDS : FIELDS])  # type: ignore[arg-type]
                )
                packed = struct.pack(f"{width * (end - begin)}d", *cells)
                values[:, begin:end] = np.frombuffer(packed).reshape(-1, width).T
        except Exception:  # noqa: BLE001 - a stranger's number may raise anything: one by one then
            return self._mended(flat)
        return [Rows(keys, steps, times, values.T)]

    def _mended(self, flat: Sequence[object]) -> list[Rows]:
        """Lay out rows some of whose values are no numbers: those are left out and counted."""
        whole: list[object] = []
        for step, time, row in zip(flat[::FIELDS], flat[1::FIELDS], flat[2::FIELDS], strict=True):
            numbers = self._numbers(row)  # type: ignore[arg-type]
            number = tensors.whole(step)
            if number is None:
                self._notes.add(f"a step must be a whole number, not {tensors.kind(step)}")
            elif numbers:
                whole += (number, time, numbers)
        return [Rows(keys, *_table(keys, one)) for keys, one in self._groups(whole)]

    def _numbers(self, row: dict[object, object]) -> dict[str, float]:
        found = tensors.settled(row, at_once=True)
        for text in found.wrong:
            self._notes.add(text)
        for name in found.none:
            self._notes.add(f"{name} was None")
        numbers = {name: tensors.number(value) for name, value in found.values.items()}
        return {name: value for name, value in numbers.items() if value is not None}


def _share(one: Keys, other: Keys) -> bool:
    return any(not str(key).startswith(AXIS) for key in set(one) & set(other))


def _table(
    keys: Keys, flat: list[object]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    rows: list[dict[str, float]] = flat[2::FIELDS]  # type: ignore[assignment]
    values = np.array([[row[key] for row in rows] for key in keys], np.float64)
    return np.array(flat[::FIELDS], np.int64), np.array(flat[1::FIELDS], np.float64), values.T
