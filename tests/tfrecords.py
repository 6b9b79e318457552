"""A tiny writer of TensorBoard event files, by the letter of the formats and by nothing of ours."""

import struct


def _bit_by_bit(register):
    """Shift one byte out, as RFC 3720 defines it."""
    for _ in range(8):
        register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register


BYTES = [_bit_by_bit(byte) for byte in range(256)]


def crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register = BYTES[(register ^ byte) & 255] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(payload):
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def varint(number):
    number &= 2**64 - 1
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def integer(field, number):
    return varint(field << 3) + varint(number)


def double(field, number):
    return varint(field << 3 | 1) + struct.pack("<d", number)


def single(field, number):
    return varint(field << 3 | 5) + struct.pack("<f", number)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def value(tag, body):
    """Return a Summary.Value: `body` is its number, tensor or metadata."""
    return text(1, text(1, tag) + body)


def simple(tag, number):
    return value(tag, single(2, number))


def tensor(dtype, body, shape=b""):
    """Return the tensor field of a Summary.Value."""
    return text(8, integer(1, dtype) + text(2, shape) + body)


def plugin(name, content=b"", data_class=0):
    """Return the metadata field of a Summary.Value."""
    kind = integer(4, data_class) if data_class else b""
    return text(9, text(1, text(1, name) + text(2, content)) + kind)


def histogram(tag, limits, counts):
    """Return a Summary.Value of a HistogramProto with packed buckets."""
    packed = (struct.pack(f"<{len(row)}d", *row) for row in (limits, counts))
    return value(tag, text(5, double(1, -1.0) + text(6, next(packed)) + text(7, next(packed))))


def event(step, *values, time=1.0e9):
    """Return a record of an event; step 0 and no time are left out, as protobuf does."""
    when = b"" if time is None else double(1, time)
    at = integer(2, step) if step else b""
    return record(when + at + text(5, b"".join(values)))


VERSION = record(double(1, 1.0e9) + text(3, "brain.Event:2"))
