"""Events read field by field: whatever no layout of scalars explains.

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
from rlvitals.readers.event_files.record_layout import METADATA, SIMPLE_VALUE, TAG, TENSOR, VALUE
from rlvitals.readers.event_files.sampled import Kept
from rlvitals.readers.event_files.tensors import scalar_of, texts_of
from rlvitals.readers.event_files.texts import settings_in
from rlvitals.readers.formats.columns import MAX_STEP, NAN
from rlvitals.readers.formats.protobuf import FLOAT, Malformed, double, fields, signed
from rlvitals.types import Histogram, Setting, Text

WALL_TIME, STEP, SUMMARY = 1, 2, 5  # Event
HISTOGRAM, NODE_NAME = 5, 7  # Summary.Value
PLUGIN_DATA, DATA_CLASS = 1, 4  # SummaryMetadata
PLUGIN_NAME = 1  # its PluginData
DATA_CLASS_SCALAR = 1
SCALARS_PLUGIN, HISTOGRAMS_PLUGIN, TEXT_PLUGIN = "scalars", "histograms", "text"
TEXT_SUFFIX = "/text_summary"  # torch's and tensorboardX's tags of texts
HISTOGRAMS = (512, 64 * 2**20)  # kept: of a tag, and bytes in all
TEXTS = (1000, 16 * 2**20)
SESSION_START = "_hparams_/session_start_info"

Form = Callable[[bytes, int, float], Histogram | None]


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
    """Collects what event payloads hold: scalars, histograms, texts and settings."""

    def __init__(self, plugins: Mapping[str, str]) -> None:
        """Start from what earlier events said of each tag: whose plugin it is for."""
        self.settings: dict[str, Setting] = {}
        self.histograms: Kept[Histogram] = Kept("histograms", *HISTOGRAMS)
        self.texts: Kept[Text] = Kept("texts", *TEXTS)
        self.plugins = dict(plugins)
        self.described: dict[str, int] = {}  # where in the window a tag was first described
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
        return [*notes, *self.histograms.notes(), *self.texts.notes()]

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
        found = {part.id: part.data for part in fields(data)}
        tag = (found.get(TAG) or found.get(NODE_NAME) or b"").decode(errors="replace")
        if not tag:
            return
        if METADATA in found:
            self._describe(tag, found[METADATA], place)
        if SIMPLE_VALUE in found:
            if len(found[SIMPLE_VALUE]) != FLOAT.size:
                raise Malformed
            self._point(tag, place, step, time, FLOAT.unpack(found[SIMPLE_VALUE])[0])
        elif HISTOGRAM in found:
            self._histogram(tag, found[HISTOGRAM], of_proto, step, time)
        elif TENSOR in found:
            self._tensor(tag, found[TENSOR], place, step, time)

    def _tensor(self, tag: str, data: bytes, place: int, step: int, time: float) -> None:
        plugin = self.plugins.get(tag)
        if plugin == HISTOGRAMS_PLUGIN:
            self._histogram(tag, data, of_tensor, step, time)
        elif plugin == TEXT_PLUGIN or (plugin is None and tag.endswith(TEXT_SUFFIX)):
            self._text(tag, data, step, time)
        elif plugin in {None, SCALARS_PLUGIN}:
            value = scalar_of(data)
            if value is not None:
                self._point(tag, place, step, time, value)
            elif plugin:
                self.refused[tag] = "tensors of more than one number are not read"

    def _point(self, tag: str, place: int, step: int, time: float, value: float) -> None:
        if abs(step) > MAX_STEP:
            self.refused[tag] = f"a step of {step} is not read"
            return
        points = self._points.setdefault(tag, Collected())
        points.places.append(place)
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

    def _describe(self, tag: str, metadata: bytes, place: int) -> None:
        if tag not in self.plugins:
            self.plugins[tag] = _plugin(metadata)
            self.described[tag] = place
        if tag == SESSION_START:
            self.settings |= settings_of(metadata)


def _plugin(metadata: bytes) -> str:
    """Return whose plugin a tag is for: the scalars' where it names none, or says scalars."""
    name, data_class = "", 0
    for part in fields(metadata):
        if part.id == DATA_CLASS:
            data_class = part.number
        elif part.id == PLUGIN_DATA:
            names = (f.data for f in fields(part.data) if f.id == PLUGIN_NAME)
            name = next(names, b"").decode(errors="replace")
    return SCALARS_PLUGIN if data_class == DATA_CLASS_SCALAR else name or SCALARS_PLUGIN
