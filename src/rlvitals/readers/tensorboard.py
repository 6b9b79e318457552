"""TensorBoard event files: the scalars in every encoding their writers use.

`simple_value` (torch, tensorboardX), one-element tensors of any number type (TensorFlow 2, torch
with `new_style`), and the settings that `add_hparams` writes. Pictures, histograms and text are
passed over. Field numbers: TensorFlow `event.proto`, `summary.proto`, `tensor.proto`,
`types.proto`; TensorBoard `plugins/hparams/plugin_data.proto`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rlvitals.errors import UnreadableLog
from rlvitals.readers.columns import MAX_STEP, NAN, Columns
from rlvitals.readers.lines import REPLACED, Position, opened, place
from rlvitals.readers.protobuf import Malformed, double, fields, signed, single
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.readers.tensorboard_records import HEADER, Records, header_at
from rlvitals.readers.tensors import scalar_of
from rlvitals.records import Log, Setting

FILE_NAME = re.compile(r"(^|\.)tfevents(\.|$)")
FIRST_EVENT = b"brain.Event:"  # the version that every event file starts with
# Event
WALL_TIME, STEP, SUMMARY = 1, 2, 5
# Summary, Summary.Value
VALUE = 1
TAG, SIMPLE_VALUE, NODE_NAME, TENSOR, METADATA = 1, 2, 7, 8, 9
# SummaryMetadata, its PluginData
PLUGIN_DATA, DATA_CLASS = 1, 4
PLUGIN_NAME, PLUGIN_CONTENT = 1, 2
DATA_CLASS_SCALAR = 1
HPARAMS_TAG = "_hparams_/session_start_info"
# HParamsPluginData, SessionStartInfo, a map entry, google.protobuf.Value
SESSION_START = 3
HPARAMS = 1
MAP_KEY, MAP_VALUE = 1, 2
NUMBER_VALUE, STRING_VALUE, BOOL_VALUE = 2, 3, 4


@dataclass(frozen=True, slots=True)
class TensorBoardCursor:
    """Where to go on, and what was said once: a tag's first event alone names its plugin."""

    position: Position
    is_scalar: Mapping[str, bool] = field(default_factory=dict)  # by tag


def claims(path: Path, head: bytes) -> bool:
    """Claim what is named like an event file and not empty, or starts like one."""
    if header_at(head) is not None and FIRST_EVENT in head[HEADER.size : HEADER.size + 64]:
        return True
    return bool(head) and FILE_NAME.search(path.name) is not None


def read(path: Path, since: Cursor | None) -> tuple[Log, Cursor]:
    """Read the events after a cursor. Raises UnreadableLog where no record is intact."""
    cursor = since if isinstance(since, TensorBoardCursor) else TensorBoardCursor(Position())
    with opened(path) as file:
        start = cursor.position
        replaced = place(file, start.offset) != start
        if replaced:
            cursor = TensorBoardCursor(Position())
        records = Records(file, cursor.position.offset)
        events = Events(cursor.is_scalar)
        for payload in records:
            events.take(payload)
        if records.offset == 0 and records.unsure >= HEADER.size and not _starts_well(file):
            _refuse(path)
        end = TensorBoardCursor(place(file, records.offset), events.is_scalar)
    notes = [REPLACED] if replaced else []
    notes += [*records.notes(), *events.notes()]
    series = events.columns.series()
    return Log("tensorboard", series, events.settings, tuple(notes), str(path)), end


def _starts_well(file: BinaryIO) -> bool:
    file.seek(0)
    return header_at(file.read(HEADER.size)) is not None


def _refuse(path: Path) -> None:
    raise UnreadableLog(
        "not a TensorBoard event file: no record in it is intact",
        where=str(path),
        hint="copy it again from where the run wrote it",
    )


def _wants_scalar(metadata: bytes) -> bool:
    """Tell whether a tag's tensors are the scalars plugin's, or nobody's in particular."""
    name, data_class = b"", 0
    for part in fields(metadata):
        if part.id == DATA_CLASS:
            data_class = part.number
        elif part.id == PLUGIN_DATA:
            name = next((f.data for f in fields(part.data) if f.id == PLUGIN_NAME), b"")
    return data_class == DATA_CLASS_SCALAR or name in {b"scalars", b""}


def _settings(metadata: bytes) -> dict[str, Setting]:
    """Return the settings that a session's start record holds; empty for any other metadata."""
    settings: dict[str, Setting] = {}
    for path_end in _within(metadata, PLUGIN_DATA, PLUGIN_CONTENT, SESSION_START, HPARAMS):
        key, value = "", b""
        for part in fields(path_end):
            if part.id == MAP_KEY:
                key = part.data.decode(errors="replace")
            elif part.id == MAP_VALUE:
                value = part.data
        for part in fields(value):
            if part.id == NUMBER_VALUE:
                settings[key] = double(part)
            elif part.id == STRING_VALUE:
                settings[key] = part.data.decode(errors="replace")
            elif part.id == BOOL_VALUE:
                settings[key] = bool(part.number)
    return settings


def _within(message: bytes, *path: int) -> list[bytes]:
    """Return the submessages that a path of field numbers leads to."""
    messages = [message]
    for number in path:
        messages = [f.data for m in messages for f in fields(m) if f.id == number]
    return messages


class Events:
    """Collects the scalars and settings of event payloads."""

    def __init__(self, is_scalar: Mapping[str, bool]) -> None:
        """Start from what earlier events said of each tag's tensors."""
        self.columns = Columns()
        self.settings: dict[str, Setting] = {}
        self.is_scalar = dict(is_scalar)
        self.malformed = 0  # events that are no protobuf
        self.refused: dict[str, str] = {}  # why, by tag

    def notes(self) -> list[str]:
        """Say what a person should know of these events."""
        notes = [f"{self.malformed} events could not be understood"] if self.malformed else []
        if self.refused:
            tag, why = next(iter(self.refused.items()))
            others = len(self.refused) - 1
            notes.append(f"{tag}: {why}" + (f" ({others} more tags)" if others else ""))
        return notes

    def take(self, payload: bytes) -> None:
        """Add one event."""
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
                        self._value(part.data, step, time)
        except Malformed:
            self.malformed += 1

    def _value(self, data: bytes, step: int, time: float) -> None:
        found = {field.id: field for field in fields(data)}
        name = found.get(TAG) or found.get(NODE_NAME)
        if name is None or not name.data:
            return
        tag = name.data.decode(errors="replace")
        if METADATA in found:
            self._describe(tag, found[METADATA].data)
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
            self.columns.add(tag, step, value, time)

    def _describe(self, tag: str, metadata: bytes) -> None:
        if tag not in self.is_scalar:
            self.is_scalar[tag] = _wants_scalar(metadata)
        if tag == HPARAMS_TAG:
            self.settings |= _settings(metadata)


READER = Reader(
    name="tensorboard",
    title="TensorBoard event file",
    looks_for="events.out.tfevents.*",
    example="runs/ppo/events.out.tfevents.1758154414.host.62338.0",
    files=("*tfevents*",),
    claims=claims,
    read=read,
)
