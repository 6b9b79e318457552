"""Buffer bytes for a file: write them together, and keep them while the disk is full."""

import errno
import os
from collections import Counter, deque

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.frames import Kind

MAX_PENDING_BYTES = 256 << 20  # of a run: all that waits for its disk and for its sinks
MAX_WRITE_PARTS = 512  # of one write: systems take 1,024 at least

Bytes = bytes | memoryview


class Budget:
    """The memory that the pending bytes of a run may take, shared by all its buffers.

    `used` is changed by `+=` and `-=` alone, from any thread: in CPython no other thread and no
    signal handler runs between its load and its store.
    """

    def __init__(self, limit: int | None = None) -> None:
        """Begin with none; `limit` in bytes, `MAX_PENDING_BYTES` where it is not given."""
        self.limit = MAX_PENDING_BYTES if limit is None else limit
        self.used = 0

    def fits(self, size: int, share: float = 1.0) -> bool:
        """Return whether `size` bytes more stay within a share of the limit."""
        return self.used + size <= share * self.limit


@dataclass(slots=True)
class _Block:
    """A block, as the chunks that are written one after another."""

    chunks: tuple[Bytes, ...]
    size: int  # bytes
    kind: Kind
    rows: int
    table: int  # key table that it is, or that its rows need


class WriteBuffer:
    """Complete blocks that wait for a file.

    A write that stops in the middle continues at that byte with the next one: no block is ever
    half written, unless the process dies.
    """

    def __init__(self, fd: int, budget: Budget | None = None) -> None:
        """Begin with none; other holders of the same run share the budget."""
        self.fd = fd
        self.dropped: Counter[Kind] = Counter()  # rows and other blocks that were given up
        self.lost_tables: set[int] = set()  # key tables that were given up: to be written again
        self._budget = Budget() if budget is None else budget
        self._blocks: deque[_Block] = deque()
        self._size = 0
        self._is_partial = False  # whether the first block is partly written

    def __len__(self) -> int:
        """Count the bytes that wait."""
        return self._size

    @property
    def waiting(self) -> Counter[Kind]:
        """Rows and other blocks that wait, by kind."""
        counts: Counter[Kind] = Counter()
        for block in self._blocks:
            counts[block.kind] += block.rows or 1
        return counts

    def add(self, kind: Kind, *chunks: Bytes, rows: int = 0, table: int = -1) -> None:
        """Take a block."""
        size = sum(map(len, chunks))
        self._blocks.append(_Block(chunks, size, kind, rows, table))
        self._grow(size)
        if kind != Kind.KEYS and not self._budget.fits(0):  # a key table goes with its rows
            self._drop()

    def write(self) -> None:
        """Hand all of it to the system. OSError where it takes none."""
        while self._blocks:
            chunks: list[Bytes] = []
            for block in self._blocks:
                if chunks and len(chunks) + len(block.chunks) > MAX_WRITE_PARTS:
                    break
                chunks += block.chunks
            size = _write(self.fd, chunks)
            if not size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._advance(size)

    def _grow(self, size: int) -> None:
        self._size += size
        self._budget.used += size

    def _drop(self) -> None:
        """Drop the oldest blocks of the least important kinds until the rest fits."""
        first = self._blocks.popleft() if self._is_partial else None
        # What is dropped first where memory ends: numbers outlive texts, and settings outlive
        # numbers.
        for kinds in (
            frozenset({Kind.HISTOGRAM, Kind.TEXT, Kind.TABLE}),
            frozenset({Kind.SCALARS}),
            frozenset({Kind.SETTINGS}),
        ):
            if self._budget.fits(0):
                break
            remaining: deque[_Block] = deque()
            for block in self._blocks:
                # A full outbox is cut to 75 %, not again at every block.
                if block.kind in kinds and not self._budget.fits(0, 0.75):
                    self._grow(-block.size)
                    self.dropped[block.kind] += block.rows or 1
                else:
                    remaining.append(block)
            self._blocks = remaining
        # Key tables without rows go too; they are written again before the next rows.
        needed = {block.table for block in self._blocks if block.kind == Kind.SCALARS}
        remaining = deque()
        for block in self._blocks:
            if block.kind == Kind.KEYS and block.table not in needed:
                self._grow(-block.size)
                self.lost_tables.add(block.table)
            else:
                remaining.append(block)
        self._blocks = remaining
        if first is not None:
            self._blocks.appendleft(first)

    def _advance(self, size: int) -> None:
        """Remove the bytes that were written."""
        self._grow(-size)
        while size and size >= self._blocks[0].size:
            size -= self._blocks.popleft().size
            self._is_partial = False
        if size:
            block = self._blocks[0]
            block.chunks = (b"".join(block.chunks)[size:],)
            block.size -= size
            self._is_partial = True


def _write(fd: int, chunks: list[Bytes]) -> int:
    """Write several byte strings; return how many bytes the system took. Raises OSError."""
    if not hasattr(os, "writev"):  # not on Windows
        return os.write(fd, b"".join(chunks))
    return os.writev(fd, chunks)
