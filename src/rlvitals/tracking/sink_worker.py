"""Run a sink on its own thread, so that a slow sink blocks no other.

A failing sink is reported by `logging`: at its first failure, and at the end of the run.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from rlvitals.errors import VitalsError, harmless
from rlvitals.storage import redact
from rlvitals.storage.write_buffer import Budget
from rlvitals.tracking.sinks.sink import OpenSink
from rlvitals.tracking.warnings_log import Notes

SINK_CLOSE_SECONDS = 20.0  # seconds that the sinks of a finished run have
MAX_REASON_LETTERS = 160  # characters of why: an error's text may be a page
logger = logging.getLogger(__name__)

Call = Callable[[OpenSink], None]


class SinkWorker:
    """Calls one sink in order; counts its failures and what it is too slow for."""

    def __init__(self, name: str, writing: OpenSink, notes: Notes, budget: Budget) -> None:
        """Take over a sink; `start` begins. Pending calls count in the budget."""
        self.name = name
        self._writing = writing
        self._notes = notes
        self._budget = budget
        self._calls: SimpleQueue[tuple[Call, int] | None] = SimpleQueue()  # with their bytes
        self._closed_by = 0.0
        self._failed = 0
        self._last = ""  # why it failed the last time
        self._thread = threading.Thread(target=self._run, name=f"rlvitals {name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, call: Call, size: int = 0, rows: int = 1) -> None:
        """Queue a call of so many bytes, unless too much is pending."""
        # Calls that wait for slow sinks fill at most half of the budget.
        if size and not self._budget.fits(size, 0.5):
            self._fails("too slow, rows left out", rows)
            return
        self._budget.used += size
        self._calls.put((call, size))

    def flush(self) -> None:
        """Queue a flush of the sink."""
        self.put(lambda writing: writing.flush(), 200)  # bytes of a call without content

    def close(self, status: str) -> None:
        """Queue the close of the sink; `join` waits for it."""
        self._closed_by = time.monotonic() + SINK_CLOSE_SECONDS
        self._calls.put((lambda writing: writing.close(status), 0))
        self._calls.put(None)

    def join(self) -> None:
        """Wait for the sink to close, up to a time limit."""
        self._thread.join(max(self._closed_by - time.monotonic(), 0.0))
        if self._thread.is_alive():
            self._fails(f"did not close in {SINK_CLOSE_SECONDS:.0f} s")
        if self._failed > 1:
            logger.warning("sink %s: %s (%d times)", self.name, self._last, self._failed)

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, size = item
            self._does(call)
            self._budget.used -= size
            if size and self._calls.empty():
                self._does(lambda writing: writing.flush())

    def _does(self, call: Call) -> None:
        try:
            call(self._writing)
        except Exception as error:  # noqa: BLE001 - a sink may raise anything: it is counted
            if isinstance(error, VitalsError):
                text = "; ".join(filter(None, (error.problem, error.hint)))
            else:
                text = f"{type(error).__name__}: {error}"
            text = harmless(redact.text(" ".join(text[: 20 * MAX_REASON_LETTERS].split())))
            self._fails(
                text if len(text) <= MAX_REASON_LETTERS else f"{text[:MAX_REASON_LETTERS]} ..."
            )

    def _fails(self, reason: str, count: int = 1) -> None:
        self._notes.add(f"sink {self.name}: {reason}", count)
        if not self._failed:
            logger.warning("sink %s: %s", self.name, reason)
        self._failed += count
        self._last = reason
