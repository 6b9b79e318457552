"""The scalars of many linked records at once, by the records' length."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.framing import AROUND, CHECK, HEADER, Frames, intact, words
from rlvitals.readers.event_files.layouts import STEP_AT, STEP_KEY, layout_of
from rlvitals.readers.event_files.points import Piece
from rlvitals.readers.event_files.shapes import Rows, Shape, row_width

LONGEST = 2**12  # a longer event is no scalar, or too many of them: read field by field
WIDTHS = 16  # kinds of step: its varint's bytes, 0 without one, 8 for eight and more
SHORTEST = 16  # bytes: no scalar's event is shorter
FEWEST = 4  # records of one length and step that are worth the setting up
TRIES = 16  # records without a known shape that are looked at, for each length and step
MOST_SHAPES = 8  # of one length and step
MOST_LENGTHS = 1024  # shapes are remembered across files: that many lengths and steps
SLACK = row_width(LONGEST)  # bytes that must stand behind the records of a window


Pieces = dict[str, list[Piece]]  # by tag
_SHAPES: dict[int, list[Shape]] = {}  # by length and kind of step


class Found(NamedTuple):
    """What was read of a window's records."""

    pieces: Pieces
    odd: NDArray[np.intp]  # ascending indices of the records to read field by field


def scalars_in(
    data: NDArray[np.uint8], frames: Frames, base: int, is_scalar: dict[str, bool]
) -> Found:
    """Return the scalars of the linked records of a window that starts at offset `base`.

    `data` has SLACK bytes behind the records. `is_scalar` says what is known of tags before.
    """
    pieces: Pieces = {}
    long = np.flatnonzero(frames.lengths >= LONGEST)
    odd = []
    kinds = (frames.lengths * WIDTHS + _step_kinds(data, frames.at)).astype(np.uint16)
    kinds[long] = 0  # as what is too short for any scalar
    order = np.argsort(kinds, kind="stable")  # a radix sort, for 16 bits
    counts = np.bincount(kinds)
    end = 0
    for kind in np.flatnonzero(counts).tolist():
        first, end = end, end + int(counts[kind])
        group = Group(data, frames, base, kind, order[first:end])
        odd.append(group.read(pieces, is_scalar))
    return Found(pieces, np.sort(np.concatenate(odd)))


def _step_kinds(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bytes each event's step takes: 0 without a step, 8 for eight or more."""
    raw = words(data, at + HEADER.size + STEP_AT - 1, "<u8").view(np.uint64)
    last = ~raw & np.uint64(0x80808080_80808000)  # flags of bytes that end a varint
    last &= ~last + np.uint64(1)  # the first of them
    exponent = (last.astype(np.float64).view(np.int64) >> 52) - 1023
    width = np.where(last > 0, (exponent + 1) // 8 - 1, 8)
    return np.where((raw & np.uint64(255)) == STEP_KEY[0], width, 0)


@dataclass(slots=True)
class Group:
    """Records of one length whose steps take as many bytes."""

    data: NDArray[np.uint8]
    frames: Frames
    base: int
    kind: int
    left: NDArray[np.intp]  # indices of the records that no shape explains yet
    first: list[int] = field(default_factory=list)  # of those, records that describe their tag

    def read(self, pieces: Pieces, is_scalar: dict[str, bool]) -> NDArray[np.intp]:
        """Add the pieces of all that a shape explains; return the records to read one by one."""
        if self.kind < WIDTHS * SHORTEST or len(self.left) < FEWEST:
            return self.left
        known = iter(list(_SHAPES.get(self.kind, [])))
        tried: list[Shape] = []
        while len(self.left):
            shape = next(known, None) or self._new_shape(tried)
            if shape is None:
                break
            tried.append(shape)
            rows = shape.explain(self._rows(self.left, shape.length))
            if len(rows.indices):
                self._take(shape, rows, pieces, is_scalar)
                self.left = np.delete(self.left, rows.indices)
        return np.concatenate((self.left, np.array(self.first, np.intp)))

    def _rows(self, which: NDArray[np.intp], length: int) -> NDArray[np.uint8]:
        """Return records as rows of bytes: uint8 [n, row_width]."""
        width = row_width(length)
        return words(self.data, self.frames.at[which], f"V{width}").view(np.uint8).reshape(-1, width)

    def _new_shape(self, tried: list[Shape]) -> Shape | None:
        """Return a shape of one of the records left that is none of those tried."""
        length = self.kind // WIDTHS
        known = _SHAPES.setdefault(self.kind, [])
        if len(known) >= MOST_SHAPES:
            return None
        for row in self._rows(self.left[:TRIES], length):
            record = row[: length + AROUND].tobytes()
            layout = layout_of(record[HEADER.size : -CHECK.size])
            if layout and not any(shape.fits(layout) for shape in tried) and intact(record):
                known.append(Shape(length, layout.step_width, layout.places))
                return known[-1]
        return None

    def _take(
        self, shape: Shape, rows: Rows, pieces: Pieces, is_scalar: dict[str, bool]
    ) -> None:
        """Add the explained rows to the pieces of their tags."""
        where = self.left[rows.indices]
        columns = [where, self.frames.at[where] + self.base, rows.times, rows.steps, *rows.values]
        counts = np.bincount(rows.templates)
        present = np.flatnonzero(counts).tolist()
        if len(present) > 1:
            order = np.argsort(rows.templates.astype(np.uint16), kind="stable")
            columns = [column[order] for column in columns]
        end = 0
        for template in present:
            first, end = end, end + int(counts[template])
            numbers = shape.templates[template]
            if any(number.described and number.tag not in is_scalar for number in numbers):
                self.first.append(int(columns[0][first]))  # says what its tag is: read as a whole
                first += 1
            _, places, times, steps, *values = (column[first:end] for column in columns)
            for index, (number, value) in enumerate(zip(numbers, values, strict=True)):
                piece = Piece(places + index, times, steps, value, number.tensor)
                pieces.setdefault(number.tag, []).append(piece)
