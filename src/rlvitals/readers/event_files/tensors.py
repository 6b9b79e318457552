"""Parse numbers and texts of TensorFlow's `TensorProto`. Source: `tensor.proto`, `types.proto`."""

import math
import struct

import numpy as np
from numpy.typing import NDArray

from rlvitals.readers.formats.protobuf import BYTES, VARINT, Field, Malformed, fields, to_signed
from rlvitals.startup.fast_dataclass import dataclass


class TensorField:
    """Field numbers of a TensorProto."""

    DTYPE = 1
    SHAPE = 2
    CONTENT = 4
    FLOAT_VAL = 5
    DOUBLE_VAL = 6
    STRING_VAL = 8


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
NUMBER_KINDS = {
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
    by_id = {field.id: field for field in fields(data)}
    kind = NUMBER_KINDS.get(by_id[TensorField.DTYPE].number) if TensorField.DTYPE in by_id else None
    if kind is None or (
        TensorField.SHAPE in by_id and elements(by_id[TensorField.SHAPE].data) != 1
    ):
        return None
    if TensorField.CONTENT in by_id:
        return _unpack(kind, by_id[TensorField.CONTENT].data)
    return _first_of_list(kind, by_id[kind.field]) if kind.field in by_id else 0.0


def texts_of(data: bytes) -> list[str] | None:
    """Return the texts of a tensor of strings; None for any other. Raises Malformed."""
    texts, kind = [], None
    for field in fields(data):
        if field.id == TensorField.DTYPE:
            kind = field.number
        elif field.id == TensorField.STRING_VAL:
            texts.append(field.data.decode(errors="replace"))
    string_type = 7  # DT_STRING
    return texts if kind == string_type else None


def matrix_of(data: bytes) -> NDArray[np.float64] | None:
    """Return a tensor of floats [rows, columns]; None for any other. Raises Malformed."""
    by_id = {field.id: field for field in fields(data)}
    kind = NUMBER_KINDS.get(by_id[TensorField.DTYPE].number) if TensorField.DTYPE in by_id else None
    if kind is None or kind.field not in {5, 6} or TensorField.SHAPE not in by_id:
        return None
    sizes = _sizes(by_id[TensorField.SHAPE].data)
    values = by_id.get(TensorField.CONTENT) or by_id.get(kind.field)
    numbers = values.data if values else b""
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
        match dimension.id:
            case 2:  # dim, its size
                values = [to_signed(f.number) for f in fields(dimension.data) if f.id == 1]
                sizes.append(values[-1] if values else 0)
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


def _first_of_list(kind: Kind, field: Field) -> float:
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
    return float(number if kind.field in {16, 17} else to_signed(number))
