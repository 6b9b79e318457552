"""Parse events of one length as rows of bytes, with every byte verified.

Of a scalar's event only the time, the step and the numbers vary; all other bytes are its
template's. A row's stored checksum, less what its varying bytes add to it, must be the
template's (that finds the template), and its other bytes must be the template's, one by one.
A row that passes both is intact and means what its template means.
"""

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.framing import (
    CHECKSUM_FORMAT,
    RECORD_HEADER,
    RECORD_OVERHEAD,
    header_at,
)
from rlvitals.readers.event_files.record_layout import (
    STEP_AT,
    TIME_AT,
    Layout,
    Number,
    Place,
    layout_of,
)
from rlvitals.readers.event_files.varying_bytes import (
    FLOAT_FORMATS,
    WORD_BYTES,
    checksum_of_counts,
    checksum_of_values,
    steps_of,
)
from rlvitals.readers.formats.columns import MAX_STEP
from rlvitals.readers.formats.protobuf import VARINT_CONTINUATION
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.crc32c import crc32c, unmask


@dataclass(frozen=True, slots=True)
class Rows:
    """Events that their shape explains: columns of one length [n], by template.

    `indices` int64 [n] say which rows they are; `templates` int64 [n] index the shape's.
    """

    indices: NDArray[np.int64]
    templates: NDArray[np.intp]
    times: NDArray[np.float64]
    steps: NDArray[np.int64]
    values: tuple[NDArray[np.floating], ...]


