"""Parse rounds of a training loop: the same records at equal distances.

A loop logs the same tags in the same order each time, so that for long stretches of a file the
records' lengths repeat. Each record of a round is then a column with a fixed stride: nothing is
gathered and nothing sorted. What varies in it is checked against its stored checksum and all
else against the round's constant bytes, as in `shapes`.
"""

from collections.abc import Iterator
from dataclasses import field
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.framing import (
    CHECKSUM_FORMAT,
    MAX_SCALAR_EVENT_BYTES,
    RECORD_HEADER,
    RECORD_OVERHEAD,
    Frames,
    is_intact,
)
from rlvitals.readers.event_files.record_layout import STEP_AT, TIME_AT, Layout, layout_of
from rlvitals.readers.event_files.varying_bytes import (
    FLOAT_FORMATS,
    WORD_BYTES,
    checksum_of_counts,
    checksum_of_values,
    steps_of,
)
from rlvitals.readers.formats.protobuf import VARINT_CONTINUATION
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.crc32c import crc32c, unmask

MATCH_RECORDS = 64  # records whose lengths must repeat
MAX_CACHED_CYCLES = 256  # rounds, across files


class Stretch(NamedTuple):
    """Records whose lengths repeat: `rounds` times `size` records from the index `first` on."""

    first: int
    size: int
    rounds: int

    @property
    def end(self) -> int:
        """The index behind its last record."""
        return self.first + self.size * self.rounds


class Member(NamedTuple):
    """One record of a round."""

    start: int  # where its header starts, from the round's start
    length: int
    layout: Layout
    key: int  # the checksum of its payload with every varying byte zero


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """Constant bytes of a round of `size` bytes: `constant` where `mask`, uint8 [size]."""

    size: int
    members: tuple[Member | None, ...]  # None for a record without numbers at fixed places
    mask: NDArray[np.uint8]
    constant: NDArray[np.uint8]


class Column(NamedTuple):
    """One record of all rounds: columns [rounds], and the values' for each of its numbers."""

    member: Member
    times: NDArray[np.float64]
    steps: NDArray[np.int64]
    values: tuple[NDArray[np.floating], ...]


_CYCLES: dict[bytes, Cycle] = {}  # by their lengths


def stretches(lengths: NDArray[np.int64]) -> Iterator[Stretch]:
    """Yield where the lengths [n] of linked records repeat for long, in order."""
    sizes = np.minimum(lengths, 2**16 - 1).astype("<u2")
    index, skip, covered = 0, MATCH_RECORDS // 2, 0
    while index + MATCH_RECORDS * 2 <= len(sizes):
        near = sizes[index : index + 1024 + MATCH_RECORDS].tobytes()
        shift = near.find(near[: 2 * MATCH_RECORDS], 2)
        while shift % 2 == 1:
            shift = near.find(near[: 2 * MATCH_RECORDS], shift + 1)
        size = shift // 2
        if shift > 0:
            while index > covered and sizes[index - 1] == sizes[index - 1 + size]:
                index -= 1
            is_equal = sizes[index:-size] == sizes[index + size :]
            rounds = ((len(is_equal) if is_equal.all() else int(is_equal.argmin())) + size) // size
            if rounds >= 48:  # so many are worth the setup
                yield Stretch(index, size, rounds)
            index = covered = index + rounds * size
            skip = MATCH_RECORDS // 2
            continue
        index += skip
        skip *= 2


def cycle_at(data: NDArray[np.uint8], frames: Frames, stretch: Stretch) -> Cycle | None:
    """Return what a stretch repeats, None where it holds hardly a number."""
    records = slice(stretch.first, stretch.first + stretch.size)
    lengths = frames.lengths[records]
    name = lengths.tobytes()
    cycle = _CYCLES.get(name)
    start = int(frames.starts[stretch.first])
    size = int(lengths.sum()) + RECORD_OVERHEAD * stretch.size
    if cycle is None or (data[start : start + size] & cycle.mask != cycle.constant).any():
        cycle = _cycle(data[start : start + size], frames.starts[records] - start, lengths)
        if len(_CYCLES) >= MAX_CACHED_CYCLES:
            _CYCLES.clear()
        _CYCLES[name] = cycle
    numbers = sum(member is not None for member in cycle.members)
    return cycle if 2 * numbers >= len(cycle.members) else None


