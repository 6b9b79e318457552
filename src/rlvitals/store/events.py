"""What happened to a run: one line of JSON each, appended with one write.

Processes and threads append to one file without a lock. A line that a killed process left torn
is skipped; one that is still being written is left for the next call.
"""

import json
import os
import time as clock
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

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

    def __init__(self, path: Path, opener: Callable[[str, int], int] = os.open) -> None:
        """Say where the file is; it is made with its first event. `opener` is as of `open`."""
        self.path = path
        self._opener = opener

    def append(self, kind: str, step: int | None = None, **facts: object) -> None:
        """Append an event, now. OSError where the disk takes none."""
        self.write(deque([line(Event(kind, clock.time(), step, facts))]))

    def write(self, lines: deque[bytes]) -> None:
        """Append lines in one write; each leaves the queue once it is whole in the file. OSError.

        After an OSError those that are left can be written again: none stands there twice.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        file = self._opener(str(self.path), flags)
        data = rest = b"".join(lines)
        try:
            if not _ends_whole(file):
                os.write(file, b"\n")  # what a killed process left torn stays a line of its own
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
            done = len(data) - len(rest)
            while lines and done >= len(lines[0]):
                done -= len(lines.popleft())


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
    for text in whole.splitlines():
        event = _event(text)
        if event is not None:
            found.append(event)
        elif text.strip():
            skipped += 1
    mark = head if len(head) > len(since.head) else since.head
    end = since.offset + len(whole)
    return EventScan(tuple(found), skipped, EventCursor(end, mark[:end]))


def line(event: Event) -> bytes:
    """Lay out an event as a line of JSON. Raises ValueError, RecursionError."""
    said = {**event.facts, "event": event.kind, "time": event.time}
    if event.step is not None:
        said["step"] = event.step
    return json.dumps(said, default=payloads.plain, separators=(",", ":")).encode() + b"\n"


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
