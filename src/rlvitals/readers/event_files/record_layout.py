"""Find the byte offsets of the numbers in an event: its layout.

An event as every known writer serializes it: `1 wall_time (double)`, `2 step (varint)` unless
it is 0, `5 summary` with one or more values, each a tag and either `2 simple_value` or
`8 tensor` with one float or double. Anything else has no layout and is read field by field.
Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rlvitals.readers.event_files.tensors import TensorField, elements
from rlvitals.readers.formats.protobuf import BYTES, FIXED32, FIXED64, VARINT, Malformed, varint
from rlvitals.startup.fast_dataclass import dataclass

TIME_AT = 1  # the payload's offset of the time, 8 bytes
STEP_AT = 10  # of the step
STEP_KEY = b"\x10"


class ValueField:
    """Field numbers of a Summary.Value."""

    TAG = 1
    SIMPLE = 2
    HISTOGRAM = 5
    NODE_NAME = 7
    TENSOR = 8
    METADATA = 9


class Place(NamedTuple):
    """Offset of a number in a payload, and its size: 4 (float) or 8 (double) bytes."""

    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Number:
    """Description of one number of an event."""

    tag: str
    tensor: bool  # a tensor: a scalar only where the tag's first event does not say otherwise
    described: bool  # this event says what the tag is


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of an event's step and numbers, and what they are."""

    step_width: int  # bytes; 0 where the step is 0 and left out
    places: tuple[Place, ...]
    numbers: tuple[Number, ...]

    @property
    def varying(self) -> tuple[Place, ...]:
        """Byte ranges that vary from event to event."""
        return (Place(TIME_AT, 8), Place(STEP_AT, self.step_width), *self.places)


class Span(NamedTuple):
    """One field within a message: its number, its wire type and where its data stand."""

    id: int
    wire: int
    start: int
    end: int


def layout_of(payload: bytes) -> Layout | None:
    """Return an event's layout, None where it has none."""
    try:
        if payload[:1] != b"\x09":  # wall_time
            return None
        offset = STEP_AT - 1
        if payload[offset : offset + 1] == STEP_KEY:
            offset = varint(payload, STEP_AT)[1]
        step_width = max(offset - STEP_AT, 0)
        if payload[offset : offset + 1] != b"\x2a":  # summary
            return None
        size, offset = varint(payload, offset + 1)
        if offset + size != len(payload):
            return None
        numbers = []
        for span in _spans(payload, offset, len(payload)):
            number = _number(payload, span) if (span.id, span.wire) == (1, BYTES) else None
            if number is None:
                return None
            numbers.append(number)
    except Malformed:
        return None
    places, constants = tuple(p for p, _ in numbers), tuple(n for _, n in numbers)
    return Layout(step_width, places, constants) if numbers else None


def _spans(data: bytes, offset: int, end: int) -> Iterator[Span]:
    """Yield the fields of the message between two offsets. Raises Malformed."""
    while offset < end:
        key, offset = varint(data, offset)
        wire = key & 7
        if wire == VARINT:
            after = varint(data, offset)[1]
        elif wire == BYTES:
            size, offset = varint(data, offset)
            after = offset + size
        elif wire in {FIXED32, FIXED64}:
            after = offset + (4 if wire == FIXED32 else 8)
        else:
            raise Malformed
        if after > end:
            raise Malformed
        yield Span(key >> 3, wire, offset, after)
        offset = after


def _unique_fields(data: bytes, within: Span) -> dict[int, Span] | None:
    """Return a message's fields by their numbers; None where one is there twice."""
    spans = list(_spans(data, within.start, within.end))
    by_id = {span.id: span for span in spans}
    return by_id if len(by_id) == len(spans) else None


def _number(data: bytes, value: Span) -> tuple[Place, Number] | None:
    by_id = _unique_fields(data, value)
    if (
        by_id is None
        or ValueField.TAG not in by_id
        or not by_id.keys()
        <= {ValueField.TAG, ValueField.SIMPLE, ValueField.TENSOR, ValueField.METADATA}
    ):
        return None
    tag = data[by_id[ValueField.TAG].start : by_id[ValueField.TAG].end]
    if (
        not tag
        or tag.startswith(b"_hparams_/")
        or (ValueField.SIMPLE in by_id) == (ValueField.TENSOR in by_id)
    ):
        return None
    tensor = ValueField.TENSOR in by_id
    position = (
        _in_tensor(data, by_id[ValueField.TENSOR])
        if tensor
        else _fixed(by_id[ValueField.SIMPLE], 4)
    )
    if position is None:
        return None
    return position, Number(tag.decode(errors="replace"), tensor, ValueField.METADATA in by_id)


def _fixed(span: Span, size: int) -> Place | None:
    return Place(span.start, size) if span.end - span.start == size else None


def _in_tensor(data: bytes, tensor: Span) -> Place | None:
    """Return the offset of the number in a tensor of one float (type 1) or double (type 2)."""
    by_id = _unique_fields(data, tensor)
    if by_id is None or TensorField.DTYPE not in by_id or by_id[TensorField.DTYPE].wire != VARINT:
        return None
    kind = varint(data, by_id[TensorField.DTYPE].start)[0]
    if kind not in {1, 2} or not by_id.keys() <= {
        TensorField.DTYPE,
        TensorField.SHAPE,
        TensorField.CONTENT,
        kind + 4,
    }:
        return None
    if (
        TensorField.SHAPE in by_id
        and elements(data[by_id[TensorField.SHAPE].start : by_id[TensorField.SHAPE].end]) != 1
    ):
        return None
    number = (
        by_id.get(TensorField.CONTENT)
        or by_id.get(TensorField.FLOAT_VAL)
        or by_id.get(TensorField.DOUBLE_VAL)
    )
    if number is None or (
        TensorField.CONTENT in by_id
        and len(by_id.keys() - {TensorField.DTYPE, TensorField.SHAPE}) > 1
    ):
        return None
    return _fixed(number, 4 if kind == 1 else 8)
