"""Read the records of a rollout file, all of them in order or one by its location in bytes."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rlvitals.errors import UnreadableLog
from rlvitals.readers.trl_completions import MAX_PARQUET_BYTES, read_cells
from rlvitals.rollouts.dialects.rollout_dialect import Layout, Record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_ROLLOUT_BYTES = 256 << 20  # of a line, a document or an unpacked frame


class Place(NamedTuple):
    """Where a record lies: a line, a document or a frame in bytes, and the row within it."""

    offset: int
    size: int
    row: int = 0  # line of a frame, row of a table


def read_records(path: Path, layout: Layout) -> Iterator[tuple[Place, Record]]:
    """Yield each record with its location. What is damaged or cut short is left out.

    Raises OSError; UnreadableLog for a table without pyarrow.
    """
    if layout == "parquet":
        yield from ((Place(0, 0, n), row) for n, row in enumerate(_table_rows(path)))
        return
    with path.open("rb") as file:
        if layout == "document":
            text = file.read(MAX_ROLLOUT_BYTES + 1)
            if (record := _parse(text)) is not None:
                yield Place(0, len(text)), record
        elif layout == "lines":
            yield from _lines(file)
        else:
            yield from _frames(file)


def read_record(path: Path, layout: Layout, location: Place) -> Record:
    """Return the record at a location. Raises OSError; UnreadableLog where it is gone."""
    if layout == "parquet":
        rows = _table_rows(path)
        record = rows[location.row] if location.row < len(rows) else None
    else:
        with path.open("rb") as file:
            file.seek(location.offset)
            packed = file.read(location.size)
        lines = _unpack(packed).split(b"\n") if layout == "frames" else [packed]
        record = _parse(lines[location.row]) if location.row < len(lines) else None
    if record is None:
        raise UnreadableLog("the rollouts changed while they were read", where=str(path))
    return record


def first(path: Path, layout: Layout) -> Record | None:
    """Return the first record of a file; None without one. Raises OSError, UnreadableLog."""
    return next((record for _, record in read_records(path, layout)), None)


def _parse(text: bytes) -> Record | None:
    """Return a JSON object; None for anything else."""
    if len(text) > MAX_ROLLOUT_BYTES:
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, Mapping) else None


def _lines(file: BinaryIO) -> Iterator[tuple[Place, Record]]:
    offset = 0
    while line := file.readline(MAX_ROLLOUT_BYTES + 1):
        if (record := _parse(line)) is not None:
            yield Place(offset, len(line)), record
        offset += len(line)


def _frames(file: BinaryIO) -> Iterator[tuple[Place, Record]]:
    """Yield the lines of each complete frame; the last may be cut short by a crash."""
    buffer, offset = b"", 0
    while chunk := file.read(1 << 20):
        buffer += chunk
        while buffer and (size := _frame_size(buffer)):
            for row, line in enumerate(_unpack(buffer[:size]).split(b"\n")):
                if (record := _parse(line)) is not None:
                    yield Place(offset, size, row), record
            buffer, offset = buffer[size:], offset + size
        if len(buffer) > MAX_ROLLOUT_BYTES:
            return


def _frame_size(packed: bytes) -> int:
    """Return the bytes of the first frame; 0 where it is incomplete or damaged."""
    try:
        return zstd.get_frame_size(packed)
    except zstd.ZstdError:
        return 0


def _unpack(frame: bytes) -> bytes:
    """Return what a frame holds; nothing where it is damaged or larger than a record may be."""
    try:
        return zstd.ZstdDecompressor().decompress(frame, MAX_ROLLOUT_BYTES)
    except zstd.ZstdError:
        return b""


def _table_rows(path: Path) -> list[Record]:
    with path.open("rb") as file:
        cells, _ = read_cells(path, file.read(MAX_PARQUET_BYTES + 1))
    names = list(cells)
    return [dict(zip(names, row, strict=True)) for row in zip(*cells.values(), strict=True)]
