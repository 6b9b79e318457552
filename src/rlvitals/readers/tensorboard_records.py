"""TensorBoard's record framing (TFRecord): payloads in, with their checksums verified.

A record is `u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the payload`,
little endian. Source: TensorFlow `core/lib/io/record_writer.cc`.
"""

import os
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.crc32c import ALL_ONES, MASK_DELTA, TABLE, crc32c, mask

HEADER = struct.Struct("<QI")
CHECK = struct.Struct("<I")
AROUND = HEADER.size + CHECK.size  # bytes of a record that are not its payload
CHUNK_BYTES = 4 * 2**20
MAX_RECORD_BYTES = 64 * 2**20  # longer ones are pictures or graphs: passed over, not loaded
SCAN_BYTES = (2**12, 2**20)  # how far to look for the next record at first, and at most


@lru_cache(maxsize=4096)
def length_check(length: int) -> int:
    """Return the masked checksum that stands behind a record's length."""
    return mask(crc32c(length.to_bytes(8, "little")))


def header_at(data: bytes, at: int = 0) -> int | None:
    """Return the length that a valid record header states; None where there is no such header."""
    if len(data) - at < HEADER.size:
        return None
    length, check = HEADER.unpack_from(data, at)
    return int(length) if length_check(length) == check else None


def intact(record: bytes) -> bool:
    """Tell whether a whole record's payload fits its checksum."""
    stored: int = CHECK.unpack_from(record, len(record) - CHECK.size)[0]
    return mask(crc32c(record[HEADER.size : -CHECK.size])) == stored


class Records:
    """Iterates over the intact records of a file from a byte offset on.

    A torn tail ends the iteration before it: it is still being written. Damage is passed over
    up to the next intact record; damage that reaches the file's end is left for the next
    reading, as bytes may also arrive out of order. `offset` is where to go on.
    """

    def __init__(self, file: BinaryIO, offset: int = 0) -> None:
        """Start at a byte offset, which must be the start of a record."""
        self.offset = offset
        self.records = 0
        self.skipped = 0  # bytes passed over as damaged
        self.first_skipped = 0  # offset of the first of them
        self.oversized = 0  # records over MAX_RECORD_BYTES
        self.unsure = 0  # bytes at the end that are damaged, or not written yet
        self._file = file
        self._window = b""
        self._base = offset

    def notes(self) -> list[str]:
        """Say what a person should know of this reading: empty where all is well."""
        notes = []
        if self.skipped:
            at = self.first_skipped
            notes.append(f"{self.skipped} damaged bytes skipped: the first at byte {at}")
        if self.oversized:
            limit = MAX_RECORD_BYTES // 2**20
            plural = "" if self.oversized == 1 else "s"
            notes.append(f"{self.oversized} record{plural} over {limit} MiB passed over")
        if self.unsure:
            notes.append(f"the last {self.unsure} bytes are damaged or not complete yet: left")
        return notes

    def __iter__(self) -> Iterator[bytes]:
        """Yield every intact payload once, in order."""
        while header := self._bytes(self.offset, HEADER.size):
            length = header_at(header)
            if length is None and (len(header) < HEADER.size or not self._resume()):
                break
            if length is None:
                continue
            if length > MAX_RECORD_BYTES and self.offset + length + AROUND <= self._size():
                self.offset += length + AROUND
                self.oversized += 1
                continue
            if length > MAX_RECORD_BYTES:
                break
            record = self._bytes(self.offset, length + AROUND)
            if len(record) < length + AROUND:
                break
            if intact(record):
                self.offset += len(record)
                self.records += 1
                yield record[HEADER.size : -CHECK.size]
            elif not self._resume():
                break
        self.unsure = self._size() - self.offset

    def _size(self) -> int:
        return self._file.seek(0, os.SEEK_END)

    def _bytes(self, offset: int, count: int) -> bytes:
        """Return `count` bytes at an offset; fewer where the file ends."""
        at = offset - self._base
        if at < 0 or at + count > len(self._window):
            self._file.seek(offset)
            self._window = self._file.read(max(count, CHUNK_BYTES))
            self._base, at = offset, 0
        return self._window[at : at + count]

    def _resume(self) -> bool:
        """Go to the next intact record after damage; False where there is none (yet)."""
        at, (reach, most) = self.offset + 1, SCAN_BYTES
        while len(window := self._bytes(at, reach)) >= HEADER.size:
            for found in plausible_headers(np.frombuffer(window, np.uint8)).tolist():
                length = header_at(window, found) or 0
                record = self._bytes(at + found, length + AROUND)
                if len(record) == length + AROUND and not intact(record):
                    continue
                self.first_skipped = self.first_skipped if self.skipped else self.offset
                self.skipped += at + found - self.offset
                self.offset = at + found
                return True
            at += len(window) - HEADER.size + 1
            reach = min(2 * reach, most)
        self.unsure = self._size() - self.offset
        return False


def plausible_headers(window: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where in some bytes a record header may stand, for lengths below 2**24.

    int64 [n], ascending: every place whose stored checksum fits its length.
    """
    count = len(window) - HEADER.size + 1
    high = np.zeros(count, np.uint8)
    for byte in range(3, 8):
        high |= window[byte : byte + count]
    places = np.flatnonzero(high == 0)
    register = np.full(len(places), ALL_ONES, np.uint32)
    for byte in range(8):
        register = TABLE[(register ^ window[places + byte]) & 255] ^ (register >> 8)
    register ^= np.uint32(ALL_ONES)
    expected = ((register >> 15) | (register << 17)) + np.uint32(MASK_DELTA)
    stored = np.zeros(len(places), np.uint32)
    for byte in range(4):
        stored |= window[places + 8 + byte].astype(np.uint32) << np.uint32(8 * byte)
    found: NDArray[np.int64] = places[stored == expected]
    return found