@dataclass(slots=True)
class Shape:
    """Payloads of one length with their step and numbers at the same places.

    `templates` grow as they are met. `keys` are the checksums of their payloads with every
    varying byte zero, ascending; `order` says whose; `constants` uint64 [templates, words] are
    their records with every varying bit zero. The first template is that of no record: all zero.
    """

    length: int
    step_width: int
    places: tuple[Place, ...]
    templates: list[tuple[Number, ...]] = field(default_factory=lambda: [()])
    keys: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))
    order: NDArray[np.intp] = field(default_factory=lambda: np.zeros(1, np.intp))
    constants: NDArray[np.uint64] = field(init=False)
    _record: np.dtype[np.void] = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the record's fields."""
        width = row_width(self.length)
        self.constants = np.zeros((1, width // WORD_BYTES), np.uint64)
        places = {
            "time": ("<f8", RECORD_HEADER.size + TIME_AT),
            "check": ("<u4", RECORD_HEADER.size + self.length),
        }
        for index, (offset, size) in enumerate(self.places):
            places[f"value{index}"] = (FLOAT_FORMATS[size], RECORD_HEADER.size + offset)
        self._record = np.dtype(
            {
                "names": list(places),
                "formats": [kind for kind, _ in places.values()],
                "offsets": [offset for _, offset in places.values()],
                "itemsize": width,
            }
        )

    def fits(self, layout: Layout) -> bool:
        """Return True if a payload of this length and of a layout has this shape."""
        return layout.step_width == self.step_width and layout.places == self.places

    def explain(self, rows: NDArray[np.uint8]) -> Rows:
        """Return the columns of those records [n, row_width] that are intact and known.

        Overwrites `rows`.
        """
        record = rows.view(self._record).ravel()
        times = record["time"].copy()
        values = tuple(record[f"value{i}"].copy() for i in range(len(self.places)))
        keys = unmask(record["check"])
        keys ^= checksum_of_counts(times.view(np.uint64)[None], 8, (self.length - TIME_AT - 8,))[0]
        for value, (start, size) in zip(values, self.places, strict=True):
            keys ^= checksum_of_values(value, self.length - start - size)
        steps, added = self._steps(rows)
        templates, good = self._learn(rows, keys ^ added)
        self._blank(rows)
        words = rows.view(np.uint64)
        expected = self.constants.take(templates, axis=0, mode="clip")
        usual = self.step_width <= WORD_BYTES and good.all()
        if usual and np.array_equal(words, expected):
            return Rows(np.arange(len(rows)), templates, times, steps, values)
        good &= (words == expected).all(axis=1)
        good &= np.abs(steps) <= MAX_STEP
        intact_rows = np.flatnonzero(good)
        intact_values = tuple(value[intact_rows] for value in values)
        return Rows(
            intact_rows,
            templates[intact_rows],
            times[intact_rows],
            steps[intact_rows],
            intact_values,
        )

    def _steps(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the steps [n] and what their bytes add to the payloads' checksums."""
        steps, added = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint32)
        for first in range(0, self.step_width, WORD_BYTES):
            width = min(self.step_width - first, WORD_BYTES)
            start = RECORD_HEADER.size + STEP_AT + first
            raw = np.zeros((len(rows), WORD_BYTES), np.uint8)
            raw[:, :width] = rows[:, start : start + width]
            numbers = raw.view(np.uint64).ravel()
            steps |= steps_of(numbers, width) << np.int64(7 * first)
            behind = self.length - STEP_AT - first - width
            added ^= checksum_of_counts(numbers[None], width, (behind,))[0]
        return steps, added

    def _blank(self, rows: NDArray[np.uint8]) -> None:
        """Set all that varies to zero: what is left must be the template's."""
        step = RECORD_HEADER.size + STEP_AT
        rows[:, step : step + self.step_width] &= VARINT_CONTINUATION
        record = rows.view(self._record).ravel()
        record["time"] = 0
        for index in range(len(self.places)):
            record[f"value{index}"] = 0
        rows[:, RECORD_HEADER.size + self.length :] = 0

    def _learn(
        self, rows: NDArray[np.uint8], keys: NDArray[np.uint32]
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return each row's template by its key and whether it has one; new ones are added."""
        positions, is_known = self._look_up(keys)
        if not is_known.all():
            new = np.flatnonzero(~is_known)
            new = new[np.argsort(keys[new], kind="stable")]
            firsts = np.flatnonzero(np.append(True, keys[new[1:]] != keys[new[:-1]]))
            often = np.diff(np.append(firsts, len(new))) > 1
            # What is damaged or of another shape has a key of its own: few of those are tried.
            tried = np.concatenate((new[firsts[often]], np.sort(new[firsts[~often]])[:16]))
            if self._add(rows, keys, np.sort(tried).tolist()):
                positions, is_known = self._look_up(keys)
        return self.order.take(positions, mode="clip"), is_known

    def _look_up(self, keys: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        positions = self.keys.searchsorted(keys)
        return positions, self.keys.take(positions, mode="clip") == keys

    def _add(self, rows: NDArray[np.uint8], keys: NDArray[np.uint32], new: list[int]) -> bool:
        """Add the templates of those rows that are intact and of this shape."""
        constants, all_keys = [self.constants], self.keys[np.argsort(self.order)].tolist()
        # A file with more tags reads the others one by one.
        for index in new[: 4096 - len(self.templates)]:
            row = rows[index : index + 1].copy()
            record = row[0, : self.length + RECORD_OVERHEAD].tobytes()
            payload = bytearray(record[RECORD_HEADER.size : -CHECKSUM_FORMAT.size])
            layout = layout_of(bytes(payload))
            if layout is None or not self.fits(layout) or header_at(record) != self.length:
                continue
            for first, count in layout.varying:
                payload[first : first + count] = bytes(count)
            if crc32c(bytes(payload)) == keys[index]:  # else it is damaged
                self._blank(row)
                constants.append(row.view(np.uint64))
                all_keys.append(int(keys[index]))
                self.templates.append(layout.numbers)
        self.constants = np.concatenate(constants)
        self.order = np.argsort(np.array(all_keys, np.uint32))
        self.keys = np.array(all_keys, np.uint32)[self.order]
        return len(constants) > 1


def row_width(length: int) -> int:
    """Return how many bytes a record takes as a row: whole words."""
    return -(-(length + RECORD_OVERHEAD) // WORD_BYTES) * WORD_BYTES
