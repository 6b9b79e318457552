"""The run's own column blocks and events: always on, and the one sink that each rank has."""

import time
from collections.abc import Callable, Mapping

from rlvitals.recording.sinks.sink import Opening, Rows, Sink
from rlvitals.records import Histogram, Table, Text
from rlvitals.store.blocks import Writer
from rlvitals.store.events import Event, Events
from rlvitals.store.run_folder import BLOCKS, EVENTS_FILE

MAX_EVENTS = 10_000  # kept while the disk takes none


class Native:
    """Writes blocks and events. Where the disk takes none, both wait, and the next flush tries."""

    def __init__(self, opening: Opening) -> None:
        """Open the block file of this attempt and rank. OSError."""
        path = opening.folder / BLOCKS / f"{opening.attempt}-{opening.rank}.rlv"
        self._facts = {"attempt": opening.attempt}
        if opening.rank:
            self._facts["rank"] = opening.rank
        self._blocks = Writer(path, durable=bool(opening.options.get("durable")))
        self._rows = self._blocks.rows() if self._blocks.durable else None
        self._events = Events(opening.folder / EVENTS_FILE)
        self._waiting: list[Event] = []

    @property
    def dropped(self) -> int:
        """Rows given up because the disk took none for too long."""
        return self._blocks.dropped

    def row(self, step: int, time: float, row: Mapping[str, object]) -> bool:
        """Hand one row to the system at once, from any thread; False where others go before it."""
        return (
            not self._blocks.pending
            and self._rows is not None
            and self._rows.write(step, time, row)
        )

    def rename(self, names: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        """Write single rows under other names: asked once for each layout."""
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
        said = {**self._facts, **facts}
        at = said.pop("time", None)
        moment = float(at) if isinstance(at, int | float) else time.time()
        if len(self._waiting) < MAX_EVENTS:
            self._waiting.append(Event(kind, moment, step, said))
        self._write_events()

    def flush(self) -> None:
        """Hand what waits to the operating system. OSError where it takes none."""
        try:
            self._blocks.flush()
        finally:
            self._write_events()

    def close(self, status: str) -> None:  # noqa: ARG002 - the event of the end holds it
        """Flush and close. OSError."""
        try:
            self._write_events()
        finally:
            if self._rows is not None:
                self._rows.close()
            self._blocks.close()

    def _write_events(self) -> None:
        if self._waiting:
            self._events.append_all(self._waiting)
            self._waiting = []


SINK = Sink("native", "the run folder's own blocks", "", Native)
