"""Parse the protobuf wire format into numbered fields.

Source: protobuf.dev/programming-guides/encoding. No schema, no generated code.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIXED_WIDTHS = {FIXED64: 8, FIXED32: 4}
VARINT_CONTINUATION = 0x80  # the bit of each byte of a varint but the last
FLOAT_STRUCT = struct.Struct("<f")


class Malformed(ValueError):  # noqa: N818  # reads as what it is, like the nouns of errors.py
    """The bytes are not a protobuf message."""


class Field(NamedTuple):
    """One field of a message: `number` for a varint, `data` for the other wire types."""

    id: int
    wire: int
    number: int  # unsigned; see `signed`
    data: bytes


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return an unsigned varint and the offset after it. Raises Malformed."""
    value = shift = 0
    while True:
        if offset >= len(data) or shift > 63:
            raise Malformed
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:  # the continuation bit
            return value & (2**64 - 1), offset
        shift += 7


def read_sized(data: bytes, offset: int) -> bytes:
    """Return the bytes behind a length. Raises Malformed."""
    size, begin = varint(data, offset)
    if begin + size > len(data):
        raise Malformed
    return data[begin : begin + size]


def to_signed(number: int) -> int:
    """Return an unsigned 64-bit varint as the int64 (or int32) that it encodes."""
    return number - 2**64 if number >= 2**63 else number


def fields(data: bytes) -> Iterator[Field]:
    """Yield a message's fields in order. Raises Malformed."""
    offset, end = 0, len(data)
    while offset < end:
        key, offset = varint(data, offset)
        wire = key & 7
        if wire == VARINT:
            number, offset = varint(data, offset)
            yield Field(key >> 3, wire, number, b"")
            continue
        if wire == BYTES:
            size, offset = varint(data, offset)
        elif wire in FIXED_WIDTHS:
            size = FIXED_WIDTHS[wire]
        else:  # groups: no schema of ours has them
            raise Malformed
        if offset + size > end:
            raise Malformed
        yield Field(key >> 3, wire, 0, data[offset : offset + size])
        offset += size


def double(field: Field) -> float:
    """Return a double field. Raises Malformed."""
    if field.wire != FIXED64:
        raise Malformed
    return float(struct.unpack("<d", field.data)[0])


def single(field: Field) -> float:
    """Return a float field. Raises Malformed."""
    if field.wire != FIXED32:
        raise Malformed
    return float(FLOAT_STRUCT.unpack(field.data)[0])
