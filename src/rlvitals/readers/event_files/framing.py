"""TensorBoard's record framing (TFRecord): where records stand in some bytes.

A record is `u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the payload`,
little endian. Source: TensorFlow `core/lib/io/record_writer.cc`.

Headers are found all at once: a length below 2**16 leaves six zero bytes, of which four are
mostly one aligned word, and the checksum behind it says whether it is a header. Then the
headers are linked: each record must end where the next one starts. What is not found that way
(or is longer) is walked to, one record at a time.
"""

import struct
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvitals.storage.crc32c import ALL_ONES, CRC_TABLE, MASK_DELTA, crc32c, mask

HEADER = struct.Struct("<QI")
CHECK = struct.Struct("<I")
AROUND = HEADER.size + CHECK.size  # bytes of a record that are not its payload
LONGEST = 2**12  # a longer event is no scalar, or too many of them: read field by field
PART_BYTES = 2**18  # searched at once: bounds the memory where every byte may start a header
SHORT = 2**16  # payloads below it are found at once


@lru_cache(maxsize=4096)
def length_check(length: int) -> int:
    """Return the masked checksum that stands behind a record's length."""
    return mask(crc32c(length.to_bytes(8, "little")))


def header_at(data: bytes | memoryview, at: int = 0) -> int | None:
    """Return the length that a valid record header states; None where there is no such header."""
    if len(data) - at < HEADER.size:
        return None
    length, check = HEADER.unpack_from(data, at)
    return int(length) if length_check(length) == check else None


def intact(record: bytes) -> bool:
    """Tell whether a whole record's length and payload fit their checksums."""
    stored: int = CHECK.unpack_from(record, len(record) - CHECK.size)[0]
    if header_at(record) != len(record) - AROUND:
        return False
    return mask(crc32c(record[HEADER.size : -CHECK.size])) == stored


