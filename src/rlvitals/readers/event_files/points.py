"""Merge the points of a tag into the order of the file."""

from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Series

Part = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.floating]]  # times, steps, values


class Piece(NamedTuple):
    """Points of one tag, in the order of the file: four columns [n].

    `places` int64 say where in the file each point stands: its record's offset, plus how many
    numbers of its event stand before it.
    """

    places: NDArray[np.int64]
    times: NDArray[np.float64]
    steps: NDArray[np.int64]
    values: NDArray[np.floating]
    tensors: bool = False

    def where(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> "Piece":
        """Keep the points that a mask or indices pick."""
        places, times, steps, values, tensors = self
        return Piece(places[mask], times[mask], steps[mask], values[mask], tensors)


@dataclass(slots=True)
class Points:
    """Collects the points of a file, window by window, and builds each series once."""

    _parts: dict[str, list[Part]]
    _count: int

    def __init__(self) -> None:
        """Start empty."""
        self._parts = {}
        self._count = 0

    def add(self, window: dict[str, list[Piece]]) -> None:
        """Add the points of the next window: tags keep the order of their first points."""
        ordered = [(tag, _sort_pieces(pieces)) for tag, pieces in window.items()]
        by_first_place = [
            (int(pieces[0].places[0]), tag, pieces) for tag, pieces in ordered if pieces
        ]
        by_first_place.sort(key=itemgetter(0))
        for _, tag, pieces in by_first_place:
            # Places are needed within the window only.
            columns = [piece[1:4] for piece in pieces]
            self._count += sum([len(piece.steps) for piece in pieces])
            parts_so_far = self._parts.setdefault(tag, columns)
            if parts_so_far is not columns:
                parts_so_far += columns

    def series(self) -> dict[str, Series]:
        """Return the series; the points are given away, so that they are in memory once."""
        series, copied = {}, self._count > 2**12  # so few stay views of their columns
        for tag in list(self._parts):
            columns = self._parts.pop(tag)
            if len(columns) == 1:  # of a file that grows by a row: the same, at a third of the cost
                times, steps, values = columns[0]
                numbers = values.astype(np.float64, copy=copied)
                series[tag] = Series(
                    steps.copy() if copied else steps, times.copy() if copied else times, numbers
                )
                continue
            series[tag] = Series(
                np.concatenate([steps for _, steps, _ in columns]),
                np.concatenate([times for times, _, _ in columns]),
                np.concatenate([values for _, _, values in columns], dtype=np.float64),
            )
        return series


def _sort_pieces(pieces: list[Piece]) -> list[Piece]:
    """Return the points of several pieces in the order of the file."""
    if len(pieces) == 1 and len(pieces[0].places):
        return pieces
    pieces = [piece for piece in pieces if len(piece.places)]
    if len(pieces) < 2:  # in order as it is
        return pieces
    pieces.sort(key=lambda piece: int(piece.places[0]))
    if all(first.places[-1] < second.places[0] for first, second in pairwise(pieces)):
        return pieces
    merged = Piece(
        np.concatenate([piece.places for piece in pieces]),
        np.concatenate([piece.times for piece in pieces]),
        np.concatenate([piece.steps for piece in pieces]),
        np.concatenate([piece.values for piece in pieces], dtype=np.float64),
    )
    return [merged.where(np.argsort(merged.places, kind="stable"))]
