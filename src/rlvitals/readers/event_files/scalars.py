"""Parse the scalars of a window: rounds of a loop first, then records by their length."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.byte_columns import Shape, row_width
from rlvitals.readers.event_files.framing import (
    CHECKSUM_FORMAT,
    MAX_SCALAR_EVENT_BYTES,
    RECORD_HEADER,
    RECORD_OVERHEAD,
    Frames,
    is_intact,
    read_numbers,
)
from rlvitals.readers.event_files.loop_cycles import Rounds, Stretch, cycle_at
from rlvitals.readers.event_files.points import Piece
from rlvitals.readers.event_files.record_layout import STEP_AT, STEP_KEY, Number, layout_of
from rlvitals.startup.fast_dataclass import dataclass

STEP_WIDTHS = 16  # kinds of step: its varint's bytes, 0 without one, 8 for eight and more
MAX_CACHED_TEMPLATES = 2**16  # in all: beyond it what other files taught is forgotten
WINDOW_SLACK_BYTES = row_width(
    MAX_SCALAR_EVENT_BYTES
)  # bytes that must stand behind the records of a window

_SHAPES: dict[int, list[Shape]] = {}  # by length and kind of step, across files


@dataclass(slots=True)
class Window:
    """Linked records in some bytes, with SLACK bytes behind the last; `base` is their offset.

    `plugins` says what tags were said to be before. `pieces` and `odd` are filled: the scalars by
    tag, and the indices of records to read field by field.
    """

    data: NDArray[np.uint8]
    base: int
    frames: Frames
    plugins: Mapping[str, str]
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    odd: list[NDArray[np.intp]] = field(default_factory=list)

    def read(self, rounds: list[Stretch]) -> NDArray[np.intp]:
        """Collect the scalars; return the indices of all other records, ascending."""
        is_unread = np.ones(len(self.frames.starts), np.bool_)
        for stretch in rounds:
            self._read_rounds(stretch, is_unread[stretch.first : stretch.end])
        records = np.flatnonzero(is_unread)
        lengths = self.frames.lengths[records]
        kinds = lengths * STEP_WIDTHS + _step_kinds(self.data, self.frames.starts[records])
        kinds[lengths >= MAX_SCALAR_EVENT_BYTES] = 0  # as what is too short for any scalar
        small = kinds.astype(np.uint16)
        order = records[np.argsort(small, kind="stable")]  # a radix sort, for 16 bits
        counts = np.bincount(small)
        end = 0
        for kind in np.flatnonzero(counts).tolist():
            first, end = end, end + int(counts[kind])
            group = order[first:end]
            # No scalar's event is shorter than 16 bytes; eight records are worth the setup.
            if kind >= STEP_WIDTHS * 16 and len(group) >= 8:
                group = self._read_group(group, kind)
            self.odd.append(group)
        return np.sort(np.concatenate(self.odd)) if self.odd else np.zeros(0, np.intp)

    def _read_rounds(self, stretch: Stretch, is_unread: NDArray[np.bool_]) -> None:
        """Collect the scalars of a stretch, and mark its records as no longer left."""
        cycle = cycle_at(self.data, self.frames, stretch)
        if cycle is None:
            return
        start = int(self.frames.starts[stretch.first])
        columns, good = Rounds(self.data, cycle, start, stretch.rounds).columns()
        laid_out = np.array([member is not None for member in cycle.members])
        is_unread.reshape(-1, stretch.size)[:] = ~(good[:, None] & laid_out)
        rounds = np.flatnonzero(good)
        if not len(rounds):
            return
        all_good = len(rounds) == len(good)
        starts = rounds * cycle.size + (self.base + start)
        first = stretch.first + int(rounds[0]) * stretch.size
        for index, column in zip(np.flatnonzero(laid_out).tolist(), columns, strict=True):
            arrays = (column.times, column.steps, *column.values)
            good_arrays = arrays if all_good else tuple(array[rounds] for array in arrays)
            places = starts + column.member.start
            self._add(column.member.layout.numbers, first + index, (places, *good_arrays))

    def _read_group(self, records: NDArray[np.intp], kind: int) -> NDArray[np.intp]:
        """Collect the scalars of records of one kind; return those that no shape explains."""
        known_shapes = iter(list(_SHAPES.get(kind, [])))
        tried: list[Shape] = []
        while len(records):
            shape = next(known_shapes, None) or self._new_shape(records, kind, tried)
            if shape is None:
                break
            tried.append(shape)
            rows = shape.explain(self._rows(records, shape.length))
            if not len(rows.indices):
                continue
            indices = records[rows.indices]
            columns = (indices, self.frames.starts[indices] + self.base, rows.times, rows.steps)
            self._split(shape, rows.templates, (*columns, *rows.values))
            records = np.delete(records, rows.indices)
        return records

    def _rows(self, records: NDArray[np.intp], length: int) -> NDArray[np.uint8]:
        """Return records as rows of bytes: uint8 [n, row_width]."""
        width = row_width(length)
        return (
            read_numbers(self.data, self.frames.starts[records], f"V{width}")
            .view(np.uint8)
            .reshape(-1, width)
        )

    def _new_shape(self, records: NDArray[np.intp], kind: int, tried: list[Shape]) -> Shape | None:
        """Return a shape of one of the records left that is none of those tried."""
        length = kind // STEP_WIDTHS
        known_shapes = _SHAPES.setdefault(kind, [])
        if len(known_shapes) >= 8:
            return None
        # Records without a known shape that are looked at, for each length and step.
        for row in self._rows(records[:16], length):
            record = row[: length + RECORD_OVERHEAD].tobytes()
            layout = layout_of(record[RECORD_HEADER.size : -CHECKSUM_FORMAT.size])
            if layout and not any(shape.fits(layout) for shape in tried) and is_intact(record):
                known_shapes.append(Shape(length, layout.step_width, layout.places))
                return known_shapes[-1]
        return None

    def _split(
        self,
        shape: Shape,
        templates: NDArray[np.intp],
        columns: tuple[NDArray[Any], ...],
    ) -> None:
        """Collect columns of records whose templates are mixed; the first are their indices."""
        counts = np.bincount(templates)
        present = np.flatnonzero(counts)
        if len(present) > 1:
            order = np.argsort(templates.astype(np.uint16), kind="stable")
            columns = tuple(column[order] for column in columns)
        ends = counts[present].cumsum()
        firsts = columns[0][ends - counts[present]].tolist()
        first = 0
        for template, index, end in zip(present.tolist(), firsts, ends.tolist(), strict=True):
            selected = tuple([column[first:end] for column in columns[1:]])
            self._add(shape.templates[template], index, selected)
            first = end

    def _add(
        self, numbers: tuple[Number, ...], first: int, columns: tuple[NDArray[Any], ...]
    ) -> None:
        """Collect the points of one template, the first of which is in the record `first`.

        `columns` are their places, times, steps, and the values of each of its numbers.
        """
        if [n for n in numbers if n.described and n.tag not in self.plugins]:
            self.odd.append(np.array([first]))  # says what its tag is: to be read as a whole
            columns = tuple(column[1:] for column in columns)
        places, times, steps, *values = columns
        for index, (number, value) in enumerate(zip(numbers, values, strict=True)):
            piece = Piece(places + index if index else places, times, steps, value, number.tensor)
            pieces = self.pieces.get(number.tag)
            if pieces is None:
                self.pieces[number.tag] = [piece]
            else:
                pieces.append(piece)


def clear_large_cache() -> None:
    """Forget the shapes and templates of other files where they are very many."""
    if (
        sum(len(shape.templates) for shapes in _SHAPES.values() for shape in shapes)
        > MAX_CACHED_TEMPLATES
    ):
        _SHAPES.clear()


def _step_kinds(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bytes each event's step takes: 0 without a step, 8 for eight or more."""
    raw = read_numbers(data, starts + RECORD_HEADER.size + STEP_AT - 1, "<u8").view(np.uint64)
    last = ~raw & np.uint64(0x80808080_80808000)  # flags of bytes that end a varint
    last &= ~last + np.uint64(1)  # the first of them
    exponent = (last.astype(np.float64).view(np.int64) >> 52) - 1023
    width = np.where(last > 0, (exponent + 1) // 8 - 1, 8)
    return np.where((raw & np.uint64(255)) == STEP_KEY[0], width, 0)
