"""Numbers and texts out of TensorFlow's `TensorProto`. Source: `tensor.proto`, `types.proto`."""

import math
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats.protobuf import BYTES, VARINT, Field, Malformed, fields, signed

DTYPE, SHAPE, CONTENT = 1, 2, 4  # fields of a TensorProto
STRING, STRING_VAL = 7, 8  # the type, and the list of its values
DIMENSION, SIZE = 2, 1  # of a TensorShapeProto, of its dimension


@dataclass(frozen=True, slots=True)
class Kind:
    """A number type: its layout in `tensor_content`, and the field of its `*_val` list."""

    layout: struct.Struct
    field: int
    bits: bool = False  # the list holds bit patterns: float16 and bfloat16
    brain: bool = False  # bfloat16: the upper half of a float32


def _kind(layout: str, field: int, *, bits: bool = False, brain: bool = False) -> Kind:
    return Kind(struct.Struct(f"<{layout}"), field, bits, brain)


# By DataType. Strings, complex and quantised numbers are no scalars.
KINDS = {
    1: _kind("f", 5),
    2: _kind("d", 6),
    3: _kind("i", 7),
    4: _kind("B", 7),
    5: _kind("h", 7),
    6: _kind("b", 7),
    9: _kind("q", 10),
    10: _kind("?", 11),
    14: _kind("f", 13, bits=True, brain=True),
    17: _kind("H", 7),
    19: _kind("e", 13, bits=True),
    22: _kind("I", 16),
    23: _kind("Q", 17),
}


def scalar_of(data: bytes) -> float | None:
    """Return the number of a one-element tensor; None for any other. Raises Malformed.

    A tensor without content is zero, as TensorFlow leaves default values out.
    """
    found = {field.id: field for field in fields(data)}
    kind = KINDS.get(found[DTYPE].number) if DTYPE in found else None
    if kind is None or (SHAPE in found and elements(found[SHAPE].data) != 1):
        return None
    if CONTENT in found:
        return _unpack(kind, found[CONTENT].data)
    return _listed(kind, found[kind.field]) if kind.field in found else 0.0


def texts_of(data: bytes) -> list[str] | None:
    """Return the texts of a tensor of strings; None for any other. Raises Malformed."""
    texts, kind = [], None
    for field in fields(data):
        if field.id == DTYPE:
            kind = field.number
        elif field.id == STRING_VAL:
            texts.append(field.data.decode(errors="replace"))
    return texts if kind == STRING else None


def matrix_of(data: bytes) -> NDArray[np.float64] | None:
    """Return a tensor of floats [rows, columns]; None for any other. Raises Malformed."""
    found = {field.id: field for field in fields(data)}
    kind = KINDS.get(found[DTYPE].number) if DTYPE in found else None
    if kind is None or kind.field not in {5, 6} or SHAPE not in found:
        return None
    sizes = _sizes(found[SHAPE].data)
    listed = found.get(CONTENT) or found.get(kind.field)
    numbers = listed.data if listed else b""
    dimensions = 2
    if len(sizes) != dimensions or min(sizes) < 0:
        return None
    if len(numbers) != sizes[0] * sizes[1] * kind.layout.size:
        return None
    flat = np.frombuffer(numbers, kind.layout.format)
    return flat.reshape(sizes[0], sizes[1]).astype(np.float64)


def _sizes(shape: bytes) -> list[int]:
    """Return a tensor's sizes, one a dimension."""
    sizes = []
    for dimension in fields(shape):
        if dimension.id == DIMENSION:
            found = [signed(f.number) for f in fields(dimension.data) if f.id == SIZE]
            sizes.append(found[-1] if found else 0)
    return sizes


def elements(shape: bytes) -> int:
    """Return how many numbers a tensor of some shape has. Raises Malformed."""
    return math.prod(_sizes(shape))


def _unpack(kind: Kind, data: bytes) -> float:
    if kind.brain:
        data = b"\0\0" + data
    if len(data) != kind.layout.size:
        raise Malformed
    return float(kind.layout.unpack(data)[0])


def _listed(kind: Kind, field: Field) -> float:
    """Return the first number of a `*_val` list, packed or not."""
    if kind.field in {5, 6}:  # fixed width, floats and doubles
        return _unpack(kind, field.data[: kind.layout.size])
    number = field.number
    if field.wire == BYTES:  # packed varints: read the first as a field of its own
        number = next(fields(b"\x08" + field.data)).number
    elif field.wire != VARINT:
        raise Malformed
    if kind.bits:
        return _unpack(kind, (number & 0xFFFF).to_bytes(2, "little"))
    return float(number if kind.field in {16, 17} else signed(number))
