"""Read TensorBoard event files in every encoding that writers use.

Scalars: `simple_value` (torch, tensorboardX) and one-element tensors of any number type
(TensorFlow 2, torch with `new_style`). Histograms and texts, as torch and TensorFlow 2 write
them. Settings: of `add_hparams`, and CleanRL's table of hyperparameters.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.errors import UnreadableLog
from rlvitals.readers.event_files.contents import Contents
from rlvitals.readers.event_files.framing import RECORD_HEADER, header_at
from rlvitals.readers.event_files.scalars import WINDOW_SLACK_BYTES
from rlvitals.readers.event_files.stream import Stream
from rlvitals.readers.formats.lines import (
    REPLACED_NOTE,
    Position,
    is_replaced,
    open_log,
    position_at,
)
from rlvitals.readers.reader import Cursor, Reader
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.types import Log


@dataclass(frozen=True, slots=True)
class TensorBoardCursor:
    """Position to resume from, and the plugin of each tag, which only its first event names."""

    position: Position
    plugins: Mapping[str, str] = field(default_factory=dict)  # by tag


def claims(path: Path, head: bytes) -> bool:
    """Claim what is named like an event file and not empty, or starts like one."""
    if (
        header_at(head) is not None
        # The version that every event file starts with.
        and b"brain.Event:" in head[RECORD_HEADER.size : RECORD_HEADER.size + 64]
    ):
        return True
    return bool(head) and re.search(r"(^|\.)tfevents(\.|$)", path.name) is not None


def read(path: Path, previous: Cursor | None) -> tuple[Log, Cursor]:
    """Read the events after a cursor. Raises UnreadableLog where no record is intact."""
    cursor = previous if isinstance(previous, TensorBoardCursor) else TensorBoardCursor(Position())
    with open_log(path) as file:
        replaced = is_replaced(file, cursor.position)
        if replaced:
            cursor = TensorBoardCursor(Position())
        stream = Stream(file, cursor.position.offset, WINDOW_SLACK_BYTES)
        contents = Contents(cursor.plugins)
        stream.read(contents.take)
        if stream.offset == 0 and stream.unsure >= RECORD_HEADER.size:
            file.seek(0)
            if header_at(file.read(RECORD_HEADER.size)) is None:
                raise UnreadableLog(
                    "not a TensorBoard event file: no record in it is intact",
                    where=str(path),
                    hint="copy it again from where the run wrote it",
                )
        events = contents.events
        end = TensorBoardCursor(position_at(file, stream.offset), events.plugins)
    notes = [REPLACED_NOTE] if replaced else []
    notes += [*stream.notes(), *events.notes()]
    log = Log(
        "tensorboard",
        contents.points.series(),
        events.settings,
        tuple(notes),
        str(path),
        histograms=events.histograms.items(),
        texts=events.texts.items(),
    )
    return log, end


READER = Reader(
    name="tensorboard",
    title="TensorBoard event file",
    looks_for="events.out.tfevents.*",
    example="runs/ppo/events.out.tfevents.1758154414.host.62338.0",
    files=("*tfevents*",),
    claims=claims,
    read=read,
    in_parts=True,
)
