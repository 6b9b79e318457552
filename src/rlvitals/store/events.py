"""What happened to a run: one line of JSON each, appended with one write.

Processes and threads append to one file without a lock. A line that a killed process left torn
is skipped; one that is still being written is left for the next call.
"""

import json
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals import redact
from rlvitals.store import payloads

MARK_BYTES = 256  # of the file's beginning: one that begins otherwise is another file


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    kind: str
    time: float  # seconds since the epoch
    step: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventCursor:
    """Where to go on in a file of events."""

    offset: int = 0
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class EventScan:
    """The events since a cursor."""

    events: tuple[Event, ...]
    skipped: int  # lines that are none
    cursor: EventCursor


class Events:
    """Appends events to one file; opened at each, so that a fork or a full disk harms nothing."""

    def __init__(self, path: Path) -> None:
        """Say where the file is; it is made with its first event."""
        self.path = path

    def append(self, kind: str, step: int | None = None, **facts: object) -> None:
        """Append an event, now. OSError where the disk takes none."""
        self.append_all([Event(kind, clock.time(), step, facts)])

    def append_all(self, events: list[Event]) -> None:
        """Append events in one write. OSError where the disk takes none."""
        text = "".join(_line(event) for event in events).encode()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        file = os.open(self.path, flags, 0o644)
        try:
            if not _ends_whole(file):
                text = b"\n" + text  # what a killed process left torn stays a line of its own
            while text:
                text = text[os.write(file, text) :]
        finally:
            os.close(file)


def append(path: Path, kind: str, step: int | None = None, **facts: object) -> None:
    """Append an event to a file. OSError where the disk takes none."""
    Events(path).append(kind, step, **facts)


def read(path: Path, cursor: EventCursor | None = None) -> EventScan:
    """Read the whole lines since a cursor; no file is no events. Raises OSError."""
    since = cursor or EventCursor()
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(MARK_BYTES)
            if not head.startswith(since.head):
                since = EventCursor()
            file.seek(since.offset)
            data = file.readall() or b""
    except FileNotFoundError:
        return EventScan((), 0, EventCursor())
    whole = data[: data.rfind(b"\n") + 1]
    found, skipped = [], 0
    for line in whole.splitlines():
        event = _event(line)
        if event is not None:
            found.append(event)
        elif line.strip():
            skipped += 1
    mark = head if len(head) > len(since.head) else since.head
    end = since.offset + len(whole)
    return EventScan(tuple(found), skipped, EventCursor(end, mark[:end]))


def _line(event: Event) -> str:
    """Write an event as a line without secrets, whoever appends it."""
    said = {**redact.written(event.facts), "event": redact.text(event.kind), "time": event.time}
    if event.step is not None:
        said["step"] = event.step
    return json.dumps(said, default=payloads.plain, separators=(",", ":")) + "\n"


def _event(line: bytes) -> Event | None:
    try:
        said = json.loads(line)
        kind, time, step = said.pop("event"), said.pop("time"), said.pop("step", None)
        return Event(str(kind), float(time), None if step is None else int(step), said)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _ends_whole(file: int) -> bool:
    size = os.fstat(file).st_size
    if not size:
        return True
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) == b"\n"
