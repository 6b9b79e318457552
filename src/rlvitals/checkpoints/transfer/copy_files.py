"""Copy one file: hash it on the way, read it back, and retry after connection errors."""

import errno
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import xxhash

from rlvitals.checkpoints.transfer.filesystems import COPY_CHUNK_BYTES, RemoteFiles
from rlvitals.checkpoints.transfer.timeouts import CallTimeout
from rlvitals.errors import VitalsError
from rlvitals.startup.fast_dataclass import dataclass

T = TypeVar("T")
PERMANENT_ERRORS = (
    PermissionError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError,
    VitalsError, NotImplementedError, ValueError, TypeError, AttributeError, ImportError,
    MemoryError,
)  # fmt: skip


class SourceChanged(Exception):  # noqa: N818 - what happened to the source
    """The source differs from its announced content: rewritten, truncated, deleted or damaged."""


class CopyStopped(Exception):  # noqa: N818 - someone asked for it
    """Stopped by the user or a signal: the next round continues."""


class CopyMismatch(Exception):  # noqa: N818 - as a link is
    """The written file reads back with other content."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file to copy, as it was when it was read: later growth is not part of it."""

    name: str  # below the run's folder, parts joined by "/"
    size: int  # bytes
    xxh3_128: str  # hex
    chunks: Callable[[int], Iterator[bytes]]  # from an offset


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of tries and delays, and the event that stops them."""

    stop: threading.Event = field(default_factory=threading.Event)
    tries: int = 6
    first: float = 1.0  # seconds before the second try; doubled for each later one
    beat: Callable[[], None] = lambda: None  # called for each chunk and each try

    def call(self, action: Callable[[], T]) -> T:
        """Call `action`, and retry after errors. Raises the last error, or CopyStopped."""
        for count in range(self.tries):
            self.check()
            try:
                return action()
            except Exception as error:  # storage libraries raise errors of their own kinds
                if is_permanent(error) or count + 1 == self.tries:
                    raise
            # Jitter: many runs that lost one link do not come back in step.
            self.stop.wait(self.first * 2**count * random.uniform(0.75, 1.25))  # noqa: S311
        raise AssertionError

    def check(self) -> None:
        """Raise CopyStopped if a stop was requested."""
        self.beat()
        if self.stop.is_set():
            raise CopyStopped


def is_permanent(error: Exception) -> bool:
    """Return whether another try would fail the same way."""
    if isinstance(error, (SourceChanged, CopyStopped, CallTimeout, *PERMANENT_ERRORS)):
        return True
    # What another try does not mend.
    numbers = (
        errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.ENAMETOOLONG, errno.ELOOP,
    )  # fmt: skip
    return isinstance(error, OSError) and error.errno in numbers


def read_piece(path: Path, name: str) -> Piece:
    """Read a file's size and hash. Raises SourceChanged if it was deleted, OSError."""
    try:
        size = path.stat().st_size
        if size <= 256 << 10:  # a small file is read at once: a rewrite cannot tear it
            data = path.read_bytes()
            content_hash = xxhash.xxh3_128_hexdigest(data)
            return Piece(name, len(data), content_hash, lambda start: iter((data[start:],)))
        return Piece(name, size, hash_chunks(file_chunks(path, size)(0)), file_chunks(path, size))
    except FileNotFoundError:
        raise SourceChanged(f"{name} is gone meanwhile") from None


def file_chunks(path: Path, size: int) -> Callable[[int], Iterator[bytes]]:
    """Return a reader of a file's first bytes. Raises SourceChanged if it is shorter by now."""

    def chunks(start: int) -> Iterator[bytes]:
        remaining = size - start
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(start)
                while remaining:
                    data = file.read(min(COPY_CHUNK_BYTES, remaining))
                    if not data:
                        raise SourceChanged(f"{path.name} is shorter than it was")
                    remaining -= len(data)
                    yield data
        except FileNotFoundError:
            raise SourceChanged(f"{path.name} is gone meanwhile") from None

    return chunks


def remote_piece(remote: RemoteFiles, name: str, size: int, xxh3_128: str) -> Piece:
    """Return a remote file as something to copy: its first `size` bytes."""

    def chunks(start: int) -> Iterator[bytes]:
        remaining = size - start
        for data in remote.read(name, start):
            yield data[:remaining]
            remaining -= len(data[:remaining])
            if not remaining:
                return

    return Piece(name, size, xxh3_128, chunks)


def copy_piece(remote: RemoteFiles, piece: Piece, name: str, patience: RetryPolicy) -> None:
    """Write a file and read it back. Raises SourceChanged, CopyStopped, CopyMismatch."""
    for _ in range(patience.tries):
        patience.call(lambda: remote.write(name, verify_chunks(piece, patience)))
        if is_same(remote, piece, name, patience):
            return
    raise CopyMismatch(f"{name} was written to {remote.name}, and reads back otherwise")


def append_tail(
    remote: RemoteFiles, piece: Piece, name: str, start: int, patience: RetryPolicy
) -> None:
    """Append the new tail of a file that has grown. Raises NotImplementedError if unsupported."""
    hasher = xxhash.xxh3_128()

    def tail() -> Iterator[bytes]:
        for data in _check_stop(piece.chunks(start), patience):
            hasher.update(data)
            yield data

    remote.append(name, tail())  # once: the position after a failure is unknown
    if hash_chunks(_check_stop(remote.read(name, start), patience)) != hasher.hexdigest():
        raise CopyMismatch(f"{name} was written to {remote.name}, and reads back otherwise")


def hash_chunks(chunks: Iterator[bytes], size: int | None = None) -> str:
    """Return the xxh3_128 of all chunks, or of their first `size` bytes, as hex."""
    hasher = xxhash.xxh3_128()
    for data in chunks:
        chunk = data if size is None else data[:size]
        hasher.update(chunk)
        if size is not None:
            size -= len(chunk)
            if not size:
                break
    return hasher.hexdigest()


def is_same(remote: RemoteFiles, piece: Piece, name: str, patience: RetryPolicy) -> bool:
    """Return whether the remote file has the same content, bit for bit."""
    return (
        patience.call(lambda: hash_chunks(_check_stop(remote.read(name), patience)))
        == piece.xxh3_128
    )


def verify_chunks(piece: Piece, patience: RetryPolicy) -> Iterator[bytes]:
    """Yield a file's content; raise SourceChanged at the end if it differs from the hash."""
    hasher, size = xxhash.xxh3_128(), 0
    for data in _check_stop(piece.chunks(0), patience):
        hasher.update(data)
        size += len(data)
        yield data
    if size != piece.size or hasher.hexdigest() != piece.xxh3_128:
        raise SourceChanged(f"{piece.name} is not what it was")


def _check_stop(chunks: Iterator[bytes], patience: RetryPolicy) -> Iterator[bytes]:
    for data in chunks:
        patience.check()
        yield data


def read_small(chunks: Iterator[bytes], size: int) -> bytes:
    """Read at most `size` bytes: for files that must be small."""
    data = b"".join(islice(chunks, 1 + size // COPY_CHUNK_BYTES))
    return data[:size]
