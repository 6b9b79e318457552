"""Read the newest row of a run folder from the ends of its files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlvitals.errors import UnreadableLog
from rlvitals.storage import frames, run_folder
from rlvitals.storage.blocks import try_lock
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.frames import Frame, Kind
from rlvitals.storage.run_folder import BlockFile, block_files

QUIET_SECONDS = 600  # seconds: a writer on another machine may be seen by its file alone


def is_ours(path: Path) -> bool:
    """Return whether a `run.json` was written by rlvitals."""
    try:
        with path.open("rb") as file:
            head = file.read(200)  # bytes: "written_by" is the second entry
    except OSError:
        return False
    return f'"written_by": "{run_folder.RUN_WRITER}"'.encode() in head


def has_writer(folder: Path) -> bool:
    """Return whether a process of this machine has a run's blocks open to write."""
    for file in block_files(folder):
        try:
            with file.path.open("rb") as blocks:
                if not try_lock(blocks.fileno(), exclusive=True):
                    return True
        except OSError:
            continue
    return False


def is_closed(path: Path) -> bool:
    """Return whether the writer of a file closed it. Raises OSError."""
    with path.open("rb", buffering=0) as file:
        file.seek(max(0, path.stat().st_size - frames.FRAME_HEADER_BYTES))
        header = frames.parse(file.read(frames.FRAME_HEADER_BYTES))
    return header is not None and header.kind == Kind.END


def newest_row(folder: Path) -> tuple[int, float] | None:
    """Return step and time of the newest row of the newest attempt; None where there is none."""
    return _newest_row(block_files(folder))


def newest_row_before(folder: Path, attempt: int, rank: int) -> tuple[int, float] | None:
    """Return step and time of the newest row that a rank wrote before an attempt; None without."""
    files = block_files(folder)
    return _newest_row([file for file in files if file.attempt < attempt and file.rank == rank])


def _newest_row(files: Sequence[BlockFile]) -> tuple[int, float] | None:
    for file in reversed(files):
        if newest := _last_row(file):
            return newest
    return None


def _last_row(file: BlockFile) -> tuple[int, float] | None:
    try:
        if newest := _last_block_row(file.path):
            return newest
        if file.packed is not None:
            with PackedFile(file.packed) as packed:
                last = max(packed.blocks, key=lambda block: block.last_row, default=None)
                return None if last is None else (last.last_step, last.last_time)
    except (OSError, UnreadableLog):
        return None
    return None


def _last_block_row(path: Path) -> tuple[int, float] | None:
    """Find the last row of a block file, reading from its end."""
    try:
        size, window = path.stat().st_size, 256 << 10  # bytes
    except FileNotFoundError:
        return None
    with path.open("rb", buffering=0) as file:
        while True:
            file.seek(max(0, size - window))
            data = frames.read(file, min(size, window))
            newest = _last_row_in(data)
            if newest or window >= size:
                return newest
            window *= 8


def _last_row_in(data: bytes) -> tuple[int, float] | None:
    """Return the last row of a part of a file, which need not begin with a frame."""
    newest = None
    for item in frames.walk(data):
        if isinstance(item, Frame) and item.header.kind == Kind.SCALARS and item.header.rows:
            columns = np.frombuffer(item.payload, "<f8")
            rows = item.header.rows
            newest = int(columns[:rows].view("<i8")[-1]), float(columns[2 * rows - 1])
    return newest