def checks_of(lengths: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the masked checksums [n] that stand behind lengths [n]."""
    register: NDArray[Any] = np.full(len(lengths), ALL_ONES, np.uint32)
    for byte in range(8):
        low = (lengths >> np.uint64(8 * byte)).astype(np.uint32)
        register = CRC_TABLE[(register ^ low) & 255] ^ (register >> np.uint32(8))
    crcs: NDArray[np.uint32] = ~register
    rotated = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    checks: NDArray[np.uint32] = rotated + np.uint32(MASK_DELTA)
    return checks


@lru_cache(maxsize=1)
def _short_checks() -> NDArray[np.uint32]:
    return checks_of(np.arange(SHORT, dtype=np.uint64))


def words(data: NDArray[np.uint8], at: NDArray[np.int64], kind: str) -> NDArray[Any]:
    """Return the numbers [n] of a type such as "<u8" that stand at any byte offsets [n]."""
    size = np.dtype(kind).itemsize
    everywhere = np.ndarray((len(data) - size + 1,), f"V{size}", data.data, strides=(1,))
    return everywhere[at].view(kind)


class Headers(NamedTuple):
    """Valid headers of short records, ascending; not all of them. int64 [n] each."""

    at: NDArray[np.int64]
    end: NDArray[np.int64]  # where the record ends: may be beyond the bytes
    stops: NDArray[np.int64]  # indices of headers whose record does not end at the next


def find_headers(data: NDArray[np.uint8], size: int) -> Headers:
    """Return the headers within the first `size` bytes of an aligned buffer."""
    whole = data[: size // 4 * 4].view("<u4")
    zeros = np.flatnonzero(whole == 0)
    zeros = zeros[(zeros > 0) & (4 * zeros + HEADER.size <= size)]
    zeros = zeros[whole[zeros - 1] != 0]  # the first of several: no length is 0
    before = whole[zeros - 1]
    byte = (before >= 2**8).view(np.int8) + (before >= 2**16) + (before >= 2**24)
    at = 4 * zeros - 4 + byte  # the last byte before the zeros that is none itself
    lengths = (before >> (8 * byte).astype(np.uint32)).astype(np.int64)
    # Not read in full: where its checksum fits and another of its bytes does not, it is damaged,
    # which whoever compares the header finds out.
    valid = _short_checks()[lengths] == words(data, at + 8, "<u4")
    if not valid.all():  # lengths of two bytes start one earlier; the others are no headers
        missed = at[~valid] - 1
        missed = missed[missed >= 0]
        more, good = _lengths(data, missed)
        both = np.concatenate((at[valid], missed[good]))
        order = np.argsort(both, kind="stable")
        at, lengths = both[order], np.concatenate((lengths[valid], more[good]))[order]
        new = np.append(True, at[1:] != at[:-1])[: len(at)]
        at, lengths = at[new], lengths[new]
    end = at + lengths + AROUND
    linked = np.append(end[:-1] == at[1:], False)[: len(at)]
    return Headers(at, end, np.flatnonzero(~linked))


def _lengths(
    data: NDArray[np.uint8], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the lengths [n] at some offsets and whether a header of a short record is there."""
    lengths = words(data, at, "<i8").astype(np.int64)
    short = lengths & (SHORT - 1)
    valid = short == lengths
    valid &= _short_checks()[short] == words(data, at + 8, "<u4")
    return lengths, valid


class Frames(NamedTuple):
    """Linked records: where their headers start and how long their payloads are. int64 [n]."""

    at: NDArray[np.int64]
    lengths: NDArray[np.int64]
    end: int  # where the next header starts, or should

    def until(self, count: int) -> "Frames":
        """Keep the first `count` records, of which there are more."""
        return Frames(self.at[:count], self.lengths[:count], int(self.at[count]))


def follow(data: memoryview, headers: Headers, start: int, longest: int) -> Frames:
    """Return the whole records of `data` from `start` on, up to the first that is not linked.

    At its `end` there is no valid header, or its record is not whole, or over `longest` bytes.
    """
    pieces, ends, at, size = [], [], start, len(data)
    while True:
        first = int(headers.at.searchsorted(at))
        if first < len(headers.at) and headers.at[first] == at:
            last = int(headers.stops[headers.stops.searchsorted(first)])
            last -= int(headers.end[last]) > size
            if last < first:
                break
            pieces.append(headers.at[first : last + 1])
            ends.append(headers.end[first : last + 1])
            at = int(headers.end[last])
            continue
        length = header_at(data, at)
        if length is None or length > longest or at + length + AROUND > size:
            break
        pieces.append(np.array([at]))
        at += length + AROUND
        ends.append(np.array([at]))
    offsets = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    after = np.concatenate(ends) if ends else np.zeros(0, np.int64)
    return Frames(offsets, after - offsets - AROUND, at)


def plausible_headers(window: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where in some bytes a record header may stand, for lengths below 2**24.

    int64 [n], ascending: every place whose stored checksum fits its length.
    """
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(window) - HEADER.size + 1, PART_BYTES):
        part = window[start : start + PART_BYTES + HEADER.size - 1]
        found.append(start + _plausible_in(part))
    return np.concatenate(found)


def _plausible_in(part: NDArray[np.uint8]) -> NDArray[np.int64]:
    count = len(part) - HEADER.size + 1
    if not part.any():  # what a crash or a sparse file leaves: no checksum is 0
        return np.zeros(0, np.int64)
    high = np.zeros(count, np.uint8)
    for byte in range(3, 8):
        high |= part[byte : byte + count]
    places = np.flatnonzero(high == 0)
    lengths = words(part, places, "<u8").view(np.uint64)
    expected = _short_checks()[lengths & np.uint64(SHORT - 1)]
    long = np.flatnonzero(lengths >= SHORT)
    expected[long] = checks_of(lengths[long])
    found: NDArray[np.int64] = places[expected == words(part, places + 8, "<u4")]
    return found
