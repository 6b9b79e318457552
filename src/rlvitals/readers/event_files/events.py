"""Events read field by field: whatever no layout of scalars explains.

Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`, `types.proto`;
TensorBoard `plugins/hparams/plugin_data.proto`.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rlvitals.readers.columns import MAX_STEP, NAN
from rlvitals.readers.event_files.layouts import METADATA, SIMPLE_VALUE, TAG, TENSOR, VALUE
from rlvitals.readers.event_files.points import Piece
from rlvitals.readers.event_files.session import settings_of
from rlvitals.readers.protobuf import Malformed, double, fields, signed, single
from rlvitals.readers.tensors import scalar_of
from rlvitals.records import Setting

WALL_TIME, STEP, SUMMARY = 1, 2, 5  # Event
NODE_NAME = 7  # Summary.Value
PLUGIN_DATA, DATA_CLASS = 1, 4  # SummaryMetadata
PLUGIN_NAME = 1  # its PluginData
DATA_CLASS_SCALAR = 1
SESSION_START = "_hparams_/session_start_info"


@dataclass(slots=True)
class Collected:
    """Points of one tag, one by one."""

    places: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[float]" = field(default_factory=lambda: array("d"))
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def piece(self) -> Piece:
        """Return the points as columns."""
        return Piece(
            np.array(self.places, np.int64),
            np.array(self.times),
            np.array(self.steps, np.int64),
            np.array(self.values),
        )


class Events:
    """Collects the scalars and settings of event payloads."""

    def __init__(self, is_scalar: Mapping[str, bool]) -> None:
        """Start from what earlier events said of each tag's tensors."""
        self.settings: dict[str, Setting] = {}
        self.is_scalar = dict(is_scalar)
        self.described: dict[str, int] = {}  # where the file first said so, by tag
        self.malformed = 0  # events that are no protobuf
        self.refused: dict[str, str] = {}  # why, by tag
        self._points: dict[str, Collected] = {}

    def notes(self) -> list[str]:
        """Say what a person should know of these events."""
        notes = [f"{self.malformed} events could not be understood"] if self.malformed else []
        if self.refused:
            tag, why = next(iter(self.refused.items()))
            others = len(self.refused) - 1
            notes.append(f"{tag}: {why}" + (f" ({others} more tags)" if others else ""))
        return notes

    def points(self) -> dict[str, Piece]:
        """Return the points collected since the last call, by tag."""
        points = {tag: collected.piece() for tag, collected in self._points.items()}
        self._points = {}
        return points

    def take(self, payload: bytes, place: int) -> None:
        """Add one event, whose record starts at an offset of the file."""
        time, step, summaries = NAN, 0, []
        try:
            for part in fields(payload):
                if part.id == SUMMARY:
                    summaries.append(part.data)
                elif part.id == STEP:
                    step = signed(part.number)
                elif part.id == WALL_TIME:
                    time = double(part)
            for summary in summaries:
                for part in fields(summary):
                    if part.id == VALUE:
                        self._value(part.data, place, step, time)
                        place += 1
        except Malformed:
            self.malformed += 1

    def _value(self, data: bytes, place: int, step: int, time: float) -> None:
        found = {part.id: part for part in fields(data)}
        name = found.get(TAG) or found.get(NODE_NAME)
        if name is None or not name.data:
            return
        tag = name.data.decode(errors="replace")
        if METADATA in found:
            self._describe(tag, found[METADATA].data, place)
        if SIMPLE_VALUE in found:
            value: float | None = single(found[SIMPLE_VALUE])
        elif TENSOR in found and self.is_scalar.get(tag, True):
            value = scalar_of(found[TENSOR].data)
        else:
            return
        if value is None:
            if self.is_scalar.get(tag):
                self.refused[tag] = "tensors of more than one number are not read"
        elif abs(step) > MAX_STEP:
            self.refused[tag] = f"a step of {step} is not read"
        else:
            points = self._points.setdefault(tag, Collected())
            points.places.append(place)
            points.times.append(time)
            points.steps.append(step)
            points.values.append(value)

    def _describe(self, tag: str, metadata: bytes, place: int) -> None:
        if tag not in self.is_scalar:
            self.is_scalar[tag] = _wants_scalar(metadata)
            self.described[tag] = place
        if tag == SESSION_START:
            self.settings |= settings_of(metadata)


def _wants_scalar(metadata: bytes) -> bool:
    """Tell whether a tag's tensors are the scalars plugin's, or nobody's in particular."""
    name, data_class = b"", 0
    for part in fields(metadata):
        if part.id == DATA_CLASS:
            data_class = part.number
        elif part.id == PLUGIN_DATA:
            name = next((f.data for f in fields(part.data) if f.id == PLUGIN_NAME), b"")
    return data_class == DATA_CLASS_SCALAR or name in {b"scalars", b""}
