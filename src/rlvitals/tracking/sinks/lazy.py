"""Sinks that their first call opens: `start` neither waits for a service nor fails with it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from rlvitals.errors import UsageError
from rlvitals.tracking.sinks.sink import Opening, OpenSink, Rows
from rlvitals.types import Histogram, Table, Text

PAUSE = 30.0  # seconds until a sink that could not be opened is tried again


@dataclass(slots=True)
class LazySink:
    """A sink that is not open yet, or that could not be opened: then every call raises why."""

    start: Callable[[Opening], OpenSink]
    opening: Opening
    pause: float
    writing: OpenSink | None = None
    problem: Exception | None = None
    again: float = 0.0  # when it is tried once more, on the monotonic clock

    def scalars(self, rows: Rows) -> None:
        """Write rows."""
        self._opened().scalars(rows)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Write a histogram."""
        self._opened().histogram(key, histogram)

    def text(self, key: str, text: Text) -> None:
        """Write a text."""
        self._opened().text(key, text)

    def table(self, key: str, table: Table) -> None:
        """Write a table."""
        self._opened().table(key, table)

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Write changed settings."""
        self._opened().settings(step, changed)

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Write an event."""
        self._opened().event(kind, step, facts)

    def flush(self) -> None:
        """Flush it where it is open."""
        if self.writing is not None:
            self.writing.flush()

    def close(self, status: str) -> None:
        """Close it where it is open."""
        if self.writing is not None:
            self.writing.close(status)

    def _opened(self) -> OpenSink:
        if self.writing is not None:
            return self.writing
        if self.problem is None or time.monotonic() >= self.again:
            try:
                self.writing = self.start(self.opening)
            except Exception as problem:
                self.problem, self.again = problem, time.monotonic() + self.pause
                raise
            return self.writing
        raise self.problem


def open_lazily(
    start: Callable[[Opening], OpenSink], needs: str = "", pause: float = PAUSE
) -> Callable[[Opening], OpenSink]:
    """Return how a sink is opened later. It raises UsageError where its package is missing."""

    def opened(opening: Opening) -> OpenSink:
        if needs and find_spec(needs) is None:
            hint = f"pip install {needs}"
            raise UsageError(f"{needs} is not installed", where="sinks", hint=hint)
        return LazySink(start, opening, pause)

    return opened
