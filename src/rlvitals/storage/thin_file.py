"""Replace a compacted file by one whose metrics are thinned, atomically.

The new file is written under a temporary name, synced, read back and compared, and renamed over
the old one: a crash at any byte leaves either file, complete.
"""

import os
from collections import Counter
from dataclasses import field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import compacted, frames, payloads, tiers
from rlvitals.storage.blocks import Scalars
from rlvitals.storage.compacted import PackedFile
from rlvitals.storage.frames import Frame, Kind
from rlvitals.storage.run_folder import BlockFile
from rlvitals.storage.safe_files import sync
from rlvitals.storage.tiers import POINTS_PER_BUCKET, TIER_BYTES_PER_BUCKET, Tier
from rlvitals.types import Series


class NotThinnedError(Exception):
    """A file cannot be thinned; the message is the reason."""


@dataclass(slots=True)
class _Content:
    """The points of each metric of a rank's files, and the bytes of all else."""

    points: Counter[str] = field(default_factory=Counter)
    media_bytes: int = 0


def estimate(file: BlockFile, buckets: int) -> tuple[int, int]:
    """Return the bytes of a rank's files before and, about, after thinning.

    Both are equal where thinning would leave more than half. Raises OSError, UnreadableLog.
    """
    size = sum(path.stat().st_size for path in file.paths)
    content = _count_content(file)
    after = content.media_bytes
    for count in content.points.values():
        after += 32 * min(count, POINTS_PER_BUCKET * buckets)  # step, time, place, value
        after += TIER_BYTES_PER_BUCKET * min(count, buckets)
    # Thinning that leaves more than half is not worth its points.
    return size, after if after <= 0.5 * size else size


def _count_content(file: BlockFile) -> _Content:
    content, start = _Content(), 0
    if file.packed is not None:
        with PackedFile(file.packed) as packed:
            for block in packed.blocks:
                content.points.update(dict.fromkeys(block.keys, block.rows))
            content.media_bytes = sum(frame.header.size for frame in packed.others)
            start = packed.origin.covers if packed.origin else 0
    if file.path.exists():
        tables: dict[int, tuple[str, ...]] = {}
        with file.path.open("rb") as source:
            for item in frames.stream(source, 0):
                if not isinstance(item, Frame):
                    continue
                kind = item.header.kind
                if kind == Kind.KEYS:
                    tables[item.header.table] = payloads.decode_keys(item.payload)
                elif item.offset >= start and kind == Kind.SCALARS:
                    keys = tables.get(item.header.table, ())
                    content.points.update(dict.fromkeys(keys, item.header.rows))
                elif item.offset >= start:
                    content.media_bytes += item.header.size
    return content


def thin(path: Path, buckets: int) -> None:
    """Thin a compacted file to at most `buckets` buckets of each metric.

    Raises OSError, UnreadableLog, NotThinnedError: the file is then as it was.
    """
    temp_path = path.with_name(f".{path.stem}.{os.urandom(6).hex()}")
    try:
        with PackedFile(path) as source:
            with temp_path.open("xb") as temp_file:
                columns = [
                    _write_metric(source, key, number, buckets, temp_file)
                    for number, key in enumerate(_list_keys(source))
                ]
                if source.damage or source.origin is None:
                    raise NotThinnedError(f"{path.name} is damaged")
                for frame in source.others:
                    temp_file.write(frames.to_bytes(frame.header) + frame.payload)
                temp_file.write(source.origin.frame() + frames.pack(Kind.END, b""))
                temp_file.flush()
                os.fsync(temp_file.fileno())
            # Read the written file as readers do.
            with PackedFile(temp_path) as copy:
                contents = [(frame.header.kind, frame.payload) for frame in copy.others]
                alike = contents == [(frame.header.kind, frame.payload) for frame in source.others]
                alike &= copy.origin == source.origin and not copy.damage
                alike &= _list_keys(copy) == [column.tier.key for column in columns]
                for column in columns:
                    written = copy.placed_series(column.tier.key)
                    alike &= written is not None and _to_bytes(*written) == _to_bytes(
                        column.series, column.places
                    )
                    alike &= copy.tiers[column.tier.key].to_frame() == column.tier.to_frame()
            if not alike:
                raise NotThinnedError("what was written differs from it")
        temp_path.replace(path)
        sync(path.parent)
    except compacted.Damaged:
        raise NotThinnedError("what was written differs from it: its checksums") from None
    finally:
        temp_path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Metric:
    """What was written of a metric."""

    series: Series
    places: NDArray[np.int64]
    tier: Tier


def _list_keys(source: PackedFile) -> list[str]:
    return list(dict.fromkeys(key for block in source.blocks for key in block.keys))


def _write_metric(
    source: PackedFile, key: str, number: int, buckets: int, target: IO[bytes]
) -> _Metric:
    """Write the remaining points of a metric, with their own key table, and its tier."""
    column = source.placed_series(key)
    if column is None:
        raise NotThinnedError(f"{key} cannot be read")
    series, places = column
    previous = source.tiers.get(key)
    if previous is not None and previous.stored.sum() != len(series):
        raise NotThinnedError(f"the counts of {key} are not those of its points")
    rows, tier = tiers.thin(key, series, buckets, previous)
    stored, places = series.where(rows), places[rows]
    chunk = Scalars((key,), stored.steps, stored.times, stored.values[None], 0, places)
    target.write(frames.pack(Kind.KEYS, payloads.encode_json((key,)), 1, number))
    target.writelines(compacted.block(chunk, number))
    target.write(tier.to_frame())
    return _Metric(stored, places, tier)


def _to_bytes(series: Series, places: NDArray[np.int64]) -> tuple[bytes, ...]:
    arrays = (series.steps, series.times, series.values, places)
    return tuple(array.tobytes() for array in arrays)
