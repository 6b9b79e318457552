"""All that an event file holds, put together window by window."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.crc32c import checksums, unmasked
from rlvitals.readers.event_files.events import Events
from rlvitals.readers.event_files.framing import HEADER, Frames, words
from rlvitals.readers.event_files.points import Points
from rlvitals.readers.event_files.scalars import scalars_in


class Contents:
    """Collects what a file's windows hold."""

    def __init__(self, is_scalar: Mapping[str, bool]) -> None:
        """Start from what earlier events said of each tag's tensors."""
        self.events = Events(is_scalar)
        self.points = Points()

    def take(self, data: NDArray[np.uint8], base: int, frames: Frames) -> list[int]:
        """Add a window's records; return the indices of those that are damaged."""
        if not len(frames.at):
            return []
        pieces, odd = scalars_in(data, frames, base, self.events.is_scalar)
        starts, lengths = frames.at[odd] + HEADER.size, frames.lengths[odd]
        stored = unmasked(words(data, starts + lengths, "<u4").view(np.uint32))
        good = checksums(data, starts, lengths) == stored
        self.events.described = {}
        for start, length in zip(starts[good].tolist(), lengths[good].tolist(), strict=True):
            payload = data[start : start + length].tobytes()
            self.events.take(payload, base + start - HEADER.size)
        for tag, piece in self.events.points().items():
            pieces.setdefault(tag, []).append(piece)
        for tag in pieces.keys() & {t for t, is_one in self.events.is_scalar.items() if not is_one}:
            since = self.events.described.get(tag, -1)
            pieces[tag] = [
                piece.where(piece.places < since) if piece.tensors else piece
                for piece in pieces[tag]
            ]
        self.points.add(pieces)
        return [int(index) for index in odd[~good]]
