"""Rounds of a training loop: the same records again and again, at even distances.

A loop logs the same tags in the same order each time, so that for long stretches of a file the
records' lengths repeat. Each record of a round is then a column with a fixed stride: nothing is
gathered and nothing sorted. What varies in it is checked against its stored checksum and all
else against the round's constant bytes, as in `shapes`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.event_files.crc32c import crc32c, unmasked
from rlvitals.readers.event_files.framing import (
    AROUND,
    CHECK,
    HEADER,
    LONGEST,
    Frames,
    intact,
)
from rlvitals.readers.event_files.layouts import STEP_AT, TIME_AT, Layout, layout_of
from rlvitals.readers.event_files.varying import (
    FLAG,
    NUMBERS,
    WORD_BYTES,
    added_by_counts,
    added_by_values,
    steps_of,
)

FEWEST_ROUNDS = 48  # that are worth the setting up
LOOK = 64  # records whose lengths must repeat
LONGEST_ROUND = 1024  # records
MOST_REMEMBERED = 256  # rounds, across files
AT_ONCE = 2**18  # bytes that are compared together, so that they stay in the cache


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

    at: int  # where its header starts, from the round's start
    length: int
    layout: Layout
    key: int  # the checksum of its payload with every varying byte zero


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """What is constant in a round of `size` bytes: `constant` where `mask`, uint8 [size]."""

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
    at, skip, done = 0, LOOK // 2, 0
    while at + LOOK * 2 <= len(sizes):
        near = sizes[at : at + LONGEST_ROUND + LOOK].tobytes()
        found = near.find(near[: 2 * LOOK], 2)
        while found % 2 == 1:
            found = near.find(near[: 2 * LOOK], found + 1)
        size = found // 2
        if found > 0:
            while at > done and sizes[at - 1] == sizes[at - 1 + size]:
                at -= 1
            same = sizes[at:-size] == sizes[at + size :]
            rounds = ((len(same) if same.all() else int(same.argmin())) + size) // size
            if rounds >= FEWEST_ROUNDS:
                yield Stretch(at, size, rounds)
            at = done = at + rounds * size
            skip = LOOK // 2
            continue
        at += skip
        skip *= 2


def cycle_at(data: NDArray[np.uint8], frames: Frames, stretch: Stretch) -> Cycle | None:
    """Return what a stretch repeats, None where it holds hardly a number."""
    chosen = slice(stretch.first, stretch.first + stretch.size)
    lengths = frames.lengths[chosen]
    name = lengths.tobytes()
    cycle = _CYCLES.get(name)
    start = int(frames.at[stretch.first])
    size = int(lengths.sum()) + AROUND * stretch.size
    if cycle is None or (data[start : start + size] & cycle.mask != cycle.constant).any():
        cycle = _cycle(data[start : start + size], frames.at[chosen] - start, lengths)
        if len(_CYCLES) >= MOST_REMEMBERED:
            _CYCLES.clear()
        _CYCLES[name] = cycle
    numbers = sum(member is not None for member in cycle.members)
    return cycle if 2 * numbers >= len(cycle.members) else None


def _cycle(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Cycle:
    mask = np.zeros(len(data), np.uint8)
    members: list[Member | None] = []
    for at, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        record = data[at : at + length + AROUND].tobytes()
        payload = bytearray(record[HEADER.size : -CHECK.size])
        layout = layout_of(bytes(payload)) if len(payload) < LONGEST else None
        if layout is None or layout.step_width > WORD_BYTES or not intact(record):
            members.append(None)
            continue
        here = mask[at : at + HEADER.size + length]
        here[:] = 255
        for first, count in layout.varying:
            payload[first : first + count] = bytes(count)
            here[HEADER.size + first : HEADER.size + first + count] = 0
        step = HEADER.size + STEP_AT
        here[step : step + layout.step_width] = FLAG
        members.append(Member(at, length, layout, crc32c(bytes(payload))))
    return Cycle(len(data), tuple(members), mask, data & mask)


@dataclass(slots=True)
class Rounds:
    """The rounds of a stretch, column by column."""

    data: NDArray[np.uint8]
    cycle: Cycle
    start: int  # where the first round starts in the data
    count: int

    def columns(self) -> tuple[list[Column], NDArray[np.bool_]]:
        """Return the columns [count] and which of the rounds are intact [count]."""
        good = self._constant()
        members = [member for member in self.cycle.members if member]
        columns = []
        raw: NDArray[np.uint64] | None = None
        steps = np.zeros(self.count, np.int64)
        added: dict[int, NDArray[np.uint32]] = {}  # by the steps, by how many bytes are behind
        for member in members:
            width, behind = member.layout.step_width, member.length - STEP_AT
            last, raw = raw, self._raw_steps(member)
            if last is None or not (raw == last).all():
                steps, added = steps_of(raw, width), {}
            if behind not in added:
                added[behind] = added_by_counts(raw, width, behind - width)
            column = self._column(member, steps)
            good &= self._keys(column) ^ added[behind] == member.key
            columns.append(column)
        return columns, good

    def _strided(self, at: int, kind: str) -> NDArray[Any]:
        """Return the numbers that stand at an offset of each round, copied."""
        start = self.start + at
        where = np.ndarray((self.count,), kind, self.data.data, start, (self.cycle.size,))
        return where.copy()

    def _raw_steps(self, member: Member) -> NDArray[np.uint64]:
        raw = self._strided(member.at + HEADER.size + STEP_AT, "<u8").view(np.uint64)
        raw &= np.uint64((1 << 8 * member.layout.step_width) - 1)
        return raw

    def _column(self, member: Member, steps: NDArray[np.int64]) -> Column:
        payload = member.at + HEADER.size
        times = self._strided(payload + TIME_AT, "<f8").view(np.float64)
        values = tuple(
            self._strided(payload + at, NUMBERS[size]) for at, size in member.layout.places
        )
        return Column(member, times, steps, values)

    def _keys(self, column: Column) -> NDArray[np.uint32]:
        """Return the stored checksums less what the times and values add."""
        length = column.member.length
        stored = self._strided(column.member.at + HEADER.size + length, "<u4")
        keys = unmasked(stored.view(np.uint32))
        keys ^= added_by_counts(column.times.view(np.uint64), 8, length - TIME_AT - 8)
        for value, (at, size) in zip(column.values, column.member.layout.places, strict=True):
            keys ^= added_by_values(value, length - at - size)
        return keys

    def _constant(self) -> NDArray[np.bool_]:
        """Tell which rounds have the cycle's constant bytes."""
        size = self.cycle.size
        together = max(AT_ONCE // size, 1)
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