def _cycle(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Cycle:
    mask = np.zeros(len(data), np.uint8)
    members: list[Member | None] = []
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        record = data[start : start + length + RECORD_OVERHEAD].tobytes()
        payload = bytearray(record[RECORD_HEADER.size : -CHECKSUM_FORMAT.size])
        layout = layout_of(bytes(payload)) if len(payload) < MAX_SCALAR_EVENT_BYTES else None
        if layout is None or layout.step_width > WORD_BYTES or not is_intact(record):
            members.append(None)
            continue
        region = mask[start : start + RECORD_HEADER.size + length]
        region[:] = 255
        for first, count in layout.varying:
            payload[first : first + count] = bytes(count)
            region[RECORD_HEADER.size + first : RECORD_HEADER.size + first + count] = 0
        step = RECORD_HEADER.size + STEP_AT
        region[step : step + layout.step_width] = VARINT_CONTINUATION
        members.append(Member(start, length, layout, crc32c(bytes(payload))))
    return Cycle(len(data), tuple(members), mask, data & mask)


def _kind(member: Member) -> tuple[int, ...]:
    """Return what members must have in common to be read together."""
    tails = [member.length - place.start for place in member.layout.places]
    sizes = [place.size for place in member.layout.places]
    return (member.layout.step_width, *tails, *sizes)


@dataclass(slots=True)
class Rounds:
    """The rounds of a stretch, column by column."""

    data: NDArray[np.uint8]
    cycle: Cycle
    start: int  # where the first round starts in the data
    count: int
    _last_raw: NDArray[np.uint64] | None = None
    _last_steps: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _added: dict[tuple[int, ...], NDArray[np.uint32]] = field(default_factory=dict)

    def columns(self) -> tuple[list[Column], NDArray[np.bool_]]:
        """Return the columns [count] and which of the rounds are intact [count]."""
        good = self._constant()
        columns: list[Column] = []
        # Numbers that fit the nearest cache.
        together = min(max(2**14 // self.count, 1), 32)
        for _, alike in groupby((m for m in self.cycle.members if m), key=_kind):
            while members := tuple(islice(alike, together)):
                columns += self._stack(members, good)
        return columns, good

    def _stack(self, members: tuple[Member, ...], good: NDArray[np.bool_]) -> list[Column]:
        """Return the columns of like members; rounds that are not intact are no longer `good`."""
        layout, lengths = members[0].layout, [member.length for member in members]
        times = self._gather([member.start + TIME_AT for member in members], "<f8")
        keys = unmask(self._gather([m.start + m.length for m in members], "<u4"))
        keys ^= checksum_of_counts(
            times.view(np.uint64), 8, tuple(n - TIME_AT - 8 for n in lengths)
        )
        values = []
        for index, (start, size) in enumerate(layout.places):
            numbers = self._gather(
                [m.start + m.layout.places[index].start for m in members], FLOAT_FORMATS[size]
            )
            keys ^= checksum_of_values(numbers, lengths[0] - start - size)
            values.append(numbers)
        raw = self._gather([member.start + STEP_AT for member in members], "<u8")
        raw &= np.uint64((1 << 8 * layout.step_width) - 1)
        steps, added = self._steps(raw, layout.step_width, tuple(n - STEP_AT for n in lengths))
        good &= (keys ^ added == np.array([[m.key] for m in members], np.uint32)).all(axis=0)
        return [
            Column(member, times[row], steps[row], tuple(value[row] for value in values))
            for row, member in enumerate(members)
        ]

    def _steps(
        self, raw: NDArray[np.uint64], width: int, behind: tuple[int, ...]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return steps [m, n] and what they add, from before where a round's steps are one."""
        last = self._last_raw
        if last is None or last.shape != raw.shape or not (last == raw).all():
            self._last_raw, self._last_steps, self._added = raw, steps_of(raw, width), {}
        if behind not in self._added:
            self._added[behind] = checksum_of_counts(raw, width, tuple(n - width for n in behind))
        return self._last_steps, self._added[behind]

    def _gather(self, offsets: list[int], kind: str) -> NDArray[Any]:
        """Return the numbers [m, n] at offsets within each round, from its first header's end."""
        numbers = np.empty((len(offsets), self.count), kind)
        step = (self.cycle.size,)
        for row, offset in zip(numbers, offsets, strict=True):
            start = self.start + RECORD_HEADER.size + offset
            row[:] = np.ndarray((self.count,), kind, self.data.data, start, step)
        return numbers

    def _constant(self) -> NDArray[np.bool_]:
        """Tell which rounds have the cycle's constant bytes."""
        size = self.cycle.size
        # So few bytes are compared together that they stay in the cache.
        together = max(2**18 // size, 1)
        rows = self.data[self.start : self.start + self.count * size].reshape(-1, size)
        good = np.ones(self.count, np.bool_)
        space = np.empty((together, size), np.uint8)
        for first in range(0, self.count, together):
            some = rows[first : first + together]
            differing = np.bitwise_xor(some, self.cycle.constant, out=space[: len(some)])
            differing &= self.cycle.mask
            if differing.any():
                good[first : first + together] = ~differing.any(axis=1)
        return good
