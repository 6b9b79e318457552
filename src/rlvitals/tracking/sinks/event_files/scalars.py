"""Encode many scalars as events at once: byte for byte what torch's SummaryWriter writes.

One event holds one number, the keys of a row stand one after the other. Of a key's record only
the time, the step, the value and the checksum change from row to row, so a row's bytes are a
template in which few bytes are replaced. The checksum is affine over GF(2) (`storage/crc32c.py`):
it is that of the template, XOR what the time and step add, which all keys of a row share up to
their distance from the end, XOR what the value adds, which is always last.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage.crc32c import MASK_DELTA, crc32c, pair_term, term
from rlvitals.tracking.sinks.event_files.messages import (
    RECORD_HEADER_FORMAT,
    SUMMARY_VALUE_FIELD,
    EventField,
    ValueField,
    header,
    length_delimited,
)

STEP_TAG_BYTE = 0x10  # field numbers and wire types, as one byte
_STEP_LIMITS = 2 ** (7 * np.arange(9, dtype=np.int64))  # from each on, a step takes a byte more
_SHIFTS = (7 * np.arange(10)).astype(np.uint64)
_POSITIONS = np.arange(19)  # the bytes of a stamp


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """A row of k keys whose steps take the same bytes: what is constant, and where the rest is."""

    template: NDArray[np.uint8]  # [bytes of a row], varying bytes are zero
    stamps: NDArray[np.int64]  # [k], offsets of time, step key and step
    ends: NDArray[np.int64]  # [k], offsets of value and checksum
    checks: NDArray[np.uint32]  # [k], the checksum of each payload in the template
    # What a register becomes from a stamp's end to its payload's end: [4, 256, distinct distances].
    moves: NDArray[np.uint32]
    distance_index: NDArray[np.int64]  # [k], which of the distances


def encode(
    keys: tuple[str, ...],
    steps: NDArray[np.int64],
    times: NDArray[np.float64],
    values: NDArray[np.float64],
) -> Iterator[bytes]:
    """Yield the records of rows [n] of some keys: `values` [n, k]. Nothing where k is 0."""
    if not keys:
        return
    with np.errstate(over="ignore"):  # beyond float32: infinite, as SummaryWriter has it
        single = values.astype("<f4", order="C")
    # The bytes of each step: 0 for step 0, which is left out, 10 below it.
    widths = np.where(steps < 0, 10, _STEP_LIMITS.searchsorted(steps, side="right"))
    cuts = [0, *(np.flatnonzero(widths[1:] != widths[:-1]) + 1).tolist(), len(steps)]
    batch_rows = max(2**12 // len(keys), 1)  # encoded together: their bytes fit the nearest caches
    for begin, end in pairwise(cuts):
        for first in range(begin, end, batch_rows):
            batch = slice(first, min(first + batch_rows, end))
            layout = _layout(keys, int(widths[first]))
            numbers = steps[batch]
            width = int(widths[first])
            stamps = np.empty((len(numbers), 9 + width if width else 8), np.uint8)
            stamps[:, :8] = times[batch].astype("<f8").view(np.uint8).reshape(-1, 8)
            if width:
                stamps[:, 8] = STEP_TAG_BYTE
                stamps[:, 9:] = (numbers.view(np.uint64)[:, None] >> _SHIFTS[:width]) & np.uint64(
                    127
                )
                stamps[:, 9:-1] |= 128
            yield _rows(layout, stamps, single[batch])


def _rows(layout: _Layout, stamps: NDArray[np.uint8], values: NDArray[np.float32]) -> bytes:
    """Return the records of n rows whose steps take the same bytes; `values` float32 [n, k]."""
    count, keys = values.shape
    size = len(layout.template)
    data = np.empty((count, size), np.uint8)
    data[:] = layout.template
    ends = np.empty((count, keys, 2), "<u4")
    ends[..., 0] = values.view("<u4")
    terms = _stamp_terms(stamps.shape[1])
    register = np.bitwise_xor.reduce(terms[_POSITIONS[: stamps.shape[1]], stamps], axis=1)
    octets = register.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)
    shifted = np.bitwise_xor.reduce(layout.moves[_POSITIONS[:4], octets], axis=1)
    halves = values.view("<u2").reshape(*values.shape, 2)
    crcs = pair_term(2).take(halves[..., 0]) ^ pair_term(0).take(halves[..., 1])
    crcs ^= shifted.take(layout.distance_index, axis=1)
    crcs ^= layout.checks
    rotated: NDArray[np.uint32] = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    rotated += np.uint32(MASK_DELTA)
    ends[..., 1] = rotated
    starts = np.arange(count)[:, None] * size
    _put(data, starts + layout.stamps, stamps[:, None].repeat(keys, axis=1))
    _put(data, starts + layout.ends, ends.view(np.uint8))
    return data.tobytes()


def _put(data: NDArray[np.uint8], offsets: NDArray[np.int64], pieces: NDArray[np.uint8]) -> None:
    """Write pieces [n, k, bytes] of equal size at any byte offsets [n, k]."""
    size = pieces.shape[-1]
    everywhere = np.ndarray((data.size - size + 1,), f"V{size}", data.data, strides=(1,))
    everywhere[offsets] = pieces.view(f"V{size}")[..., 0]


@lru_cache
def _stamp_terms(size: int) -> NDArray[np.uint32]:
    """Return what each byte of a stamp adds to the checksum that ends with it: [size, 256]."""
    return np.stack([term(size - 1 - position) for position in range(size)])


@lru_cache(maxsize=64)
def _layout(keys: tuple[str, ...], width: int) -> _Layout:
    stamp = bytes([0] * 8 + ([STEP_TAG_BYTE] + [0] * width if width else []))
    data, stamps, ends, checks, distances = b"", [], [], [], []
    for key in keys:
        # 4 zero bytes replace the value, so that the enclosing lengths count them.
        value = length_delimited(ValueField.TAG, key) + bytes([0x15, 0, 0, 0, 0])
        summary = length_delimited(EventField.SUMMARY, length_delimited(SUMMARY_VALUE_FIELD, value))
        bare = bytes([0x09]) + bytes(len(stamp)) + summary
        stamps.append(len(data) + RECORD_HEADER_FORMAT.size + 1)
        data += header(len(bare)) + bare
        ends.append(len(data) - 4)
        data += bytes(4)
        checks.append(crc32c(bare))
        distances.append(len(summary))
    distinct, distance_index = np.unique(np.array(distances), return_inverse=True)
    # The effect of a register's bytes after zero bytes: [4, 256, distances]. A register's byte is
    # processed after as many zero bytes as precede it, so each distance is at least 4.
    moves = np.stack(
        [
            np.stack([term(distance - 1 - byte) for distance in distinct.tolist()], axis=1)
            for byte in range(4)
        ]
    )
    return _Layout(
        np.frombuffer(data, np.uint8),
        np.array(stamps),
        np.array(ends),
        np.array(checks, np.uint32),
        moves,
        distance_index,
    )
