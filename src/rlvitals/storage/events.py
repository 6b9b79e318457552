"""Read and append the events of a run, one JSON object per line.

Processes and threads append to one file without a lock. A line that a killed process left torn
is skipped; one that is still being written is left for the next call.
"""

import json
import os
import time as clock
from collections import deque
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.storage import payloads, redact, typed
from rlvitals.storage.safe_files import Opener, open_append, open_regular
from rlvitals.storage.typed import Fields

# The facts of our own events that readers use, with the types that they rely on.
FACT_TYPES = {
    "attempt": typed.count,
    "rank": typed.count,
    "count": typed.count,
    "exit_code": typed.integer,
    "status": typed.text,
    "reason": typed.text,
    "signal": typed.text,
    "traceback": typed.text,
    "text": typed.text,
}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run."""

    kind: str
    time: float  # seconds since the epoch
    step: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventCursor:
    """The position in a file of events."""

    offset: int = 0
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class EventScan:
    """The events since a cursor."""

    events: tuple[Event, ...]
    skipped: int  # lines that are none
    cursor: EventCursor
    wrong: tuple[str, ...] = ()  # fields that were dropped, in words


class Events:
    """Appends events to a file, opened for each: a fork or a full disk does no harm."""

    def __init__(self, path: Path, opener: Opener = os.open) -> None:
        """Set the path; the first event creates the file. `opener` is like `os.open`."""
        self.path = path
        self._opener = opener

    def append(self, kind: str, step: int | None = None, **facts: object) -> None:
        """Append an event, now. OSError where the disk takes none."""
        self.write(deque([format_line(Event(kind, clock.time(), step, facts))]))

    def write(self, lines: deque[bytes]) -> None:
        """Append lines in one write; each leaves the queue once it is completely written. OSError.

        After an OSError the remaining lines can be written again: none is written twice.
        """
        file = open_append(self.path, os.O_RDWR, opener=self._opener)
        data = remaining = b"".join(lines)
        try:
            if not _ends_with_newline(file):
                os.write(file, b"\n")  # a torn line of a killed process stays separate
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
        finally:
            os.close(file)
            written = len(data) - len(remaining)
            while lines and written >= len(lines[0]):
                written -= len(lines.popleft())


def append(path: Path, kind: str, step: int | None = None, **facts: object) -> None:
    """Append an event to a file. OSError where the disk takes none."""
    Events(path).append(kind, step, **facts)


def read(path: Path, cursor: EventCursor | None = None) -> EventScan:
    """Read the complete lines since a cursor; a missing file has no events. Raises OSError."""
    start = cursor or EventCursor()
    try:
        with open_regular(path) as file:
            # A file with another beginning is another file.
            head = file.read(256)
            if not head.startswith(start.head):
                start = EventCursor()
            file.seek(start.offset)
            data = file.readall() or b""
    except FileNotFoundError:
        return EventScan((), 0, EventCursor())
    complete = data[: data.rfind(b"\n") + 1]
    events, skipped, wrong = [], 0, []
    for text in complete.splitlines():
        event, dropped = _parse_event(text)
        wrong += dropped
        if event is not None:
            events.append(event)
        elif text.strip():
            skipped += 1
    new_head = head if len(head) > len(start.head) else start.head
    end = start.offset + len(complete)
    cursor = EventCursor(end, new_head[:end])
    return EventScan(tuple(events), skipped, cursor, tuple(wrong))


def format_line(event: Event) -> bytes:
    """Encode an event as a line of JSON without secrets. Raises ValueError, RecursionError."""
    record = {
        **redact.clean_mapping(event.facts),
        "event": redact.text(event.kind),
        "time": event.time,
    }
    if event.step is not None:
        record["step"] = event.step
    return json.dumps(record, default=payloads.plain, separators=(",", ":")).encode() + b"\n"


def _parse_event(line: bytes) -> tuple[Event | None, list[str]]:
    """Parse a line and name its fields of a wrong type. None without a kind and a time."""
    try:
        record = Fields(typed.load(line), "an event")
        kind, time = typed.text(record.values["event"]), typed.moment(record.values["time"])
    except (ValueError, KeyError):
        return None, []
    record.where = f"event {kind}"
    step = None if record.values.get("step") is None else record.take("step", typed.integer, None)
    extra = {
        key: item for key, item in record.values.items() if key not in {"event", "time", "step"}
    }
    facts = record.tidy(extra)
    for name in (
        facts.keys() & FACT_TYPES.keys()
        if kind in {"note", "start", "finish", "exit", "exception", "crash", "asked"}
        else ()
    ):
        if facts[name] is not None and record.take(name, FACT_TYPES[name], None) is None:
            del facts[name]
    return Event(kind, time, step, facts), record.wrong


def _ends_with_newline(file: int) -> bool:
    size = os.fstat(file).st_size
    if not size:
        return True
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) == b"\n"
