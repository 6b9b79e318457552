"""Scalars as events, many at a time: byte for byte what torch's SummaryWriter writes for them.

One event holds one number, the keys of a row stand one after the other. Of a key's record only
the time, the step, the value and the checksum change from row to row, so a row's bytes are a
template in which few bytes are replaced. The checksum is affine over GF(2) (`wire/crc32c.py`):
it is that of the template, XOR what the time and step add, which all keys of a row share up to
their distance from the end, XOR what the value adds, which is always last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlvitals.recording.sinks.event_files.messages import header, sized
from rlvitals.wire.crc32c import MASK_DELTA, crc32c, pair_term, term

HEADER_BYTES = 12
TIME_KEY, STEP_KEY, VALUE_KEY = 0x09, 0x10, 0x15  # field numbers and wire types, as one byte
SUMMARY, VALUE, TAG = 5, 1, 1  # Event.summary, Summary.value, Summary.Value.tag
AT_ONCE = 2**16  # scalars that are encoded together: their bytes fit a cache


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """A row of k keys whose steps take the same bytes: what is constant, and where the rest is."""

    template: NDArray[np.uint8]  # [bytes of a row], varying bytes are zero
    stamps: NDArray[np.int64]  # [k], where time, step key and step stand
    ends: NDArray[np.int64]  # [k], where value and checksum stand
    checks: NDArray[np.uint32]  # [k], the checksum of each payload in the template
    behind: tuple[int, ...]  # distinct distances from a stamp's end to its payload's end
    which: NDArray[np.int64]  # [k], index into `behind`


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
    widths = _widths(steps)
    cuts = [0, *(np.flatnonzero(np.diff(widths)) + 1).tolist(), len(steps)]
    together = max(AT_ONCE // len(keys), 1)
    for begin, end in pairwise(cuts):
        for first in range(begin, end, together):
            some = slice(first, min(first + together, end))
            layout = _layout(keys, int(widths[first]))
            yield _rows(layout, _stamps(steps[some], times[some], int(widths[first])), single[some])


def _widths(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bytes each step takes: 0 for step 0, which is left out, 10 below it."""
    limits = 2 ** (7 * np.arange(9, dtype=np.int64))
    return np.where(steps < 0, 10, limits.searchsorted(steps, side="right"))


def _stamps(steps: NDArray[np.int64], times: NDArray[np.float64], width: int) -> NDArray[np.uint8]:
    """Return time, step key and step of each row: uint8 [n, 8] or [n, 9 + width]."""
    stamps = np.empty((len(steps), 9 + width if width else 8), np.uint8)
    stamps[:, :8] = times.astype("<f8").view(np.uint8).reshape(-1, 8)
    if width:
        stamps[:, 8] = STEP_KEY
        shifts = (7 * np.arange(width)).astype(np.uint64)
        stamps[:, 9:] = (steps.view(np.uint64)[:, None] >> shifts) & np.uint64(127)
        stamps[:, 9:-1] |= 128
    return stamps


def _rows(layout: _Layout, stamps: NDArray[np.uint8], values: NDArray[np.float32]) -> bytes:
    """Return the records of n rows whose steps take the same bytes; `values` float32 [n, k]."""
    count, keys = values.shape
    size = len(layout.template)
    data = np.empty((count, size), np.uint8)
    data[:] = layout.template
    ends = np.empty((count, keys, 2), "<u4")
    ends[..., 0] = values.view("<u4")
    ends[..., 1] = _checks(layout, stamps, values)
    starts = np.arange(count)[:, None] * size
    _put(data, starts + layout.stamps, stamps[:, None].repeat(keys, axis=1))
    _put(data, starts + layout.ends, ends.view(np.uint8))
    return data.tobytes()


def _put(data: NDArray[np.uint8], at: NDArray[np.int64], pieces: NDArray[np.uint8]) -> None:
    """Write pieces [n, k, bytes] of equal size at any byte offsets [n, k]."""
    size = pieces.shape[-1]
    everywhere = np.ndarray((data.size - size + 1,), f"V{size}", data.data, strides=(1,))
    everywhere[at] = pieces.view(f"V{size}")[..., 0]


def _checks(
    layout: _Layout, stamps: NDArray[np.uint8], values: NDArray[np.float32]
) -> NDArray[np.uint32]:
    """Return the masked checksums [n, k] of the payloads."""
    register = np.zeros(len(stamps), np.uint32)
    last = stamps.shape[1] - 1
    for at, column in enumerate(stamps.T):
        register ^= term(last - at)[column]
    moved = np.empty((len(stamps), len(layout.behind)), np.uint32)
    for index, distance in enumerate(layout.behind):
        moved[:, index] = _after_zeros(register, distance)
    halves = values.view("<u2").reshape(*values.shape, 2)
    crcs = pair_term(2)[halves[..., 0]] ^ pair_term(0)[halves[..., 1]]
    crcs ^= moved[:, layout.which]
    crcs ^= layout.checks
    rotated: NDArray[np.uint32] = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    rotated += np.uint32(MASK_DELTA)
    return rotated


def _after_zeros(register: NDArray[np.uint32], distance: int) -> NDArray[np.uint32]:
    """Return registers as they are after `distance` zero bytes, at least 4."""
    # A register's byte comes to its turn after as many zero bytes as stand before it.
    moved: NDArray[np.uint32] = term(distance - 1)[register & 255]
    for byte in range(1, 4):
        moved = moved ^ term(distance - 1 - byte)[(register >> np.uint32(8 * byte)) & 255]
    return moved


@lru_cache(maxsize=256)
def _layout(keys: tuple[str, ...], width: int) -> _Layout:
    stamp = bytes([0] * 8 + ([STEP_KEY] + [0] * width if width else []))
    data, stamps, ends, checks, behind = b"", [], [], [], []
    for key in keys:
        # 4 zero bytes stand for the value, so that the lengths around it count them.
        value = sized(TAG, key) + bytes([VALUE_KEY, 0, 0, 0, 0])
        summary = sized(SUMMARY, sized(VALUE, value))
        bare = bytes([TIME_KEY]) + bytes(len(stamp)) + summary
        stamps.append(len(data) + HEADER_BYTES + 1)
        data += header(len(bare)) + bare
        ends.append(len(data) - 4)
        data += bytes(4)
        checks.append(crc32c(bare))
        behind.append(len(summary))
    distinct, which = np.unique(np.array(behind), return_inverse=True)
    return _Layout(
        np.frombuffer(data, np.uint8),
        np.array(stamps),
        np.array(ends),
        np.array(checks, np.uint32),
        tuple(distinct.tolist()),
        which,
    )
