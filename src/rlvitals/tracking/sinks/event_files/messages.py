"""The protobuf wire format and the record framing, as far as writing needs them.

Sources: protobuf.dev/programming-guides/encoding; TensorFlow `core/lib/io/record_writer.cc`.
"""

import struct
from functools import lru_cache

from rlvitals.storage.crc32c import crc32c, mask

RECORD_HEADER = struct.Struct("<QI")  # length, its masked checksum
RECORD_CHECKSUM = struct.Struct("<I")
DOUBLE = struct.Struct("<d")


def varint(number: int) -> bytes:
    """Return an int64 as a varint: negative ones take ten bytes."""
    number &= 2**64 - 1
    data = bytearray()
    while number > 127:  # noqa: PLR2004  # seven bits a byte
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def integer(field: int, number: int) -> bytes:
    """Return a field that holds an integer."""
    return varint(field << 3) + varint(number)


def double(field: int, number: float) -> bytes:
    """Return a field that holds a float64."""
    return varint(field << 3 | 1) + DOUBLE.pack(number)


def length_delimited(field: int, data: bytes | str) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    data = data.encode(errors="replace") if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


@lru_cache(maxsize=4096)
def header(length: int) -> bytes:
    """Return what stands before a record's payload of so many bytes."""
    return RECORD_HEADER.pack(length, mask(crc32c(length.to_bytes(8, "little"))))


def record(payload: bytes) -> bytes:
    """Return a payload as one whole record."""
    return header(len(payload)) + payload + RECORD_CHECKSUM.pack(mask(crc32c(payload)))
