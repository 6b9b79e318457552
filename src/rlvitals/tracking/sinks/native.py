"""Write the run's own column blocks and events: always on, and the only sink of every rank."""

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from rlvitals.storage import events
from rlvitals.storage.blocks import Writer
from rlvitals.storage.events import Event, Events
from rlvitals.storage.frames import Kind
from rlvitals.storage.open_folder import OpenFolder, append_rest
from rlvitals.storage.run_folder import BLOCKS_FOLDER, EVENTS_FILE
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking.sinks.sink import Opening, Rows, Sink
from rlvitals.types import Histogram, Table, Text

KIND_NAMES = {
    Kind.SCALARS: "rows",
    Kind.HISTOGRAM: "histograms",
    Kind.TEXT: "texts",
    Kind.TABLE: "tables",
    Kind.SETTINGS: "settings",
}
FILES_REMOVED = (
    "files of the run folder were removed while it was recorded:"
    " this process wrote its own again, what others wrote is lost"
)


class Native:
    """Writes blocks and events. Where the disk takes none, both wait, and the next flush tries.

    Where the run's folder is removed, it is made again with all that this process has written.
    """

    def __init__(self, opening: Opening, budget: Budget | None = None) -> None:
        """Open the block file of this attempt and rank. OSError."""
        self._name = f"{BLOCKS_FOLDER}/{opening.attempt}-{opening.rank}.rlv"
        path = opening.folder / self._name
        self._facts = {"attempt": opening.attempt}
        if opening.rank:
            self._facts["rank"] = opening.rank
        self._budget = Budget() if budget is None else budget
        durable = bool(opening.options.get("durable"))
        self._blocks = Writer(path, durable=durable, budget=self._budget)
        self._rows = self._blocks.rows() if durable else None
        self._folder = OpenFolder(opening.folder)
        self.events = Events(opening.folder / EVENTS_FILE, self._folder.open)
        self._events_fd = -1  # of the file as first opened: it can be read after a removal
        self._lines: deque[bytes] = deque()  # events that wait
        self._dropped_events = 0

    @property
    def pending(self) -> int:
        """Bytes that the system has not taken yet."""
        return self._blocks.pending + sum(map(len, self._lines))

    @property
    def dropped(self) -> Counter[str]:
        """Rows and other calls dropped because the disk was full for too long, by kind."""
        return _by_name(self._blocks.dropped) + Counter(events=self._dropped_events)

    @property
    def waiting(self) -> Counter[str]:
        """Rows and other calls that the system has not taken yet, by kind."""
        return _by_name(self._blocks.waiting) + Counter(events=len(self._lines))

    def row(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Hand one row to the system at once, from any thread; False where others go before it."""
        rows = self._rows
        return not self._blocks.pending and rows is not None and rows.write(step, time, row)

    def rename(self, names: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        """Write single rows under other names; called once for each layout."""
        if self._rows is not None:
            self._rows.rename = names

    def scalars(self, rows: Rows) -> None:
        """Take rows."""
        self._blocks.scalars(rows.keys, rows.steps, rows.times, rows.values.T)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Take one distribution."""
        self._blocks.histogram(key, histogram)

    def text(self, key: str, text: Text) -> None:
        """Take one text."""
        self._blocks.text(key, text)

    def table(self, key: str, table: Table) -> None:
        """Take rows of a table."""
        self._blocks.table(key, table)

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Take settings that changed at a step."""
        self._blocks.settings(step, time.time(), changed)

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Take an event and write it at once: events are few, and tell how a run ended."""
        facts = {**self._facts, **facts}
        logged_time = facts.pop("time", None)
        moment = float(logged_time) if isinstance(logged_time, int | float) else time.time()
        line = events.format_line(Event(kind, moment, step, facts))
        if kind == "finish" or self._budget.fits(len(line)):
            self._lines.append(line)
            self._budget.used += len(line)
        else:
            self._dropped_events += 1
        self._write_events()

    def flush(self) -> None:
        """Hand what waits to the operating system. OSError where it takes none."""
        if not self._folder.has(self._name, self._blocks.fd):
            self._folder.restore()
            fd, rows = self._blocks.fd, self._rows
            self._rows = None  # durable rows go by way of the thread, behind what is copied
            copy = self._folder.copy(fd, self._name)
            append_rest(fd, copy)  # a row that another thread was just writing
            self._blocks.replace(self._blocks.path, copy)
            if rows is not None:
                rows.close()
                with suppress(OSError):
                    self._rows = self._blocks.rows()
            if self._events_fd >= 0 and not self._folder.has(EVENTS_FILE, self._events_fd):
                with suppress(OSError):  # another rank of the run was faster
                    events_copy = self._folder.copy(self._events_fd, EVENTS_FILE)
                    os.close(self._events_fd)
                    self._events_fd = events_copy
            self.event("note", None, {"text": FILES_REMOVED, "count": 1})
            logging.getLogger(__name__).warning("%s: %s", self._folder.path, FILES_REMOVED)
        self._folder.remember()
        try:
            self._blocks.flush()
        finally:
            self._write_events()

    def close(self, status: str) -> None:  # noqa: ARG002 - the event of the end holds it
        """Flush and close. OSError."""
        try:
            self.flush()
        finally:
            if self._rows is not None:
                self._rows.close()
            try:
                if self._folder.has(self._name, self._blocks.fd):
                    self._blocks.close()
                else:
                    self._blocks.abandon()
            finally:
                self._folder.close()
                if self._events_fd >= 0:
                    os.close(self._events_fd)
                    self._events_fd = -1

    def _write_events(self) -> None:
        if not self._lines:
            return
        size = sum(map(len, self._lines))
        try:
            self.events.write(self._lines)
        finally:
            self._budget.used -= size - sum(map(len, self._lines))
        if self._events_fd < 0:
            self._events_fd = self._folder.open(EVENTS_FILE, os.O_RDONLY)


def _by_name(kinds: Counter[Kind]) -> Counter[str]:
    return Counter({KIND_NAMES[kind]: count for kind, count in kinds.items() if kind in KIND_NAMES})


SINK = Sink("native", "the run folder's own blocks", "", Native)
