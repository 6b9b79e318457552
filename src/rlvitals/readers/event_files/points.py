"""Points of one tag from several places of a file, put back into the order of the file."""

from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.types import Series

FEW = 2**12  # points of a file: so few are handed on as views of the columns they stand in

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
        ordered = [(tag, _ordered(found)) for tag, found in window.items()]
        found = [(int(pieces[0].places[0]), tag, pieces) for tag, pieces in ordered if pieces]
        found.sort(key=itemgetter(0))
        for _, tag, pieces in found:
            # Places are needed within the window only.
            parts = [piece[1:4] for piece in pieces]
            self._count += sum([len(piece.steps) for piece in pieces])
            before = self._parts.setdefault(tag, parts)
            if before is not parts:
                before += parts

    def series(self) -> dict[str, Series]:
        """Return the series; the points are given away, so that they are in memory once."""
        series, copied = {}, self._count > FEW
        for tag in list(self._parts):
            parts = self._parts.pop(tag)
            if len(parts) == 1:  # of a file that grows by a row: the same, at a third of the cost
                times, steps, values = parts[0]
                numbers = values.astype(np.float64, copy=copied)
                series[tag] = Series(
                    steps.copy() if copied else steps, times.copy() if copied else times, numbers
                )
                continue
            series[tag] = Series(
                np.concatenate([steps for _, steps, _ in parts]),
                np.concatenate([times for times, _, _ in parts]),
                np.concatenate([values for _, _, values in parts], dtype=np.float64),
            )
        return series


def _ordered(pieces: list[Piece]) -> list[Piece]:
    """Return the points of several pieces in the order of the file."""
    if len(pieces) == 1 and len(pieces[0].places):
        return pieces
    pieces = [piece for piece in pieces if len(piece.places)]
    if len(pieces) < 2:  # noqa: PLR2004  # in order as it is
        return pieces
    pieces.sort(key=lambda piece: int(piece.places[0]))
    if all(one.places[-1] < two.places[0] for one, two in pairwise(pieces)):
        return pieces
    together = Piece(
        np.concatenate([piece.places for piece in pieces]),
        np.concatenate([piece.times for piece in pieces]),
        np.concatenate([piece.steps for piece in pieces]),
        np.concatenate([piece.values for piece in pieces], dtype=np.float64),
    )
    return [together.where(np.argsort(together.places, kind="stable"))]
