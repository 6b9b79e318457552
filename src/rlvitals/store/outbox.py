"""Bytes on their way to a file: written together, and kept while the disk takes none."""

import errno
import os

MAX_PENDING = 256 << 20  # bytes kept while the disk takes none; the oldest rows go first
MOST_PARTS = 512  # of one write: systems take 1,024 at least

Bytes = bytes | memoryview
Block = tuple[tuple[Bytes, ...], int]  # what is written one after another, and its rows


class Outbox:
    """Whole blocks that wait for a file.

    A write that stops in the middle goes on at that byte with the next one: no block is ever
    half written, unless the process dies.
    """

    def __init__(self, fd: int) -> None:
        """Begin with none."""
        self.dropped = 0  # rows that were given up because the disk took nothing for too long
        self._fd = fd
        self._blocks: list[Block] = []
        self._size = 0
        self._begun = False  # whether the first block is partly written

    def __len__(self) -> int:
        """Count the bytes that wait."""
        return self._size

    def add(self, *parts: Bytes, rows: int = 0) -> None:
        """Take a block."""
        self._blocks.append((parts, rows))
        self._size += sum(map(len, parts))
        if self._size > MAX_PENDING:
            self._give_up()

    def write(self) -> None:
        """Hand all of it to the system, in one write where it takes all. OSError where not."""
        while self._size:
            done = _write(self._fd, [part for parts, _ in self._blocks for part in parts])
            if not done:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._wrote(done)

    def _give_up(self) -> None:
        """Drop the older half of the rows that wait; key tables stay, for those that follow."""
        kept = self._blocks[: int(self._begun)]
        excess = self._size - MAX_PENDING // 2
        for parts, rows in self._blocks[int(self._begun) :]:
            if rows and excess > 0:
                size = sum(map(len, parts))
                excess -= size
                self._size -= size
                self.dropped += rows
            else:
                kept.append((parts, rows))
        self._blocks = kept

    def _wrote(self, done: int) -> None:
        """Forget what is written, to the byte."""
        self._size -= done
        whole = 0
        for parts, _ in self._blocks:
            size = sum(map(len, parts))
            if done < size:
                break
            done -= size
            whole += 1
        if whole:
            del self._blocks[:whole]
            self._begun = False
        if done:
            parts, rows = self._blocks[0]
            self._blocks[0] = ((b"".join(parts)[done:],), rows)
            self._begun = True


def _write(fd: int, parts: list[Bytes]) -> int:
    """Write bytes that lie in several places; return how many the system took. OSError."""
    if len(parts) > MOST_PARTS or not hasattr(os, "writev"):  # not on Windows
        return os.write(fd, b"".join(parts))
    return os.writev(fd, parts)
