"""Open a sink at its first call, so that `start` neither waits for a service nor fails with it."""

import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from rlvitals.errors import UsageError
from rlvitals.startup.fast_dataclass import dataclass
from rlvitals.tracking.sinks.sink import Opening, OpenSink, Rows
from rlvitals.types import Histogram, Table, Text


@dataclass(slots=True)
class LazySink:
    """A sink that is not open yet; where it cannot be opened, every call raises the error."""

    start: Callable[[Opening], OpenSink]
    opening: Opening
    pause: float
    writing: OpenSink | None = None
    problem: Exception | None = None
    retry_time: float = 0.0  # when it is tried once more, on the monotonic clock

    def scalars(self, rows: Rows) -> None:
        """Write rows."""
        self._get_sink().scalars(rows)

    def histogram(self, key: str, histogram: Histogram) -> None:
        """Write a histogram."""
        self._get_sink().histogram(key, histogram)

    def text(self, key: str, text: Text) -> None:
        """Write a text."""
        self._get_sink().text(key, text)

    def table(self, key: str, table: Table) -> None:
        """Write a table."""
        self._get_sink().table(key, table)

    def settings(self, step: int, changed: Mapping[str, object]) -> None:
        """Write changed settings."""
        self._get_sink().settings(step, changed)

    def event(self, kind: str, step: int | None, facts: Mapping[str, object]) -> None:
        """Write an event."""
        self._get_sink().event(kind, step, facts)

    def flush(self) -> None:
        """Flush it where it is open."""
        if self.writing is not None:
            self.writing.flush()

    def close(self, status: str) -> None:
        """Close it where it is open."""
        if self.writing is not None:
            self.writing.close(status)

    def _get_sink(self) -> OpenSink:
        if self.writing is not None:
            return self.writing
        if self.problem is None or time.monotonic() >= self.retry_time:
            try:
                self.writing = self.start(self.opening)
            except Exception as problem:
                self.problem, self.retry_time = problem, time.monotonic() + self.pause
                raise
            return self.writing
        raise self.problem


def open_lazily(
    start: Callable[[Opening], OpenSink], needs: str = "", pause: float = 30.0
) -> Callable[[Opening], OpenSink]:
    """Return a function that opens a sink later. It raises UsageError without its package."""

    def open_lazy(opening: Opening) -> OpenSink:
        if needs and find_spec(needs) is None:
            hint = f"pip install {needs}"
            raise UsageError(f"{needs} is not installed", where="sinks", hint=hint)
        return LazySink(start, opening, pause)

    return open_lazy
