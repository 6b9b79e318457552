"""Read an event file in windows of linked records; skip and count damage.

A record whose payload does not fit its checksum is lost alone where a valid header follows it.
Where none does (bytes are missing or too many, or a header is damaged) the next intact record
is looked for. A torn tail, and damage that reaches the file's end, are left for the next
reading: they are still being written, or bytes arrive out of order.
"""

import io
from typing import BinaryIO, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.framing import (
    RECORD_HEADER,
    RECORD_OVERHEAD,
    Frames,
    find_headers,
    follow,
    header_at,
    is_intact,
    plausible_headers,
)
from rlvitals.readers.formats.damage import Damage

MIN_WINDOW_BYTES = 2**16
MAX_RECORD_BYTES = 64 * 2**20  # longer ones are pictures or graphs: passed over, not loaded


class Taken(NamedTuple):
    """Result of passing on a window's records."""

    damaged: list[int]  # indices, ascending
    taken: int  # how many were taken: the others wait for the next window


class Take(Protocol):
    """Callable that receives a window's records."""

    def __call__(self, data: NDArray[np.uint8], base: int, frames: Frames, *, final: bool) -> Taken:
        """Take linked records of some bytes that start at an offset `base` of the file.

        `final`: the file ends with these bytes, so that no record may wait.
        """
        ...


class Stream:
    """Reads a file's records from an offset on and hands the intact ones over.

    `offset` is where to go on; `unsure` counts the bytes from there to the file's end.
    """

    def __init__(self, file: BinaryIO, offset: int, slack: int) -> None:
        """Start at the start of a record. Windows have `slack` bytes behind their last record."""
        self.offset = offset
        self.damage = Damage()
        self.unsure = 0
        self._file = cast("io.BufferedIOBase", file)
        self._slack = slack
        size = file.seek(0, io.SEEK_END)
        window = min(max(size - offset + 1, MIN_WINDOW_BYTES), 4 * 2**20)
        self._buffer = np.zeros(window + slack, np.uint8)
        self._size = 0  # bytes of the buffer that are the file's
        self._base = offset  # of the buffer's first byte in the file
        self._lost: int | None = None  # where damage began that no record ends yet
        self._patience = 2**28  # bytes are searched for records behind damage

    def notes(self) -> list[str]:
        """Return notes for the user; empty without problems."""
        return self.damage.notes(MAX_RECORD_BYTES, self.unsure)

    def read(self, take: Take) -> None:
        """Read up to the file's end, or to what is left for the next reading."""
        self._file.seek(self._base)
        while True:
            final = self._fill()
            used = self._window(take, final=final)
            self.offset = self._base + used if self._lost is None else self._lost
            self.unsure = self._base + self._size - self.offset
            length = header_at(memoryview(self._buffer.data)[: self._size], used)
            if self._lost is None and length is not None and length > MAX_RECORD_BYTES:
                if not self._pass_over(used + length + RECORD_OVERHEAD):
                    break
                continue
            if self._patience < 0:
                self.unsure = self._file.seek(0, io.SEEK_END) - self.offset
                break
            if final:
                break
            # What is left moves to the front of the buffer, with room for the next record.
            remainder = self._buffer[used : self._size]
            room = max(
                len(self._buffer) - self._slack,
                0 if length is None else length + RECORD_OVERHEAD,
                len(remainder) + MIN_WINDOW_BYTES,
            )
            if room + self._slack > len(self._buffer):
                self._buffer = np.zeros(room + self._slack, np.uint8)
            self._buffer[: len(remainder)] = remainder
            self._base, self._size = self._base + used, len(remainder)

    def _fill(self) -> bool:
        """Read as much as the buffer holds; tell whether the file ended before."""
        view = memoryview(self._buffer.data)[: len(self._buffer) - self._slack]
        while self._size < len(view):
            count = self._file.readinto(view[self._size :])
            if not count:
                return True
            self._size += count
        return False

    def _pass_over(self, end: int) -> bool:
        """Go on behind a record that is not loaded; False where the file ends before."""
        size = self._file.seek(0, io.SEEK_END)
        if self._base + end > size:
            self.unsure = size - self.offset
            return False
        self._file.seek(self._base + end)
        self._base, self._size = self._base + end, 0
        self.damage.oversized += 1
        return True

    def _window(self, take: Take, *, final: bool) -> int:
        """Hand over the buffer's records; return how many bytes are done with."""
        view = memoryview(self._buffer.data)[: self._size]
        headers = find_headers(self._buffer, self._size)
        candidates: NDArray[np.int64] | None = None
        offset = 0
        while True:
            if self._lost is not None:
                if candidates is None:
                    candidates = plausible_headers(self._buffer[: self._size])
                offset = self._recover(view, candidates, offset, final=final)
                if self._lost is not None:
                    return offset
            frames = follow(view, headers, offset, MAX_RECORD_BYTES)
            bad, count = take(self._buffer, self._base, frames, final=final)
            if count < len(frames.starts):
                self._count(frames, bad)
                return int(frames.starts[count])
            offset = frames.end
            has_header = header_at(view, offset) is not None
            last_bad = bool(bad) and bad[-1] == len(frames.starts) - 1 and not has_header
            self._count(frames, bad[:-1] if last_bad else bad)
            if last_bad:
                offset = int(frames.starts[-1])
            if has_header or self._size - frames.end < RECORD_HEADER.size:
                return offset
            self._lost = self._base + offset
            offset += 1

    def _count(self, frames: Frames, bad: list[int]) -> None:
        for index in bad:
            start = self._base + int(frames.starts[index])
            self.damage.add(start, start + int(frames.lengths[index]) + RECORD_OVERHEAD)

    def _recover(
        self, view: memoryview, candidates: NDArray[np.int64], offset: int, *, final: bool
    ) -> int:
        """Return the next record that ends the damage; where to go on looking if there is none.

        A record that the file does not hold in full yet ends it too.
        """
        for candidate in candidates[candidates.searchsorted(offset) :].tolist():
            end = candidate + (header_at(view, candidate) or 0) + RECORD_OVERHEAD
            if end > len(view) and not final:
                return int(candidate)
            self._patience -= end - candidate
            if self._patience < 0:
                return int(candidate)
            if end > len(view) or is_intact(bytes(view[candidate:end])):
                self.damage.add(self._lost or 0, self._base + candidate)
                self._lost = None
                return int(candidate)
        return max(len(view) - RECORD_HEADER.size + 1, offset)
