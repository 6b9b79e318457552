"""Collect the content of an event file window by window."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.events import SCALARS_PLUGIN, Events
from rlvitals.readers.event_files.framing import RECORD_HEADER, Frames, read_numbers
from rlvitals.readers.event_files.loop_cycles import stretches
from rlvitals.readers.event_files.points import Points
from rlvitals.readers.event_files.scalars import Window, clear_large_cache
from rlvitals.readers.event_files.stream import Taken
from rlvitals.storage.crc32c import checksums, unmask


class Contents:
    """Collects what a file's windows hold."""

    def __init__(self, plugins: Mapping[str, str]) -> None:
        """Start from the plugin of each tag in earlier events."""
        self.events = Events(plugins)
        self.points = Points()
        clear_large_cache()

    def take(self, data: NDArray[np.uint8], base: int, frames: Frames, *, final: bool) -> Taken:
        """Add a window's records. A last round that is not whole waits for the next window."""
        if not len(frames.starts):
            return Taken([], 0)
        rounds = list(stretches(frames.lengths))
        if rounds and not final and 0 < len(frames.starts) - rounds[-1].end < rounds[-1].size:
            frames = frames.until(rounds[-1].end)
        window = Window(data, base, frames, self.events.plugins)
        odd = window.read(rounds)
        starts, lengths = frames.starts[odd] + RECORD_HEADER.size, frames.lengths[odd]
        good = read_numbers(data, frames.starts[odd], "<i8").view(np.int64) == lengths
        stored = unmask(read_numbers(data, starts + lengths, "<u4").view(np.uint32))
        good &= checksums(data, starts, lengths) == stored
        self._add_odd(data, base, starts[good], lengths[good])
        # The columns and the points read one by one, less what is no scalar after all.
        for tag, piece in self.events.points().items():
            window.pieces.setdefault(tag, []).append(piece)
        not_scalars = {tag for tag, name in self.events.plugins.items() if name != SCALARS_PLUGIN}
        for tag in window.pieces.keys() & not_scalars:
            described_at = self.events.described.get(tag, -1)
            window.pieces[tag] = [
                piece.where(piece.places < described_at) if piece.tensors else piece
                for piece in window.pieces[tag]
            ]
        self.points.add(window.pieces)
        return Taken([int(index) for index in odd[~good]], len(frames.starts))

    def _add_odd(
        self,
        data: NDArray[np.uint8],
        base: int,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> None:
        """Add payloads one by one, in the order of the file."""
        self.events.described = {}
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            payload = data[start : start + length].tobytes()
            self.events.take(payload, base + start - RECORD_HEADER.size)
