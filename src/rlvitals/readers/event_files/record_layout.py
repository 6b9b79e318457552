"""Where the numbers of an event stand: the layout that many events of one length share.

An event as every known writer serializes it: `1 wall_time (double)`, `2 step (varint)` unless
it is 0, `5 summary` with one or more values, each a tag and either `2 simple_value` or
`8 tensor` with one float or double. Anything else has no layout and is read field by field.
Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rlvitals.readers.event_files.tensors import CONTENT, DTYPE, SHAPE, elements
from rlvitals.readers.formats.protobuf import BYTES, FIXED32, FIXED64, VARINT, Malformed, varint

TIME_KEY, STEP_KEY, SUMMARY_KEY = b"\x09", b"\x10", b"\x2a"
TIME_AT = 1  # the payload's offset of the time, 8 bytes
STEP_AT = 10  # of the step
VALUE, TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 1, 2, 8, 9
FLOAT, DOUBLE = 1, 2  # DataType
FLOAT_VAL, DOUBLE_VAL = 5, 6
SETTINGS_PREFIX = b"_hparams_/"


class Place(NamedTuple):
    """Where a number stands in a payload: its first byte, and 4 (float) or 8 (double) bytes."""

    at: int
    size: int


@dataclass(frozen=True, slots=True)
class Number:
    """What an event says of one of its numbers."""

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
        """Where the bytes are that vary from event to event."""
        return (Place(TIME_AT, 8), Place(STEP_AT, self.step_width), *self.places)


class Span(NamedTuple):
    """One field within a message: its number, its wire type and where its data stand."""

    id: int
    wire: int
    at: int
    end: int


def layout_of(payload: bytes) -> Layout | None:
    """Return an event's layout, None where it has none."""
    try:
        return _layout(payload)
    except Malformed:
        return None


def _layout(payload: bytes) -> Layout | None:
    if payload[:1] != TIME_KEY:
        return None
    at = STEP_AT - 1
    if payload[at : at + 1] == STEP_KEY:
        at = varint(payload, STEP_AT)[1]
    step_width = max(at - STEP_AT, 0)
    if payload[at : at + 1] != SUMMARY_KEY:
        return None
    size, at = varint(payload, at + 1)
    if at + size != len(payload):
        return None
    found = []
    for span in _spans(payload, at, len(payload)):
        number = _number(payload, span) if (span.id, span.wire) == (VALUE, BYTES) else None
        if number is None:
            return None
        found.append(number)
    if not found:
        return None
    return Layout(step_width, tuple(p for p, _ in found), tuple(n for _, n in found))


def _spans(data: bytes, at: int, end: int) -> Iterator[Span]:
    """Yield the fields of the message between two offsets. Raises Malformed."""
    while at < end:
        key, at = varint(data, at)
        wire = key & 7
        if wire == VARINT:
            after = varint(data, at)[1]
        elif wire == BYTES:
            size, at = varint(data, at)
            after = at + size
        elif wire in {FIXED32, FIXED64}:
            after = at + (4 if wire == FIXED32 else 8)
        else:
            raise Malformed
        if after > end:
            raise Malformed
        yield Span(key >> 3, wire, at, after)
        at = after


def _once(data: bytes, within: Span) -> dict[int, Span] | None:
    """Return a message's fields by their numbers; None where one is there twice."""
    spans = list(_spans(data, within.at, within.end))
    found = {span.id: span for span in spans}
    return found if len(found) == len(spans) else None


def _number(data: bytes, value: Span) -> tuple[Place, Number] | None:
    found = _once(data, value)
    if (
        found is None
        or TAG not in found
        or not found.keys() <= {TAG, SIMPLE_VALUE, TENSOR, METADATA}
    ):
        return None
    tag = data[found[TAG].at : found[TAG].end]
    if not tag or tag.startswith(SETTINGS_PREFIX) or (SIMPLE_VALUE in found) == (TENSOR in found):
        return None
    tensor = TENSOR in found
    place = _in_tensor(data, found[TENSOR]) if tensor else _fixed(found[SIMPLE_VALUE], 4)
    if place is None:
        return None
    return place, Number(tag.decode(errors="replace"), tensor, METADATA in found)


def _fixed(span: Span, size: int) -> Place | None:
    return Place(span.at, size) if span.end - span.at == size else None


def _in_tensor(data: bytes, tensor: Span) -> Place | None:
    """Return where the number of a tensor of one float or double stands."""
    found = _once(data, tensor)
    if found is None or DTYPE not in found or found[DTYPE].wire != VARINT:
        return None
    kind = varint(data, found[DTYPE].at)[0]
    if kind not in {FLOAT, DOUBLE} or not found.keys() <= {DTYPE, SHAPE, CONTENT, kind + 4}:
        return None
    if SHAPE in found and elements(data[found[SHAPE].at : found[SHAPE].end]) != 1:
        return None
    number = found.get(CONTENT) or found.get(FLOAT_VAL) or found.get(DOUBLE_VAL)
    if number is None or (CONTENT in found and len(found.keys() - {DTYPE, SHAPE}) > 1):
        return None
    return _fixed(number, 4 if kind == FLOAT else 8)
