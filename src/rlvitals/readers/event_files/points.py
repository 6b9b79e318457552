"""Points of one tag from several places of a file, put back into the order of the file."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.records import Series

NOWHERE = np.zeros(0, np.int64)


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

    _parts: dict[str, list[Piece]]

    def __init__(self) -> None:
        """Start empty."""
        self._parts = {}

    def add(self, window: dict[str, list[Piece]]) -> None:
        """Add the points of the next window: tags keep the order of their first points."""
        pieces = {tag: _ordered(found) for tag, found in window.items()}
        pieces = {tag: piece for tag, piece in pieces.items() if len(piece.places)}
        for tag, piece in sorted(pieces.items(), key=lambda item: int(item[1].places[0])):
            nowhere = piece._replace(places=NOWHERE)  # needed within the window only
            self._parts.setdefault(tag, []).append(nowhere)

    def series(self) -> dict[str, Series]:
        """Return the series; the points are given away, so that they are in memory once."""
        series = {}
        for tag in list(self._parts):
            parts = self._parts.pop(tag)
            series[tag] = Series(
                np.concatenate([part.steps for part in parts]),
                np.concatenate([part.times for part in parts]),
                np.concatenate([part.values for part in parts], dtype=np.float64),
            )
        return series


def _ordered(pieces: list[Piece]) -> Piece:
    """Return one piece of several, by their places."""
    if len(pieces) == 1:
        return pieces[0]
    together = Piece(
        np.concatenate([piece.places for piece in pieces]),
        np.concatenate([piece.times for piece in pieces]),
        np.concatenate([piece.steps for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
    )
    places = together.places
    if (places[1:] >= places[:-1]).all():
        return together
    return together.where(np.argsort(places, kind="stable"))
