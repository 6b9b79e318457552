"""Encode protobuf fields and TensorBoard records.

Sources: protobuf.dev/programming-guides/encoding; TensorFlow `core/lib/io/record_writer.cc`.
"""

import struct
from enum import IntEnum
from functools import lru_cache

from rlvitals.storage.crc32c import crc32c, mask

RECORD_HEADER_FORMAT = struct.Struct("<QI")  # length, its masked checksum
SUMMARY_VALUE_FIELD = 1  # field number of Summary.value


class EventField(IntEnum):
    """Field numbers of TensorFlow's Event."""

    WALL_TIME = 1
    STEP = 2
    FILE_VERSION = 3
    SUMMARY = 5
    SESSION_LOG = 7


class ValueField(IntEnum):
    """Field numbers of Summary.Value."""

    TAG = 1
    HISTOGRAM = 5
    TENSOR = 8
    METADATA = 9


def varint(number: int) -> bytes:
    """Return an int64 as a varint: negative ones take ten bytes."""
    number &= 2**64 - 1
    data = bytearray()
    while number > 127:  # seven bits a byte
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def integer(field: int, number: int) -> bytes:
    """Return an integer field."""
    return varint(field << 3) + varint(number)


def double(field: int, number: float) -> bytes:
    """Return a float64 field."""
    return varint(field << 3 | 1) + struct.pack("<d", number)


def length_delimited(field: int, data: bytes | str) -> bytes:
    """Return a field of bytes, text or a message."""
    data = data.encode(errors="replace") if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


@lru_cache(maxsize=4096)
def header(length: int) -> bytes:
    """Return the header of a record with a payload of so many bytes."""
    return RECORD_HEADER_FORMAT.pack(length, mask(crc32c(length.to_bytes(8, "little"))))


def record(payload: bytes) -> bytes:
    """Return a payload as a complete record."""
    return header(len(payload)) + payload + struct.pack("<I", mask(crc32c(payload)))
