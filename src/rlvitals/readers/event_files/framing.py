"""Find the records (TFRecord framing) of TensorBoard's event files.

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

RECORD_HEADER = struct.Struct("<QI")
CHECKSUM_FORMAT = struct.Struct("<I")
RECORD_OVERHEAD = (
    RECORD_HEADER.size + CHECKSUM_FORMAT.size
)  # bytes of a record that are not its payload
MAX_SCALAR_EVENT_BYTES = (
    2**12
)  # a longer event is no scalar, or too many of them: read field by field
SEARCH_BLOCK_BYTES = (
    2**18
)  # searched at once: bounds the memory where every byte may start a header
SHORT_PAYLOAD_BYTES = 2**16  # payloads below it are found at once


@lru_cache(maxsize=4096)
def length_check(length: int) -> int:
    """Return the masked checksum that follows a record's length."""
    return mask(crc32c(length.to_bytes(8, "little")))


def header_at(data: bytes | memoryview, offset: int = 0) -> int | None:
    """Return the length that a valid record header states; None where there is no such header."""
    if len(data) - offset < RECORD_HEADER.size:
        return None
    length, check = RECORD_HEADER.unpack_from(data, offset)
    return int(length) if length_check(length) == check else None


def is_intact(record: bytes) -> bool:
    """Return True if a whole record's length and payload fit their checksums."""
    stored: int = CHECKSUM_FORMAT.unpack_from(record, len(record) - CHECKSUM_FORMAT.size)[0]
    if header_at(record) != len(record) - RECORD_OVERHEAD:
        return False
    return mask(crc32c(record[RECORD_HEADER.size : -CHECKSUM_FORMAT.size])) == stored


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
    return checks_of(np.arange(SHORT_PAYLOAD_BYTES, dtype=np.uint64))


def read_numbers(data: NDArray[np.uint8], offsets: NDArray[np.int64], kind: str) -> NDArray[Any]:
    """Return the numbers [n] of a type such as "<u8" that stand at any byte offsets [n]."""
    size = np.dtype(kind).itemsize
    everywhere = np.ndarray((len(data) - size + 1,), f"V{size}", data.data, strides=(1,))
    return everywhere[offsets].view(kind)


class Headers(NamedTuple):
    """Valid headers of short records, ascending; not all of them. int64 [n] each."""

    starts: NDArray[np.int64]
    end: NDArray[np.int64]  # where the record ends: may be beyond the bytes
    stops: NDArray[np.int64]  # indices of headers whose record does not end at the next


def find_headers(data: NDArray[np.uint8], size: int) -> Headers:
    """Return the headers within the first `size` bytes of an aligned buffer."""
    aligned = data[: size // 4 * 4].view("<u4")
    zeros = np.flatnonzero(aligned == 0)
    zeros = zeros[(zeros > 0) & (4 * zeros + RECORD_HEADER.size <= size)]
    zeros = zeros[aligned[zeros - 1] != 0]  # the first of several: no length is 0
    previous = aligned[zeros - 1]
    byte = (previous >= 2**8).view(np.int8) + (previous >= 2**16) + (previous >= 2**24)
    starts = 4 * zeros - 4 + byte  # the last byte before the zeros that is none itself
    lengths = (previous >> (8 * byte).astype(np.uint32)).astype(np.int64)
    # Not read in full: where its checksum fits and another of its bytes does not, it is damaged,
    # which whoever compares the header finds out.
    valid = _short_checks()[lengths] == read_numbers(data, starts + 8, "<u4")
    if not valid.all():  # lengths of two bytes start one earlier; the others are no headers
        missed = starts[~valid] - 1
        missed = missed[missed >= 0]
        more, good = _lengths(data, missed)
        merged = np.concatenate((starts[valid], missed[good]))
        order = np.argsort(merged, kind="stable")
        starts, lengths = merged[order], np.concatenate((lengths[valid], more[good]))[order]
        new = np.append(True, starts[1:] != starts[:-1])[: len(starts)]
        starts, lengths = starts[new], lengths[new]
    end = starts + lengths + RECORD_OVERHEAD
    linked = np.append(end[:-1] == starts[1:], False)[: len(starts)]
    return Headers(starts, end, np.flatnonzero(~linked))


def _lengths(
    data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the lengths [n] at some offsets and whether a header of a short record is there."""
    lengths = read_numbers(data, offsets, "<i8").astype(np.int64)
    short = lengths & (SHORT_PAYLOAD_BYTES - 1)
    valid = short == lengths
    valid &= _short_checks()[short] == read_numbers(data, offsets + 8, "<u4")
    return lengths, valid


class Frames(NamedTuple):
    """Linked records: where their headers start and how long their payloads are. int64 [n]."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    end: int  # where the next header starts, or should

    def until(self, count: int) -> "Frames":
        """Keep the first `count` records, of which there are more."""
        return Frames(self.starts[:count], self.lengths[:count], int(self.starts[count]))


def follow(data: memoryview, headers: Headers, start: int, longest: int) -> Frames:
    """Return the whole records of `data` from `start` on, up to the first that is not linked.

    At its `end` there is no valid header, or its record is not whole, or over `longest` bytes.
    """
    pieces, ends, offset, size = [], [], start, len(data)
    while True:
        first = int(headers.starts.searchsorted(offset))
        if first < len(headers.starts) and headers.starts[first] == offset:
            last = int(headers.stops[headers.stops.searchsorted(first)])
            last -= int(headers.end[last]) > size
            if last < first:
                break
            pieces.append(headers.starts[first : last + 1])
            ends.append(headers.end[first : last + 1])
            offset = int(headers.end[last])
            continue
        length = header_at(data, offset)
        if length is None or length > longest or offset + length + RECORD_OVERHEAD > size:
            break
        pieces.append(np.array([offset]))
        offset += length + RECORD_OVERHEAD
        ends.append(np.array([offset]))
    offsets = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    after = np.concatenate(ends) if ends else np.zeros(0, np.int64)
    return Frames(offsets, after - offsets - RECORD_OVERHEAD, offset)


def plausible_headers(window: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where in some bytes a record header may stand, for lengths below 2**24.

    int64 [n], ascending: every place whose stored checksum fits its length.
    """
    headers = [np.zeros(0, np.int64)]
    for start in range(0, len(window) - RECORD_HEADER.size + 1, SEARCH_BLOCK_BYTES):
        block = window[start : start + SEARCH_BLOCK_BYTES + RECORD_HEADER.size - 1]
        if not block.any():  # what a crash or a sparse file leaves: no checksum is 0
            continue
        count = len(block) - RECORD_HEADER.size + 1
        high = np.zeros(count, np.uint8)
        for byte in range(3, 8):
            high |= block[byte : byte + count]
        places = np.flatnonzero(high == 0)
        lengths = read_numbers(block, places, "<u8").view(np.uint64)
        expected = _short_checks()[lengths & np.uint64(SHORT_PAYLOAD_BYTES - 1)]
        long = np.flatnonzero(lengths >= SHORT_PAYLOAD_BYTES)
        expected[long] = checks_of(lengths[long])
        headers.append(start + places[expected == read_numbers(block, places + 8, "<u4")])
    return np.concatenate(headers)
