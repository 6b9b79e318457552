"""Parse events field by field, where no scalar layout applies.

Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`, `types.proto`;
TensorBoard `plugins/hparams/plugin_data.proto`.
"""

from array import array
from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from rlvitals.errors import quantity
from rlvitals.readers.event_files.histograms import of_proto, of_tensor
from rlvitals.readers.event_files.hparams import settings_of
from rlvitals.readers.event_files.points import Piece
from rlvitals.readers.event_files.record_layout import ValueField
from rlvitals.readers.event_files.sampled import SampledItems
from rlvitals.readers.event_files.tensors import scalar_of, texts_of
from rlvitals.readers.event_files.texts import settings_in
from rlvitals.readers.formats.columns import MAX_STEP, NAN
from rlvitals.readers.formats.protobuf import FLOAT_STRUCT, Malformed, double, fields, to_signed
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Histogram, Setting, Text

SCALARS_PLUGIN = "scalars"

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
        """Start from the plugin of each tag in earlier events."""
        self.settings: dict[str, Setting] = {}
        # So many items of a tag and bytes in all are kept.
        self.histograms: SampledItems[Histogram] = SampledItems("histograms", 512, 64 * 2**20)
        self.texts: SampledItems[Text] = SampledItems("texts", 1000, 16 * 2**20)
        self.plugins = dict(plugins)
        self.described: dict[str, int] = {}  # where in the window a tag was first described
        self.malformed = 0  # events that are no protobuf
        self.refused: dict[str, str] = {}  # why, by tag
        self._points: dict[str, TagPoints] = {}

    def notes(self) -> list[str]:
        """Return notes for the user."""
        notes = (
            [f"{quantity(self.malformed, 'event')} could not be understood"]
            if self.malformed
            else []
        )
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
                match item.id:
                    case 5:  # summary
                        summaries.append(item.data)
                    case 2:  # step
                        step = to_signed(item.number)
                    case 1:  # wall_time
                        time = double(item)
            for summary in summaries:
                for item in fields(summary):
                    if item.id == 1:  # value
                        self._value(item.data, position, step, time)
                        position += 1
        except Malformed:
            self.malformed += 1

    def _value(self, data: bytes, position: int, step: int, time: float) -> None:
        by_id = {item.id: item.data for item in fields(data)}
        tag = (by_id.get(ValueField.TAG) or by_id.get(ValueField.NODE_NAME) or b"").decode(
            errors="replace"
        )
        if not tag:
            return
        if (metadata := by_id.get(ValueField.METADATA)) is not None:
            if tag not in self.plugins:
                self.plugins[tag] = _plugin(metadata)
                self.described[tag] = position
            if tag == "_hparams_/session_start_info":
                self.settings |= settings_of(metadata)
        if (simple := by_id.get(ValueField.SIMPLE)) is not None:
            if len(simple) != FLOAT_STRUCT.size:
                raise Malformed
            self._point(tag, position, step, time, FLOAT_STRUCT.unpack(simple)[0])
        elif (body := by_id.get(ValueField.HISTOGRAM)) is not None:
            self._histogram(tag, body, of_proto, step, time)
        elif (body := by_id.get(ValueField.TENSOR)) is not None:
            self._tensor(tag, body, position, step, time)

    def _tensor(self, tag: str, data: bytes, position: int, step: int, time: float) -> None:
        plugin = self.plugins.get(tag)
        if plugin == "histograms":
            self._histogram(tag, data, of_tensor, step, time)
        # The end of the tags that torch and tensorboardX give texts.
        elif plugin == "text" or (plugin is None and tag.endswith("/text_summary")):
            if abs(step) <= MAX_STEP and self.texts.wants(tag, len(data)):
                texts = texts_of(data)
                if texts is None:
                    self.refused[tag] = "a text that is no string is not read"
                else:
                    text = "\n".join(texts)
                    self.texts.add(tag, Text(step, time, text), len(data))
                    self.settings |= settings_in(text)
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


def _plugin(metadata: bytes) -> str:
    """Return whose plugin a tag is for: the scalars' where it names none, or says scalars."""
    name, data_class = "", 0
    for item in fields(metadata):
        match item.id:
            case 4:  # data_class
                data_class = item.number
            case 1:  # plugin_data, its plugin_name
                names = (f.data for f in fields(item.data) if f.id == 1)
                name = next(names, b"").decode(errors="replace")
    is_scalar = data_class == 1  # DATA_CLASS_SCALAR
    return SCALARS_PLUGIN if is_scalar else name or SCALARS_PLUGIN
