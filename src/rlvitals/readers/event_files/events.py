"""Parse events field by field, where no scalar layout applies.

Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`, `types.proto`;
TensorBoard `plugins/hparams/plugin_data.proto`.
"""

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rlvitals.readers.event_files.histograms import of_proto, of_tensor
from rlvitals.readers.event_files.hparams import settings_of
from rlvitals.readers.event_files.points import Piece
from rlvitals.readers.event_files.record_layout import (
    SUMMARY_VALUE,
    VALUE_METADATA,
    VALUE_SIMPLE,
    VALUE_TAG,
    VALUE_TENSOR,
)
from rlvitals.readers.event_files.sampled import SampledItems
from rlvitals.readers.event_files.tensors import scalar_of, texts_of
from rlvitals.readers.event_files.texts import settings_in
from rlvitals.readers.formats.columns import MAX_STEP, NAN
from rlvitals.readers.formats.protobuf import FLOAT_STRUCT, Malformed, double, fields, to_signed
from rlvitals.types import Histogram, Setting, Text

EVENT_WALL_TIME, EVENT_STEP, EVENT_SUMMARY = 1, 2, 5  # Event
VALUE_HISTOGRAM, VALUE_NODE_NAME = 5, 7  # Summary.Value
METADATA_PLUGIN_DATA, METADATA_DATA_CLASS = 1, 4  # SummaryMetadata
PLUGIN_DATA_NAME = 1  # its PluginData
DATA_CLASS_SCALAR = 1
SCALARS_PLUGIN, HISTOGRAMS_PLUGIN, TEXT_PLUGIN = "scalars", "histograms", "text"
TEXT_SUFFIX = "/text_summary"  # torch's and tensorboardX's tags of texts
HISTOGRAM_LIMITS = (512, 64 * 2**20)  # kept: of a tag, and bytes in all
TEXT_LIMITS = (1000, 16 * 2**20)
SESSION_START_TAG = "_hparams_/session_start_info"

Form = Callable[[bytes, int, float], Histogram | None]


@dataclass(slots=True)
class TagPoints:
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
    """Collects what event payloads hold: scalars, histograms, texts and settings."""

    def __init__(self, plugins: Mapping[str, str]) -> None:
        """Start from what earlier events said of each tag: whose plugin it is for."""
        self.settings: dict[str, Setting] = {}
        self.histograms: SampledItems[Histogram] = SampledItems("histograms", *HISTOGRAM_LIMITS)
        self.texts: SampledItems[Text] = SampledItems("texts", *TEXT_LIMITS)
        self.plugins = dict(plugins)
        self.described: dict[str, int] = {}  # where in the window a tag was first described
        self.malformed = 0  # events that are no protobuf
        self.refused: dict[str, str] = {}  # why, by tag
        self._points: dict[str, TagPoints] = {}

    def notes(self) -> list[str]:
        """Return notes for the user."""
        notes = [f"{self.malformed} events could not be understood"] if self.malformed else []
        if self.refused:
            tag, reason = next(iter(self.refused.items()))
            more_tags = len(self.refused) - 1
            notes.append(f"{tag}: {reason}" + (f" ({more_tags} more tags)" if more_tags else ""))
        return [*notes, *self.histograms.notes(), *self.texts.notes()]

    def points(self) -> dict[str, Piece]:
        """Return the points collected since the last call, by tag."""
        points = {tag: collected.piece() for tag, collected in self._points.items()}
        self._points = {}
        return points

    def take(self, payload: bytes, position: int) -> None:
        """Add one event, whose record starts at an offset of the file."""
        time, step, summaries = NAN, 0, []
        try:
            for item in fields(payload):
                if item.id == EVENT_SUMMARY:
                    summaries.append(item.data)
                elif item.id == EVENT_STEP:
                    step = to_signed(item.number)
                elif item.id == EVENT_WALL_TIME:
                    time = double(item)
            for summary in summaries:
                for item in fields(summary):
                    if item.id == SUMMARY_VALUE:
                        self._value(item.data, position, step, time)
                        position += 1
        except Malformed:
            self.malformed += 1

    def _value(self, data: bytes, position: int, step: int, time: float) -> None:
        by_id = {item.id: item.data for item in fields(data)}
        tag = (by_id.get(VALUE_TAG) or by_id.get(VALUE_NODE_NAME) or b"").decode(errors="replace")
        if not tag:
            return
        if VALUE_METADATA in by_id:
            self._describe(tag, by_id[VALUE_METADATA], position)
        if VALUE_SIMPLE in by_id:
            if len(by_id[VALUE_SIMPLE]) != FLOAT_STRUCT.size:
                raise Malformed
            self._point(tag, position, step, time, FLOAT_STRUCT.unpack(by_id[VALUE_SIMPLE])[0])
        elif VALUE_HISTOGRAM in by_id:
            self._histogram(tag, by_id[VALUE_HISTOGRAM], of_proto, step, time)
        elif VALUE_TENSOR in by_id:
            self._tensor(tag, by_id[VALUE_TENSOR], position, step, time)

    def _tensor(self, tag: str, data: bytes, position: int, step: int, time: float) -> None:
        plugin = self.plugins.get(tag)
        if plugin == HISTOGRAMS_PLUGIN:
            self._histogram(tag, data, of_tensor, step, time)
        elif plugin == TEXT_PLUGIN or (plugin is None and tag.endswith(TEXT_SUFFIX)):
            self._text(tag, data, step, time)
        elif plugin in {None, SCALARS_PLUGIN}:
            value = scalar_of(data)
            if value is not None:
                self._point(tag, position, step, time, value)
            elif plugin:
                self.refused[tag] = "tensors of more than one number are not read"

    def _point(self, tag: str, position: int, step: int, time: float, value: float) -> None:
        if abs(step) > MAX_STEP:
            self.refused[tag] = f"a step of {step} is not read"
            return
        points = self._points.setdefault(tag, TagPoints())
        points.places.append(position)
        points.times.append(time)
        points.steps.append(step)
        points.values.append(value)

    def _histogram(self, tag: str, data: bytes, form: Form, step: int, time: float) -> None:
        if abs(step) <= MAX_STEP and self.histograms.wants(tag, len(data)):
            histogram = form(data, step, time)
            if histogram is None:
                self.refused[tag] = "a histogram without buckets is not read"
            else:
                self.histograms.add(tag, histogram, len(data))

    def _text(self, tag: str, data: bytes, step: int, time: float) -> None:
        if abs(step) <= MAX_STEP and self.texts.wants(tag, len(data)):
            texts = texts_of(data)
            if texts is None:
                self.refused[tag] = "a text that is no string is not read"
            else:
                text = "\n".join(texts)
                self.texts.add(tag, Text(step, time, text), len(data))
                self.settings |= settings_in(text)

    def _describe(self, tag: str, metadata: bytes, position: int) -> None:
        if tag not in self.plugins:
            self.plugins[tag] = _plugin(metadata)
            self.described[tag] = position
        if tag == SESSION_START_TAG:
            self.settings |= settings_of(metadata)


def _plugin(metadata: bytes) -> str:
    """Return whose plugin a tag is for: the scalars' where it names none, or says scalars."""
    name, data_class = "", 0
    for item in fields(metadata):
        if item.id == METADATA_DATA_CLASS:
            data_class = item.number
        elif item.id == METADATA_PLUGIN_DATA:
            names = (f.data for f in fields(item.data) if f.id == PLUGIN_DATA_NAME)
            name = next(names, b"").decode(errors="replace")
    return SCALARS_PLUGIN if data_class == DATA_CLASS_SCALAR else name or SCALARS_PLUGIN
